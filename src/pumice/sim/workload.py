"""The input of a simulation: jobs with arrival times, and facts about their cluster.

Filled by the readers, read by the engine.  Plain data: nothing here decides or measures.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
from msgspec.structs import replace as changed

from pumice.api.annotations import RUN_SECONDS
from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.meta import KubeObject
from pumice.api.objects import Container, PodGroupSpec, PodSpec, ResourceRequirements

SCHEDULER_NAME = "volcano"


class TaskSpec(msgspec.Struct, frozen=True, gc=False):
    """Equal pods of a job; ``run_seconds`` is how long each runs once it is on a node."""

    spec: PodSpec
    count: int
    run_seconds: float
    role: str = "task"
    pod_name: str = ""
    """The name of a single pod that has one of its own."""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    reruns: tuple[float, ...] = ()
    """How long a pod runs after each eviction, the last of them from then on; none: as before."""
    node: str = ""
    """Where a single pod runs when its job arrives, if it does."""
    is_timed: bool = True
    """Whether its run time is stated; else it is that of equal jobs, if that was learned."""


class JobSpec(msgspec.Struct, frozen=True, gc=False):
    """A gang that arrives at some second; it starts when ``min_member`` of its pods have a node."""

    name: str
    arrival: float
    tasks: tuple[TaskSpec, ...]
    min_member: int
    queue: str = DEFAULT_QUEUE
    namespace: str = "default"
    priority_class: str = ""
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Of its pod group."""
    group: PodGroupSpec | None = None
    """Its pod group if it has more fields than this."""
    late_pods: bool = False
    """Whether its pods are created only once its group is admitted, as for Volcano's own jobs."""
    user: str = ""
    """Who submitted it, if the trace states that."""
    age: float = 0.0
    """Seconds for which it existed before it arrives."""
    evicted: Literal["requeue", "restart", "lose"] | None = None
    """The fate of its evicted pods, if that is known of it; as ``Evicted`` of the options."""

    @property
    def key(self) -> str:
        """Name and namespace, as the scheduler writes them."""
        return f"{self.namespace}/{self.name}"

    @property
    def size(self) -> int:
        """How many pods it has."""
        if len(self.tasks) == 1:
            return self.tasks[0].count
        return sum(task.count for task in self.tasks)

    @property
    def run_seconds(self) -> float:
        """How long its longest pod runs."""
        return max(task.run_seconds for task in self.tasks)

    @property
    def walltime(self) -> float | None:
        """How long its user expects it to run, if that is known: what forecasts go by."""
        text = self.annotations.get(RUN_SECONDS)
        return None if text is None else float(text)


def expected(walltime: float | None) -> dict[str, str]:
    """Return the annotation of a job whose user asked for so many seconds."""
    return {} if walltime is None else {RUN_SECONDS: seconds_text(walltime)}


def seconds_text(seconds: float) -> str:
    """Write seconds to the microsecond, whole ones as such."""
    return str(int(seconds)) if float(seconds).is_integer() else f"{seconds:.6f}".rstrip("0")


@dataclass(frozen=True, slots=True)
class NodeHint:
    """The size of one node of the traced cluster, for a trace that lists no nodes."""

    allocatable: Mapping[str, str]
    count: int | None = None
    """None: as many as the load needs."""


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """An object of the cluster that comes, changes or goes at some second."""

    at: float
    thing: KubeObject
    """As it is from then on; a pod group is that of a job, and goes if its user deletes it."""
    is_gone: bool = False
    empties: bool = False
    """Whether the pods of a node are evicted."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Workload:
    """Jobs in the order of their arrival, the first at second 0."""

    name: str
    format: str
    jobs: tuple[JobSpec, ...]
    objects: tuple[KubeObject, ...] = ()
    """Nodes, queues and other objects that the trace itself describes."""
    node_hint: NodeHint | None = None
    start: float | None = None
    """When the first job arrived, in seconds since 1970, if the trace states it."""
    notes: tuple[str, ...] = ()
    """What the reader left out or assumed, in words."""
    changes: tuple[ClusterChange, ...] = ()
    """What happens to the cluster meanwhile, in order."""
    grace: float = 0.0
    """Seconds for which an evicted pod keeps its place."""

    def __repr__(self) -> str:
        """Return one line: a workload may have millions of jobs."""
        days = (self.jobs[-1].arrival if self.jobs else 0.0) / 86400
        span = f"{days:.3g} days" if days >= 1 else f"{days * 86400:.6g} s"
        pods = sum(job.size for job in self.jobs)
        return f"<Workload {self.name}: {len(self.jobs):,} jobs, {pods:,} pods, over {span}>"

    def first(self, n: int) -> "Workload":
        """Keep the first jobs only."""
        return replace(self, jobs=self.jobs[:n])

    def faster(self, times: float) -> "Workload":
        """Return a workload whose jobs arrive faster by a factor; they run as long as before."""
        return self._with(lambda job: changed(job, arrival=round(job.arrival / times, 6)))

    def with_late_pods(self) -> "Workload":
        """Return a workload whose pods are created only once their jobs are admitted."""
        return self._with(lambda job: changed(job, late_pods=True))

    def _with(self, change: Callable[[JobSpec], JobSpec]) -> "Workload":
        return replace(self, jobs=tuple(map(change, self.jobs)))


def in_order(jobs: Iterable[JobSpec]) -> tuple[JobSpec, ...]:
    """Sort jobs by arrival and name, with times counted from the first.

    Jobs with a repeated name are numbered: each is a job of its own.
    """
    ordered = sorted(jobs, key=lambda job: (job.arrival, job.key))
    start = ordered[0].arrival if ordered else 0.0
    if not math.isclose(start, 0.0):
        ordered = [changed(job, arrival=job.arrival - start) for job in ordered]
    taken = {job.key for job in ordered}
    if len(taken) < len(ordered):
        ordered = _with_unique_names(ordered, taken)
    return tuple(ordered)


def _with_unique_names(jobs: Iterable[JobSpec], taken: set[str]) -> list[JobSpec]:
    seen: set[str] = set()
    found = []
    for job in jobs:
        number, each = 2, job
        while each.key in seen or (each is not job and each.key in taken):
            each = changed(job, name=f"{job.name}-{number}")
            number += 1
        seen.add(each.key)
        found.append(each)
    return found


class PodSpecs:
    """One pod specification for each distinct request, so that equal pods share one object."""

    def __init__(self) -> None:
        self._specs: dict[tuple[object, ...], PodSpec] = {}

    def spec(self, requests: Mapping[str, str], **more: object) -> PodSpec:
        """Return the specification of a pod of one container."""
        key = (*sorted(requests.items()), *sorted((name, repr(x)) for name, x in more.items()))
        known = self._specs.get(key)
        if known is None:
            container = Container(
                name="main", resources=ResourceRequirements(requests=dict(requests))
            )
            known = self._specs[key] = PodSpec(
                scheduler_name=SCHEDULER_NAME,
                containers=(container,),
                **more,  # type: ignore[arg-type]
            )
        return known
