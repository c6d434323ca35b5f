"""The part of the nodes that this scheduler uses, beside other schedulers.

The flags ``--scheduler-sharding-mode`` and ``--scheduler-sharding-name`` add the plugin nodeshard
to the configuration, which decides; here the scheduler states which nodes it uses, so that others
leave them alone, and gives up those that it should not use any more.
"""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from pumice import logs
from pumice.api.conf import SWITCHES, PluginConf, SchedulerConf, Tier
from pumice.api.kinds import NODE_SHARD
from pumice.api.nodes import NodeShard
from pumice.cluster.base import Cluster
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.errors import ClusterError
from pumice.plugins.nodeshard import NodeShards, nodes_in_use

_NONE: Final = "none"
_log = logs.get("scheduler")


def with_shard(conf: SchedulerConf, mode: str, name: str) -> SchedulerConf:
    """Add the plugin nodeshard, in a tier of its own, unless the configuration has it."""
    if mode == _NONE or conf.names_plugin(NodeShards.name):
        return conf
    switches = {switch.key: switch.default for switch in SWITCHES}
    arguments = {"nodeshard.mode": mode, "nodeshard.name": name}
    plugin = PluginConf(NodeShards.name, switches, arguments)
    return replace(conf, tiers=(*conf.tiers, Tier((plugin,))))


class ShardStatus:
    """Writes the status of a scheduler's own NodeShard, when it differs."""

    def __init__(self, cluster: Cluster, mode: str, name: str) -> None:
        self._cluster, self._mode, self._name = cluster, mode, name
        self._problem = ""

    def write(self, snapshot: Snapshot) -> None:
        """State which nodes are used: between two cycles, so that none uses what is given up."""
        used = None if self._mode == _NONE else nodes_in_use(snapshot, self._name)
        if used is None:
            return
        shard: NodeShard = snapshot.kind("NodeShard")[self._name]
        known = shard.status
        given_up = frozenset(known.nodes_in_use) - used
        wanted = _status(shard, used | (given_up & _bound_now(snapshot) if given_up else given_up))
        before = known.nodes_in_use, known.nodes_to_add, known.nodes_to_remove
        if [*wanted.values()] == [sorted(each) for each in before]:
            return
        try:
            self._cluster.patch(
                NODE_SHARD, "", self._name, {"status": wanted}, subresource="status"
            )
            self._problem = ""
        except ClusterError as error:
            if str(error) != self._problem:
                _log.warning("cannot write the status of a NodeShard", name=self._name, error=error)
            self._problem = str(error)


def _bound_now(snapshot: Snapshot) -> frozenset[str]:
    """Name the nodes of pods whose binds are under way: others do not see these pods yet."""
    tasks, names = snapshot.tasks, snapshot.nodes.names
    rows = np.flatnonzero(tasks.status[: tasks.n] == Status.BINDING)
    return frozenset(names[node] for node in tasks.node[rows].tolist() if node != NOWHERE)


def _status(shard: NodeShard, used: frozenset[str]) -> dict[str, Any]:
    wanted = frozenset(shard.spec.nodes_desired)
    return {
        "nodesInUse": sorted(used),
        "nodesToAdd": sorted(wanted - used),
        "nodesToRemove": sorted(used - wanted),
    }
