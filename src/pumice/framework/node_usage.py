"""Measured use of nodes, as columns for plugins that consider real load.

The measurements come in with the session (``ssn.node_usage``); their source is not a concern
of the deciding core.
"""

from dataclasses import dataclass

import numpy as np

from pumice.core.resources import CPU, MEMORY, Column, Mask
from pumice.framework.plugin_session import PluginSession


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """Measured load of all nodes, in the order of the node table."""

    percent: Column
    """Cpu and memory in use, 0 to 100 (2, N); 0 where nothing was measured."""
    measured_at: Column
    """When, in seconds; minus infinity for never (N,)."""

    @property
    def known(self) -> Mask:
        """Nodes that were measured at all (N,)."""
        return self.measured_at > -np.inf

    def fresh(self, now: float, longest: float) -> Mask:
        """Mark nodes measured at most the given seconds ago (N,)."""
        return now - self.measured_at <= longest


def node_load(ssn: PluginSession) -> NodeLoad:
    """Lay the measurements of a session out along the node axis."""
    nodes = ssn.snapshot.nodes
    percent = np.zeros((MEMORY + 1, nodes.n))
    measured_at = np.full(nodes.n, -np.inf)
    for name, facts in ssn.node_usage.items():
        row = nodes.row_of.get(name)
        if row is not None:
            percent[CPU, row] = facts.get("cpu", 0.0)
            percent[MEMORY, row] = facts.get("memory", 0.0)
            measured_at[row] = facts.get("metricsTime", -np.inf)
    return NodeLoad(percent, measured_at)
