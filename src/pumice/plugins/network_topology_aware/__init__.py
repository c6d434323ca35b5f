"""network-topology-aware: keep the tasks of a job close together in the network."""

from pumice.plugins.network_topology_aware.plugin import NetworkTopologyAware

__all__ = ["NetworkTopologyAware"]
