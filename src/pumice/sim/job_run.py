"""One job on its way through a simulation, and its objects as the scheduler sees them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from math import inf, isnan, nan

import msgspec

from pumice.api.annotations import ALLOCATED_HYPER_NODE, GROUP_NAME, TASK_SPEC, USER
from pumice.api.decisions import PodGroupState
from pumice.api.objects import (
    Condition,
    ObjectMeta,
    Pod,
    PodGroup,
    PodGroupStatus,
    PodSpec,
    PodStatus,
)
from pumice.api.times import epoch as seconds_of
from pumice.api.times import moment_of
from pumice.core.resources import Column
from pumice.core.snapshot import Snapshot
from pumice.sim.event_log import NONE, EventLog
from pumice.sim.job_classes import JobClass
from pumice.sim.workload import JobSpec, TaskSpec

EPOCH = 1704067200.0
"""Second 0 of a simulation, as the scheduler's clock reads it, unless the trace or the user states
another: the first of January 2024."""

DELETED = "deleted by its user"
"""Why a job ended that its user deleted."""

_PENDING = PodStatus(phase="Pending")
_SUCCEEDED = PodStatus(phase="Succeeded")


class State(IntEnum):
    """The state of one pod of a job."""

    WAITING = 0
    RUNNING = 1
    DONE = 2
    LOST = 3


@lru_cache(maxsize=64)  # many things happen at the same moment
def time_text(epoch: float) -> str:
    """Write a moment, in seconds since 1970, as Kubernetes writes times."""
    moment = moment_of(epoch)
    return f"{moment.isoformat().removesuffix('+00:00')}Z"


class JobRun:
    """A job of the workload with the state of each of its pods."""

    __slots__ = (
        "_age",
        "_epoch",
        "annotations",
        "conditions",
        "ended",
        "ends",
        "evictions",
        "hyper_node",
        "in_tables",
        "is_unlisted",
        "key",
        "kind",
        "leaving",
        "missing",
        "nodes",
        "number",
        "phase",
        "reason",
        "reruns",
        "spec",
        "started",
        "states",
        "tally",
    )

    def __init__(self, number: int, spec: JobSpec, kind: JobClass, epoch: float = EPOCH) -> None:
        size = kind.size
        self.number = number
        self.spec = spec
        self.kind = kind
        self.key = spec.key
        self._epoch = epoch
        self._age: tuple[float, str] | None = None
        self.annotations = {**spec.annotations, **({USER: spec.user} if spec.user else {})}
        self.phase = "Pending"
        self.conditions: tuple[Condition, ...] = ()
        self.in_tables = False
        self.is_unlisted = False
        """Whether it runs without rows in the tables."""
        self.missing = list(range(size))
        """Pods to be created."""
        self.states = bytearray(size)
        self.tally = [size, 0, 0, 0]
        """How many pods are in each state."""
        self.nodes = [NONE] * size
        self.ends = [inf] * size
        """When each running pod will have finished."""
        self.started = nan
        """When it had, for the first time, as many pods on nodes as it needs."""
        self.ended = nan
        """When its last pod finished or was lost."""
        self.evictions = 0
        self.reruns: dict[int, int] = {}
        """How often each pod was evicted, if it was."""
        self.leaving: set[int] = set()
        """Evicted pods that keep their place a while."""
        self.hyper_node: str | None = None
        self.reason = ""
        """Why it waited, in the scheduler's last words."""

    def __lt__(self, other: "JobRun") -> bool:
        return self.number < other.number

    @property
    def created(self) -> str:
        """When it arrived, as Kubernetes writes times."""
        return time_text(self._epoch + self.spec.arrival - self.spec.age)

    @property
    def age(self) -> tuple[float, str]:
        """The key by which queues take jobs of equal priority: when it was created, its name."""
        if self._age is None:
            self._age = seconds_of(self.created), self.key
        return self._age

    @property
    def waiting(self) -> int:
        """How many of its pods have no node."""
        return self.tally[State.WAITING]

    @property
    def running(self) -> int:
        """How many of its pods run."""
        return self.tally[State.RUNNING]

    @property
    def is_over(self) -> bool:
        """Whether no pod waits or runs any more."""
        return not self.tally[State.WAITING] and not self.tally[State.RUNNING]

    @property
    def is_finished(self) -> bool:
        """Whether it is over, and as many pods as it needs have run to their end."""
        needed = max(self.spec.min_member, 1)
        return not isnan(self.ended) and self.tally[State.DONE] >= needed

    def settled_phase(self) -> str:
        """Return the phase its group has as soon as the next cycle has seen its pods."""
        enough = self.running + self.tally[State.DONE] >= self.spec.min_member
        if enough:
            return "Running"
        return "Inqueue" if self.phase == "Inqueue" else "Pending"

    def take_in(self, state: PodGroupState) -> None:
        """Remember what a cycle reported about the job, besides its phase."""
        self.hyper_node = state.hyper_node or self.hyper_node
        self.conditions = tuple(
            Condition(type=c.type, status=c.status, reason=c.reason, message=c.message)
            for c in state.conditions
        )

    def move(self, task: int, state: State) -> None:
        """Change the state of one pod."""
        self.tally[self.states[task]] -= 1
        self.tally[state] += 1
        self.states[task] = state

    def move_all(self, state: State) -> None:
        """Change the state of all pods."""
        size = len(self.states)
        self.states = bytearray((state,)) * size
        self.tally = [0, 0, 0, 0]
        self.tally[state] = size

    def tasks_in(self, state: State) -> list[int]:
        """List the pods in a state."""
        return [i for i, found in enumerate(self.states) if found == state]

    def group(self) -> PodGroup:
        """Return the pod group with the status it has now."""
        marks = self.annotations
        if self.hyper_node:
            marks = {**marks, ALLOCATED_HYPER_NODE: self.hyper_node}
        meta = ObjectMeta(
            name=self.spec.name,
            namespace=self.spec.namespace,
            uid=self.spec.name,
            creation_timestamp=self.created,
            annotations=marks,
        )
        status = PodGroupStatus(
            phase=self.phase,
            running=self.running,
            succeeded=self.tally[State.DONE],
            failed=self.tally[State.LOST],
            conditions=self.conditions,
        )
        return PodGroup(metadata=meta, spec=self.kind.group, status=status)

    def pods(
        self, numbers: Iterable[int], created: str, uids: Iterator[int]
    ) -> Iterator[tuple[int, Pod]]:
        """Make some pods, each with its number."""
        marks = [self._marks(task) for task in self.spec.tasks]
        for number in numbers:
            at = self.kind.places[number][0]
            meta = ObjectMeta(
                name=self.pod_name(number),
                namespace=self.spec.namespace,
                uid=f"{next(uids):012d}",  # in the order in which they are created: it breaks ties
                creation_timestamp=created,
                labels=dict(self.spec.tasks[at].labels),
                annotations=marks[at],
            )
            yield number, Pod(metadata=meta, spec=self.kind.specs[at], status=_PENDING)

    def pod_key(self, number: int) -> str:
        """Name a pod as the scheduler does."""
        return f"{self.spec.namespace}/{self.pod_name(number)}"

    def pod_name(self, number: int) -> str:
        """Name a pod."""
        at, i = self.kind.places[number]
        task = self.spec.tasks[at]
        return task.pod_name or f"{self.spec.name}-{task.role}-{i}"

    def seconds(self, number: int) -> float:
        """Return how long a pod runs."""
        task = self.spec.tasks[self.kind.places[number][0]]
        if task.reruns and (times := self.reruns.get(number)):
            return task.reruns[min(times, len(task.reruns)) - 1]
        return task.run_seconds

    def is_timed(self, number: int) -> bool:
        """Return whether somebody states how long a pod runs."""
        return self.spec.tasks[self.kind.places[number][0]].is_timed

    def _marks(self, task: TaskSpec) -> dict[str, str]:
        return {GROUP_NAME: self.spec.name, TASK_SPEC: task.role, **task.annotations}


