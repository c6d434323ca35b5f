"""predicates: Kubernetes' own filters."""

from dataclasses import dataclass

import numpy as np

from pumice.core.labels import UNSCHEDULABLE_TAINT, node_labels, tolerates, untolerated
from pumice.core.resources import PODS, Mask
from pumice.core.shapes import Shape
from pumice.core.views import NodeFacts, Nodes, Task
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.session import Session

_FULL, _CORDONED, _AFFINITY, _TAINTED = range(1, 5)


@dataclass(kw_only=True)
class Predicates(Plugin, name="predicates"):
    """Pod number, cordon, node affinity and taints so far."""

    reasons = (
        Reason("node(s) pod number exceeded"),
        Reason("node(s) were unschedulable", curable=False),
        Reason("node(s) didn't match Pod's node affinity/selector", curable=False),
        Reason("node(s) had untolerated taint(s)", curable=False),
    )

    def on_open(self, ssn: Session) -> None:
        """Keep the Kubernetes view up to date from now on."""
        ssn.snapshot.view_is_live = True

    def filter_shape(self, shape: Shape, facts: NodeFacts) -> Codes:
        """Test cordon, node affinity and taints."""
        snapshot, spec = facts.snapshot, shape.spec
        codes = np.zeros(len(facts), dtype=np.int16)
        hard = untolerated(snapshot, spec, ("NoSchedule", "NoExecute"))
        if hard is not None:
            codes[hard > 0] = _TAINTED
        allowed = node_labels(snapshot).demanded(spec)
        if allowed is not None:
            codes[~allowed] = _AFFINITY
        if not tolerates(spec.tolerations, UNSCHEDULABLE_TAINT):
            codes[facts.unschedulable] = _CORDONED
        return codes

    def filter_nodes(self, task: Task, nodes: Nodes) -> Mask:
        """Count pods."""
        return nodes.view_pods + 1 <= nodes.allocatable[PODS]
