"""What a change costs other jobs, and the job itself: both sides are played and compared."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pumice.api.decisions import Decisions
from pumice.api.kinds import ENDED_PHASES
from pumice.api.wording import counted, first_of, verb
from pumice.diagnosis.changes import Change, Remove, Wait
from pumice.diagnosis.cluster_state import ClusterState, group_of
from pumice.diagnosis.trials import TrialResult

_NAMED: Final = 3


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Pods that leave and jobs that wait because of a change."""

    evicted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Job to its pods that are evicted with the change and not without it."""
    held_back: Mapping[str, int] = field(default_factory=dict)
    """Job to how many of its pods start without the change and not with it."""
    restarted: int = 0
    """Pods of the job itself that run and are created again."""

    @property
    def pods(self) -> list[str]:
        """The pods that are evicted."""
        return [pod for pods in self.evicted.values() for pod in pods]

    def outweighs(self, started: int) -> bool:
        """Return whether the job gives up as many running pods as it starts: nothing is gained."""
        return 0 < self.restarted >= started

    def texts(self, known: Iterable[str] = ()) -> list[str]:
        """Describe it, a clause each; evictions that are ``known`` already are left out."""
        found = []
        named = set(known)
        evicted = {job: [p for p in pods if p not in named] for job, pods in self.evicted.items()}
        evicted = {job: pods for job, pods in evicted.items() if pods}
        if evicted:
            also = "also " if named else ""
            found.append(f"this {also}evicts {_pods_of(evicted)}")
        if self.held_back:
            n, jobs = sum(self.held_back.values()), first_of(list(self.held_back), _NAMED)
            wait = f"that would start otherwise {verb(n, 'waits', 'wait')}"
            found.append(f"{counted(n, 'pod')} of {jobs} {wait}")
        if self.restarted:
            pods = f"its {counted(self.restarted, 'running pod')}"
            found.append(f"{pods} {verb(self.restarted, 'is', 'are')} created again")
        return found


def _pods_of(evicted: Mapping[str, list[str]]) -> str:
    """Write pods by job: one job with the names of its pods, several with their numbers."""
    n = sum(map(len, evicted.values()))
    if len(evicted) == 1:
        (job, pods), *_ = evicted.items()
        whose = f" of {job}" if job else ""
        return f"{counted(n, 'pod')}{whose} ({first_of(sorted(pods), _NAMED)})"
    listed = [
        f"{len(pods)} of {job}" if job else f"{len(pods)} of no job"
        for job, pods in evicted.items()
    ]
    return f"{counted(n, 'pod')}: {first_of(listed, _NAMED)}"


def cost_of(
    change: Change, world: ClusterState, job: str, before: TrialResult, after: TrialResult
) -> Cost:
    """Compare a world as it is with the changed one; ``job`` is the title of the job to help."""
    waited = _waited(change)
    evicted = {
        other: tuple(sorted(pods - before.evicted.get(other, frozenset())))
        for other, pods in after.evicted.items()
        if other != job
    }
    held_back = {
        other: len(pods - waited) - len(after.bound.get(other, ()))
        for other, pods in before.bound.items()
        if other != job
    }
    return Cost(
        evicted={other: pods for other, pods in evicted.items() if pods},
        held_back={other: n for other, n in held_back.items() if n > 0},
        restarted=restarted(change, world),
    )


def cost_of_cycle(
    change: Change, world: ClusterState, job: str, after: Decisions, before: Decisions
) -> Cost:
    """Compare one cycle of the world and of the changed one, where playing on would take long."""
    known, waited = world.of_kind("Pod"), _waited(change)

    def of(pods: Iterable[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for pod in pods:
            other = world.title(group_of(known[pod])) if pod in known else ""
            if other != job:
                found.setdefault(other, []).append(pod)
        return found

    anyway = set(before.evictions)
    evicted = of(pod for pod in after.evictions if pod not in anyway)
    held = of(pod for pod in before.binds if pod not in after.binds and pod not in waited)
    return Cost(
        evicted={other: tuple(pods) for other, pods in evicted.items()},
        held_back={other: len(pods) for other, pods in held.items()},
        restarted=restarted(change, world),
    )


def _waited(change: Change) -> set[str]:
    """Name the pods that a change waits for."""
    return {pod for op in change.ops if isinstance(op, Wait) for pod in op.pods}


def restarted(change: Change, world: ClusterState) -> int:
    """Count the running pods that a change removes with the job that it submits again.

    Pods that are being deleted are not made again.
    """
    pods = world.of_kind("Pod")
    gone = {
        f"{op.namespace}/{op.name}"
        for op in change.ops
        if isinstance(op, Remove) and op.kind == "Pod"
    }
    return sum(
        bool(pods[key]["spec"].get("nodeName"))
        and (pods[key].get("status") or {}).get("phase") not in ENDED_PHASES
        and not pods[key]["metadata"].get("deletionTimestamp")
        for key in gone
        if key in pods
    )