class BoundPods:
    """Pods as they are once a node runs them; equal specifications stay one object."""

    def __init__(self) -> None:
        self._specs: dict[tuple[int, str], tuple[PodSpec, PodSpec]] = {}
        self._time = nan
        self._running = _PENDING

    def running(self, pod: Pod, node: str, epoch: float, marks: dict[str, str] | None) -> Pod:
        """Put a pod on a node, at a moment in seconds since 1970."""
        if epoch != self._time:
            self._time = epoch
            self._running = PodStatus(phase="Running", start_time=time_text(epoch))
        meta = pod.metadata
        if marks:
            meta = msgspec.structs.replace(meta, annotations={**meta.annotations, **marks})
        return Pod(metadata=meta, spec=self._spec(pod.spec, node), status=self._running)

    def finished(self, pod: Pod) -> Pod:
        """Make a pod succeed."""
        return Pod(metadata=pod.metadata, spec=pod.spec, status=_SUCCEEDED)

    def _spec(self, spec: PodSpec, node: str) -> PodSpec:
        key = (id(spec), node)
        known = self._specs.get(key)
        if known is None:
            placed = msgspec.structs.replace(spec, node_name=node)
            known = self._specs[key] = (spec, placed)  # holding the first keeps its id taken
        return known[1]


def nominated(pod: Pod, node: str) -> Pod:
    """Write on a waiting pod the node that it was promised."""
    return msgspec.structs.replace(pod, status=PodStatus(phase="Pending", nominated_node_name=node))


@dataclass(slots=True)
class SimulationCost:
    """The cost of a simulation: numbers of steps, and seconds on the real clock."""

    events: int = 0
    cycles: int = 0
    decisions: int = 0
    deciding_seconds: float = 0.0
    seconds: float = 0.0


@dataclass(slots=True)
class Outcome:
    """A finished simulation: the runs of jobs, and the final tables."""

    runs: list[JobRun]
    log: EventLog
    snapshot: Snapshot
    end: float
    """Time of the last event."""
    cost: SimulationCost = field(default_factory=SimulationCost)
    failures: tuple[str, ...] = ()
    """Errors of plugins, each once: the figures are then not those of the policy."""
    offered: Column | None = None
    """The mean capacity of the cluster (R,), if it changed."""
