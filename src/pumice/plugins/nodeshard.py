"""nodeshard: a scheduler keeps to its part of the nodes, or prefers it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pumice.api.codes import Cause
from pumice.api.nodes import NodeShard
from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.core.tables import Shape
from pumice.core.views import NodeFacts
from pumice.framework.arguments import arg
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession

_FIRST = 1e7
"""More than the scores of all other plugins together: nodes of the shard come before all others."""


def nodes_in_use(snapshot: Snapshot, name: str) -> frozenset[str] | None:
    """Name the nodes that a shard may use now, None if it does not exist.

    A node that another shard still uses is not among them: two schedulers never have one at a time.
    """
    shards: dict[str, NodeShard] = snapshot.kind("NodeShard")
    own = shards.get(name)
    if own is None:
        return None
    others = [each.status.nodes_in_use for key, each in shards.items() if key != name]
    return frozenset(own.spec.nodes_desired).difference(*others)


@dataclass(kw_only=True)
class NodeShards(Plugin, name="nodeshard"):
    """Use the nodes of a NodeShard only, or first."""

    simulator = SimulatorAssumptions()
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node isn't in scheduler node shard", curable=False, code=Cause.NODE_SHARD),
    )
    mode: str = arg(
        "nodeshard.mode",
        default="hard",
        choices=("hard", "soft"),
        doc="`hard`: no other nodes; `soft`: others where the shard has no room",
    )
    shard: str = arg("nodeshard.name", default="volcano", doc="name of the NodeShard")

    def on_open(self, ssn: PluginSession) -> None:
        """Find the nodes of the shard; without it there are none."""
        named = nodes_in_use(ssn.snapshot, self.shard)
        if named is None:
            text = f"NodeShard {self.shard} does not exist: the scheduler has no nodes of its own"
            ssn.warn(self.name, [text])
        names = ssn.snapshot.nodes.names[: ssn.snapshot.nodes.n]
        self._is_own = np.fromiter((name in (named or ()) for name in names), bool, len(names))

    def filter_shape(self, shape: Shape, facts: NodeFacts) -> Codes | None:  # all pods alike
        """Close the nodes of other shards."""
        return self._is_own[facts.index] if self.mode == "hard" else None

    def score_shape(self, shape: Shape, facts: NodeFacts) -> Column | None:  # all pods alike
        """Put the nodes of the shard before all others."""
        return np.where(self._is_own[facts.index], _FIRST, 0.0) if self.mode == "soft" else None
