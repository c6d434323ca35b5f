"""conformance: pods that the cluster itself depends on are not victims."""

from dataclasses import dataclass
from typing import Any

from pumice.api.codes import Spared
from pumice.api.kinds import SYSTEM_PRIORITIES
from pumice.core.resources import Mask
from pumice.core.views import Task
from pumice.framework.columns import Verdicts
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession

_SYSTEM_NAMESPACE = "kube-system"


@dataclass(kw_only=True)
class Conformance(Plugin, name="conformance"):
    """Protect pods of the critical priority classes and of the system namespace."""

    protects = "critical pods"
    foreseeable = True
    simulator = SimulatorAssumptions()
    judges_alone = frozenset({"preemptable", "reclaimable", "gang_evictable"})
    spares = Spared.CRITICAL

    def on_open(self, ssn: PluginSession) -> None:
        """Prepare to judge each pod once."""
        self._tasks = ssn.snapshot.tasks
        self._offered = Verdicts(len(self._tasks.status), self._may_go)

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer all pods except critical ones."""
        return self._offered.of(candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask:
        """Offer all pods except critical ones."""
        return self._offered.of(candidates)

    def gang_evictable(self, eviction: object, candidates: list[int]) -> Mask:
        """Offer all pods except critical ones."""
        return self._offered.of(candidates)

    def _may_go(self, row: int) -> bool:
        pod: Any = self._tasks.pods[row]
        if pod.spec.priority_class_name in SYSTEM_PRIORITIES:
            return False
        return bool(pod.metadata.namespace != _SYSTEM_NAMESPACE)
