"""Each test of the filters by itself: which nodes it would refuse if it were the only one.

Used to explain why a pod has no node; a cycle uses the filters.
"""

from collections.abc import Iterator

import numpy as np

from pumice.api.annotations import NOT_READY_TAINTS
from pumice.api.codes import Cause
from pumice.api.pods import PodSpec
from pumice.core.labels import UNSCHEDULABLE_TAINT, node_labels, tolerates
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Nodes

_BLOCKING = ("NoSchedule", "NoExecute")
Test = tuple[Cause, Mask]


def cordon_test(spec: PodSpec, nodes: Nodes) -> Test:
    """Mark nodes that are cordoned."""
    barred = not tolerates(spec.tolerations, UNSCHEDULABLE_TAINT)
    return Cause.NODE_UNSCHEDULABLE, nodes.unschedulable & barred


def label_tests(snapshot: Snapshot, spec: PodSpec, nodes: Nodes) -> Iterator[Test]:
    """Mark nodes without the labels of the selector, and those that the affinity leaves out."""
    labels = node_labels(snapshot)
    by_cause = {
        Cause.NODE_SELECTOR: labels.selected_by_labels(spec),
        Cause.NODE_AFFINITY: labels.selected_by_affinity(spec),
    }
    for cause, allowed in by_cause.items():
        if allowed is not None:
            yield cause, ~allowed[nodes.rows]


def taint_tests(snapshot: Snapshot, spec: PodSpec, nodes: Nodes) -> Iterator[Test]:
    """Mark nodes with taints that the pod does not tolerate; unhealthy nodes separately."""
    sick, tainted = [], []
    for taints in snapshot.taint_sets:
        keys = [
            taint.key
            for taint in taints
            if taint.effect in _BLOCKING and not tolerates(spec.tolerations, taint)
        ]
        sick.append(any(key in NOT_READY_TAINTS for key in keys))
        tainted.append(any(key not in NOT_READY_TAINTS for key in keys))
    classes = nodes.taint_class
    for cause, found in ((Cause.NODE_NOT_READY, sick), (Cause.TAINT, tainted)):
        if any(found):
            yield cause, np.array(found, dtype=bool)[classes]
