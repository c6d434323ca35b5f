"""Pods and pod templates: Kubernetes' defaults, and its checks with the exact messages."""
