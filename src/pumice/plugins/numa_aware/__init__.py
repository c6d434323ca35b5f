"""numa-aware: place pods that want whole cpus where NUMA nodes can provide them."""

from pumice.plugins.numa_aware.plugin import NumaAware

__all__ = ["NumaAware"]
