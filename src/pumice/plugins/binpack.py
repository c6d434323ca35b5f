"""binpack: prefer the node that this task would leave fullest."""

from dataclasses import dataclass

import numpy as np

from pumice.core.resources import CPU, MEMORY, STEP, Column, weighted_sum
from pumice.core.views import Nodes, Task
from pumice.framework.arguments import arg, arg_pattern
from pumice.framework.placement.kernel import NodeTerm, packed_score
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession


@dataclass(kw_only=True)
class Binpack(Plugin, name="binpack"):
    """Score 0 to 100 for each unit of weight: the use of requested resources after placement."""

    simulator = SimulatorAssumptions()
    weight: int = arg("binpack.weight", default=1, doc="weight of this plugin's score")
    cpu: int = arg("binpack.cpu", default=1, minimum=0, fallback=1, doc="weight of CPU")
    memory: int = arg("binpack.memory", default=1, minimum=0, fallback=1, doc="weight of memory")
    resources: list[str] = arg(
        "binpack.resources", default_factory=list, doc="further resources that count"
    )
    resource_weights: dict[str, int] = arg_pattern(
        "binpack.resources.*", minimum=0, fallback=1, doc="weight of one of them; default 1"
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Lay weights out along the resource axis."""
        known = ssn.snapshot.resources
        weights = np.zeros((len(known), 1))
        for name in self.resources:
            row = known.row(name)
            if row is not None:
                weights[row] = self.resource_weights.get(name, 1)
        weights[CPU], weights[MEMORY] = self.cpu, self.memory
        self._weights = weights
        self._named = known.mask(["cpu", "memory", *self.resources])[:, None]

    def node_terms(self, task: Task) -> list[NodeTerm]:
        """State the score."""
        if self.weight == 0:
            return []
        wanted = self._named[:, 0] & (task.request[:, 0] >= STEP)
        rows = [(row, self._weights.item(row)) for row in wanted.nonzero()[0].tolist()]
        total = sum(weight for _, weight in rows) or 1.0
        return [packed_score(self.weight, total, [each for each in rows if each[1] > 0])]

    def score_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Add requested resources only; one that would overflow makes the whole score zero."""
        if self.weight == 0:
            return None
        wanted = self._named & (task.request >= STEP)
        weights = np.where(wanted, self._weights, 0.0)
        total = weights.sum()
        after = nodes.used + task.request
        offered = nodes.allocatable
        counted = wanted & (self._weights > 0) & (offered > 0)
        use = np.where(counted, after / np.where(counted, offered, 1.0), 0.0)
        overflow = (counted & (after > offered)).any(axis=0)
        score = weighted_sum(weights, use) / (total if total > 0 else 1.0)
        return np.where(overflow, 0.0, score * 100.0 * self.weight)
