"""lowNodeUtilization: drain busy nodes while idle nodes have room."""

from dataclasses import dataclass

import numpy as np

from pumice.api.qos import qos_class
from pumice.core.resources import CPU, MEMORY, Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.framework.arguments import arg
from pumice.framework.node_usage import node_load
from pumice.framework.plugin_session import PluginSession
from pumice.plugins.rescheduling.strategy import Strategy

_BOTH = slice(CPU, MEMORY + 1)
_UNIT = np.array([0.001, 1.0])
"""Cpu in whole units and bytes; Volcano: shares are rounded in these units."""


@dataclass(kw_only=True, frozen=True)
class Percents:
    """A bound on measured load."""

    cpu: int = arg("cpu", default=100, doc="percent of cpu")
    memory: int = arg("memory", default=100, doc="percent of memory")

    @property
    def column(self) -> Column:
        """Both as (2, 1)."""
        return np.array([[self.cpu], [self.memory]], dtype=float)


@dataclass(kw_only=True)
class LowNodeUtilization(Strategy, name="lowNodeUtilization"):
    """Evict from nodes above a target, down to it, as long as idle nodes could take the pods.

    Idle is a node below every threshold and not cordoned.  An unmeasured node is
    neither busy nor idle.
    """

    thresholds: Percents = arg("thresholds", default_factory=Percents)
    target_thresholds: Percents = arg("targetThresholds", default_factory=Percents)

    def victims(self, ssn: PluginSession, running: list[int]) -> list[int]:
        """Choose tasks on busy nodes, the busiest first, equal ones by name."""
        nodes, load = ssn.snapshot.nodes, node_load(ssn)
        target = self.target_thresholds.column
        below = (load.percent < self.thresholds.column).all(axis=0)
        idle = below & load.known & ~nodes.unschedulable[: nodes.n]
        busy = ~idle & load.known & (load.percent > target).any(axis=0)
        if not idle.any() or not busy.any():
            return []
        room = _room(ssn.snapshot, idle, load.percent, target)
        on_node: dict[int, list[int]] = {}
        for row in running:
            on_node.setdefault(int(ssn.snapshot.tasks.node[row]), []).append(row)
        chosen: list[int] = []
        busiest_first = sorted(
            np.flatnonzero(busy).tolist(), key=lambda i: (-load.percent[:, i].sum(), nodes.names[i])
        )
        for node in busiest_first:
            rows = on_node.get(node, [])
            chosen += self._drain(ssn.snapshot, node, rows, load.percent[:, node].copy(), room)
        return chosen

    def _drain(
        self, snapshot: Snapshot, node: int, rows: list[int], percent: Column, room: Column
    ) -> list[int]:
        """Choose tasks of one node, the least valuable first; ``room`` shrinks with them.

        Volcano: only room of exactly zero ends it, overdrawn room does not.
        """
        target = self.target_thresholds.column[:, 0]
        capacity = snapshot.nodes.capacity_amounts[_BOTH, node] * _UNIT
        whole = np.where(capacity > 0, capacity, np.inf)
        chosen = []
        for row in sorted(rows, key=lambda row: _worth(snapshot, row)):
            if not (percent >= target).any() or (room == 0).any():
                break
            request = np.trunc(snapshot.request(row)[_BOTH])
            room -= request
            percent -= request * _UNIT * 100 / whole
            chosen.append(row)
        return chosen


def _room(snapshot: Snapshot, idle: Mask, percent: Column, target: Column) -> Column:
    """Add up what idle nodes can take before they reach the target (2,)."""
    nodes = snapshot.nodes
    offered = nodes.allocatable[_BOTH, : nodes.n]
    stated = nodes.allocatable[:, : nodes.n].any(axis=0)
    offered = np.where(stated, offered, nodes.capacity_amounts[_BOTH, : nodes.n])
    room = np.trunc(target * offered * 0.01) - np.trunc(percent * offered * 0.01)
    return np.asarray(room[:, idle].sum(axis=1))


def _worth(snapshot: Snapshot, row: int) -> tuple[bool, int, int]:
    """Order pods of a node: no priority, then low priority, then QoS class."""
    spec = snapshot.tasks.pods[row].spec  # type: ignore[attr-defined]
    return (spec.priority is not None, spec.priority or 0, qos_class(spec))
