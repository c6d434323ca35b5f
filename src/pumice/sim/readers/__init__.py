"""Public traces, manifests and made-up workloads, each read into a Workload."""
