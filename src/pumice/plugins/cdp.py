"""cdp: a pod that has just started is not evicted for a while (cooldown protection)."""

from dataclasses import dataclass
from typing import Any

from pumice.api.annotations import COOLDOWN_TIME
from pumice.api.codes import Spared
from pumice.api.duration import parse_duration
from pumice.api.times import epoch, rfc3339
from pumice.core.resources import Mask
from pumice.core.views import Task
from pumice.errors import InputError
from pumice.framework.columns import Verdicts
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession


@dataclass(kw_only=True)
class Cdp(Plugin, name="cdp"):
    """Protect running pods for the time that their label or annotation states.

    The time counts from the moment the pod was scheduled.
    """

    foreseeable = True
    simulator = SimulatorAssumptions()
    judges_alone = frozenset({"preemptable", "reclaimable"})
    spares = Spared.COOLDOWN
    protects = "pods in their cooldown"

    def on_open(self, ssn: PluginSession) -> None:
        """Store the time and prepare to judge each pod once."""
        self._now = ssn.now
        self._pods = ssn.snapshot.tasks.pods
        self._offered = Verdicts(len(ssn.snapshot.tasks.status), self._may_go)

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer pods whose cooldown is over."""
        return self._offered.of(candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask:
        """Offer pods whose cooldown is over."""
        return self._offered.of(candidates)

    def why_spared(self, hook: str, asker: Task, candidate: Task) -> tuple[Spared, dict[str, Any]]:
        """Return until when the pod is protected."""
        return self.spares, {"until": rfc3339(_protected_until(candidate.pod))}

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when the next cooldown is over."""
        ends = [_protected_until(pod) for pod in self._pods if pod is not None]
        return min((end for end in ends if end > ssn.now), default=None)

    def _may_go(self, row: int) -> bool:
        return _protected_until(self._pods[row]) <= self._now


def _protected_until(pod: Any) -> float:
    """Return the end of a pod's protected time; 0 if it has none."""
    seconds = _cooldown_s(pod)
    if seconds is None or pod.status.phase != "Running":
        return 0.0
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            since = condition.last_transition_time
            return epoch(since) + seconds if since else 0.0
    return 0.0


def _cooldown_s(pod: Any) -> float | None:
    """Read the protected time of a pod: the label takes precedence over the annotation."""
    labels, marks = pod.metadata.labels, pod.metadata.annotations
    text = labels.get(COOLDOWN_TIME, marks.get(COOLDOWN_TIME))
    if text is None:
        return None
    try:
        return parse_duration(text)
    except InputError:
        return None
