"""predicates: Kubernetes' own filters."""

from dataclasses import dataclass

from pumice.core.resources import PODS, Mask
from pumice.core.views import Nodes, Task
from pumice.framework.plugin import Plugin, Reason
from pumice.framework.session import Session


@dataclass(kw_only=True)
class Predicates(Plugin, name="predicates"):
    """Only the pod number so far."""

    reasons = (Reason("node(s) pod number exceeded"),)

    def on_open(self, ssn: Session) -> None:
        """Keep the Kubernetes view up to date from now on."""
        ssn.snapshot.view_is_live = True

    def filter_nodes(self, task: Task, nodes: Nodes) -> Mask:
        """Count pods."""
        return nodes.view_pods + 1 <= nodes.allocatable[PODS]
