"""The Kubernetes REST API in front of an embedded cluster, served on loopback."""
