"""Jobs that ask for the same, and the lines in which they wait.

Of equal jobs of one queue the oldest goes first, so that it is enough to know how many of a class
could possibly get something: the others need not be looked at.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from pumice.api.meta import ResourceList
from pumice.api.objects import PodGroupSpec, PodSpec
from pumice.cache.requests import learn, pod_request, resource_lists
from pumice.core.resources import CPU, MEMORY, PODS, Column
from pumice.core.snapshot import Snapshot
from pumice.sim.job_run import JobRun
from pumice.sim.workload import JobSpec

Items = tuple[tuple[int, float], ...]
"""Rows of resources and amounts above zero: for so few, plain numbers are faster than arrays."""


class Line:
    """Jobs of one class in the same phase, oldest first; only the first ``shown`` take part."""

    def __init__(self, park: Callable[[JobRun, bool], None], *, admitted: bool) -> None:
        self.runs: list[JobRun] = []
        self.shown = 0
        self.admitted = admitted
        self._park = park

    def add(self, run: JobRun) -> None:
        """Take a job in at its place."""
        at = bisect_left(self.runs, run)
        self.runs.insert(at, run)
        run.line = self
        if at < self.shown:
            self.shown += 1
        else:
            self._park(run, True)  # noqa: FBT003

    def remove(self, run: JobRun) -> None:
        """Let a job go; it takes part from now on."""
        at = bisect_left(self.runs, run)
        del self.runs[at]
        run.line = None
        if at < self.shown:
            self.shown -= 1
        else:
            self._park(run, False)  # noqa: FBT003

    def shows(self, run: JobRun) -> bool:
        """Say whether one of its jobs takes part."""
        return bisect_left(self.runs, run) < self.shown

    def show(self, n: int) -> None:
        """Let the first n take part and no others."""
        n = min(n, len(self.runs))
        for run in self.runs[self.shown : n]:
            self._park(run, False)  # noqa: FBT003
        for run in self.runs[n : self.shown]:
            self._park(run, True)  # noqa: FBT003
        self.shown = n


@dataclass(slots=True)
class JobClass:
    """What equal jobs share: their request, and the lines of those that wait."""

    size: int
    queue: str
    group: PodGroupSpec
    request: Column
    """Of all its pods (R,)."""
    reserve: Column
    """What it asks for when it wants to be admitted (R,): the pods it needs to start."""
    reserve_items: Items
    """The same, resource by resource, pods and what is not asked for left out."""
    to_start: int
    pod_shape: int
    """Number of the one distinct request of its pods; -1 if they differ."""
    is_steady: bool
    """Whether it stays without nodes as long as nothing is given back: its pods are all alike and
    look at nothing but room."""
    least_items: Items
    """What it needs at least to start, resource by resource."""
    quota_items: Items
    """The same without pods, which no queue is held to."""
    entered: Line
    """Waiting to be admitted, and known to the scheduler."""
    admitted: Line
    """Admitted, and waiting for nodes."""
    specs: tuple[PodSpec, ...]
    """Of each of its tasks, with the priority that the API server writes."""
    late_pods: bool
    """Whether its pods are made only once it is admitted."""
    places: list[tuple[int, int]]
    """For each pod, which of the job's tasks it belongs to and its number within its role."""
    fresh: list[JobRun] = field(default_factory=list)
    """Not known to the scheduler yet, newest first."""

    @property
    def asked_early(self) -> Column | None:
        """What it asks for before it is admitted; None if its pods are not made by then."""
        return None if self.late_pods else self.request

    @property
    def is_waiting(self) -> bool:
        """Whether any job of the class waits."""
        return bool(self.fresh or self.entered.runs or self.admitted.runs)

    def hide(self, run: JobRun) -> None:
        """Let a job wait unseen."""
        insort(self.fresh, run, key=lambda each: -each.number)


