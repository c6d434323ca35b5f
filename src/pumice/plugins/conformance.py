"""conformance: pods that the cluster itself rests on are never evicted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Mask
from pumice.core.views import Task
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})
_SYSTEM_NAMESPACE = "kube-system"
_UNKNOWN = -1


@dataclass(kw_only=True)
class Conformance(Plugin, name="conformance"):
    """Protect pods of the critical priority classes and of the system namespace."""

    def on_open(self, ssn: Session) -> None:
        """Prepare to look at each pod once."""
        self._tasks = ssn.snapshot.tasks
        self._offered = np.full(len(self._tasks.status), _UNKNOWN, dtype=np.int8)

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer all pods but critical ones."""
        return self._offer(np.asarray(candidates, dtype=np.intp))

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask:
        """Offer all pods but critical ones."""
        return self._offer(np.asarray(candidates, dtype=np.intp))

    def gang_evictable(self, eviction: object, candidates: list[int]) -> Mask:
        """Offer all pods but critical ones."""
        return self._offer(np.asarray(candidates, dtype=np.intp))

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask:
        """Answer as ever: each pod is judged by itself."""
        return self._offer(candidates)

    def _offer(self, rows: NDArray[np.intp]) -> Mask:
        offered = self._offered
        for row in rows[offered[rows] == _UNKNOWN].tolist():
            offered[row] = not self._is_critical(row)
        return offered[rows] == 1

    def _is_critical(self, row: int) -> bool:
        pod: Any = self._tasks.pods[row]
        critical: bool = pod.spec.priority_class_name in _CRITICAL
        return critical or pod.metadata.namespace == _SYSTEM_NAMESPACE
