"""Keep GPU nodes for pods that ask for a GPU, and prefer one pool of nodes."""

from dataclasses import dataclass

import numpy as np

from pumice.plugin import Codes, Column, NodeFacts, Plugin, Reason, Shape, arg


@dataclass(kw_only=True)
class GpuGuard(Plugin, name="gpu-guard"):
    """Keep GPU nodes for pods that ask for a GPU; prefer nodes of one pool."""

    reasons = (Reason("node(s) are kept for GPU pods", curable=False),)
    pool: str = arg("gpu-guard.pool", default="spot", doc="the preferred value of label 'pool'")

    def filter_shape(self, shape: Shape, facts: NodeFacts) -> Codes:
        gpu = facts.resources.row("nvidia.com/gpu")
        if gpu is None or shape.request[gpu, 0] > 0:
            return np.ones(len(facts), dtype=bool)
        return facts.allocatable[gpu] == 0

    def score_shape(self, shape: Shape, facts: NodeFacts) -> Column:
        return 100.0 * (facts.label("pool") == self.pool)