class JobClasses:
    """Finds the class of a job; classes are made as jobs come."""

    def __init__(self, snapshot: Snapshot, park: Callable[[JobRun, bool], None]) -> None:
        self._snapshot = snapshot
        self._park = park
        self._classes: dict[Hashable, JobClass] = {}
        self._requests: dict[int, tuple[PodSpec, Column]] = {}
        self._specs: dict[int, PodSpec] = {}
        self.pod_requests: list[Column] = []
        """Distinct requests of pods (R,)."""
        self._numbers: dict[bytes, int] = {}

    def learn(self, specs: Sequence[PodSpec]) -> None:
        """Give every resource that pods ask for a row, before anything is counted."""
        for spec in specs:
            learn(self._snapshot, *resource_lists(spec))

    def of(self, job: JobSpec) -> JobClass:
        """Give the class of a job."""
        key = (
            job.namespace,
            job.queue,
            job.priority_class,
            job.min_member,
            job.late_pods,
            *_marks(job.annotations),
            b"" if job.group is None else msgspec.json.encode(job.group),
            *(
                (id(task.spec), task.count, task.role, *_marks(task.labels, task.annotations))
                for task in job.tasks
            ),
        )
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = self._make(job)
        return known

    def _make(self, job: JobSpec) -> JobClass:
        requests = [self._request(task.spec) for task in job.tasks]
        counts = [task.count for task in job.tasks]
        reserve, left = np.zeros_like(requests[0]), max(job.min_member, 1)
        for request, count in zip(requests, counts, strict=True):
            reserve += request * min(left, count)
            left -= min(left, count)
        if job.group is not None:
            reserve = self._snapshot.resources.vector(job.group.min_resources or {})
        reserve[PODS] = 0.0  # nobody holds jobs back for the number of their pods
        numbers = {self._number(request) for request in requests}
        shape = numbers.pop() if len(numbers) == 1 else -1
        group = job.group or PodGroupSpec(
            min_member=job.min_member,
            queue=job.queue,
            priority_class_name=job.priority_class,
            min_resources=self._amounts(reserve),
        )
        to_start = max(job.min_member, 1)
        least = np.minimum.reduce(requests) * to_start
        return JobClass(
            size=job.size,
            queue=job.queue,
            group=group,
            request=sum(
                (r * n for r, n in zip(requests, counts, strict=True)), start=0.0 * reserve
            ),
            reserve=reserve,
            reserve_items=_items(reserve, pods=False),
            to_start=to_start,
            pod_shape=shape,
            is_steady=shape >= 0 and not any(_looks_around(task.spec) for task in job.tasks),
            least_items=_items(least, pods=True),
            quota_items=_items(least, pods=False),
            specs=tuple(self._prioritised(task.spec) for task in job.tasks),
            late_pods=job.late_pods,
            places=_places(job),
            entered=Line(self._park, admitted=False),
            admitted=Line(self._park, admitted=True),
        )

    def _request(self, spec: PodSpec) -> Column:
        known = self._requests.get(id(spec))
        if known is None:
            request = pod_request(spec, self._snapshot.resources)
            known = self._requests[id(spec)] = (spec, request)  # holding it keeps its id taken
        return known[1]

    def _prioritised(self, spec: PodSpec) -> PodSpec:
        """Write the priority of its class on a pod, as the API server does."""
        known = self._specs.get(id(spec))
        if known is None:
            classes = self._snapshot.kind("PriorityClass").values()
            value = spec.priority
            if value is None and spec.priority_class_name:
                named = (c.value for c in classes if c.metadata.name == spec.priority_class_name)
                value = next(named, 0)
            elif value is None:
                value = min((c.value for c in classes if c.global_default), default=0)
            known = self._specs[id(spec)] = msgspec.structs.replace(spec, priority=value)
        return known

    def _number(self, request: Column) -> int:
        key = request.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.pod_requests)
            self.pod_requests.append(request)
        return self._numbers[key]

    def _amounts(self, amounts: Column) -> ResourceList:
        """Write amounts as quantities."""
        names = self._snapshot.resources.names
        return {
            names[row]: str(int(amounts[row])) if row in (MEMORY, PODS) else f"{int(amounts[row])}m"
            for row in (CPU, MEMORY, *range(PODS + 1, len(names)))
            if amounts[row] > 0
        }


def _items(amounts: Column, *, pods: bool) -> Items:
    return tuple(
        (row, amount)
        for row, amount in enumerate(amounts.tolist())
        if amount > 0 and (pods or row != PODS)
    )


def _looks_around(spec: PodSpec) -> bool:
    """Tell pods that look at other pods, or at volumes."""
    wishes = spec.affinity
    near = wishes is not None and (wishes.pod_affinity or wishes.pod_anti_affinity)
    claims = any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes)
    return bool(near or spec.topology_spread_constraints or claims)


def _places(job: JobSpec) -> list[tuple[int, int]]:
    n_of_role: Counter[str] = Counter()
    places = []
    for number, task in enumerate(job.tasks):
        for _ in range(task.count):
            places.append((number, n_of_role[task.role]))
            n_of_role[task.role] += 1
    return places


def _marks(*mappings: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], ...]:
    return tuple(tuple(sorted(each.items())) for each in mappings)
