"""network-topology-aware: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class NetworkTopologyAware(Plugin, name="network-topology-aware"):
    """Not written yet."""
