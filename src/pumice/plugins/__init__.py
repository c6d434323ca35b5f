"""The built-in plugins: one policy, one module, listed here and nowhere else."""

from pumice.framework.plugin import Plugin
from pumice.plugins.binpack import Binpack
from pumice.plugins.capacity import Capacity
from pumice.plugins.cdp import Cdp
from pumice.plugins.conformance import Conformance
from pumice.plugins.deviceshare import DeviceShare
from pumice.plugins.drf import Drf
from pumice.plugins.extender import Extender
from pumice.plugins.gang import Gang
from pumice.plugins.network_topology_aware import NetworkTopologyAware
from pumice.plugins.nodegroup import NodeGroup
from pumice.plugins.nodeorder import NodeOrder
from pumice.plugins.numa_aware import NumaAware
from pumice.plugins.overcommit import Overcommit
from pumice.plugins.pdb import Pdb
from pumice.plugins.predicates import Predicates
from pumice.plugins.priority import Priority
from pumice.plugins.proportion import Proportion
from pumice.plugins.rescheduling import Rescheduling
from pumice.plugins.resource_strategy_fit import ResourceStrategyFit
from pumice.plugins.resourcequota import ResourceQuotas
from pumice.plugins.sla import Sla
from pumice.plugins.task_topology import TaskTopology
from pumice.plugins.tdm import Tdm
from pumice.plugins.usage import Usage

BUILTIN: tuple[type[Plugin], ...] = (
    Binpack,
    Capacity,
    Cdp,
    Conformance,
    DeviceShare,
    Drf,
    Extender,
    Gang,
    NetworkTopologyAware,
    NodeGroup,
    NodeOrder,
    NumaAware,
    Overcommit,
    Pdb,
    Predicates,
    Priority,
    Proportion,
    Rescheduling,
    ResourceStrategyFit,
    ResourceQuotas,
    Sla,
    TaskTopology,
    Tdm,
    Usage,
)


def builtin_plugins() -> dict[str, type[Plugin]]:
    """Return the built-in plugins by name."""
    return {plugin.name: plugin for plugin in BUILTIN}
