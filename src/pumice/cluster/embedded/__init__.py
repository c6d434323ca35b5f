"""A cluster in memory: object store, clock and simulated kubelet."""
