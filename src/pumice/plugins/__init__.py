"""The built-in plugins: one policy, one module, listed here and nowhere else."""

from collections.abc import Mapping
from typing import Final

from pumice.framework.plugin import Plugin
from pumice.framework.registry import BuiltinEntry, PluginsOnUse

_BUILTIN: Final = {
    "binpack": "binpack:Binpack",
    "capacity": "capacity:Capacity",
    "cdp": "cdp:Cdp",
    "conformance": "conformance:Conformance",
    "deviceshare": "deviceshare:DeviceShare",
    "drf": "drf:Drf",
    "extender": "extender:Extender",
    "fairshare": "fairshare:FairShare",
    "gang": "gang:Gang",
    "network-topology-aware": "network_topology_aware:NetworkTopologyAware",
    "nodegroup": "nodegroup:NodeGroup",
    "nodeorder": "nodeorder:NodeOrder",
    "nodeshard": "nodeshard:NodeShards",
    "numa-aware": "numa_aware:NumaAware",
    "overcommit": "overcommit:Overcommit",
    "pdb": "pdb:Pdb",
    "predicates": "predicates:Predicates",
    "priority": "priority:Priority",
    "proportion": "proportion:Proportion",
    "rescheduling": "rescheduling:Rescheduling",
    "reservation": "reservation:Reservation",
    "resource-strategy-fit": "resource_strategy_fit:ResourceStrategyFit",
    "resourcequota": "resourcequota:ResourceQuotas",
    "sla": "sla:Sla",
    "task-topology": "task_topology:TaskTopology",
    "tdm": "tdm:Tdm",
    "usage": "usage:Usage",
}
"""Name to module, seen from this package, and class; a configuration names few of them."""


def builtin_plugins() -> Mapping[str, type[Plugin]]:
    """Return the built-in plugins by name; each is imported when it is first used."""
    return PluginsOnUse(
        BuiltinEntry(name, f"{__name__}.{place}") for name, place in _BUILTIN.items()
    )
