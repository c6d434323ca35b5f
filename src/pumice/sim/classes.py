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
from numpy.typing import NDArray

from pumice.api.meta import ResourceList
from pumice.api.objects import PodGroupSpec, PodSpec
from pumice.cache.requests import learn, pod_request, resource_lists
from pumice.core.resources import CPU, MEMORY, PODS, Column
from pumice.core.snapshot import Snapshot
from pumice.sim.runs import Run
from pumice.sim.workload import JobSpec


class Line:
    """Jobs of one class in the same phase, oldest first; only the first ``shown`` take part."""

    def __init__(self, park: Callable[[Run, bool], None], *, admitted: bool) -> None:
        self.runs: list[Run] = []
        self.shown = 0
        self.admitted = admitted
        self._park = park

    def add(self, run: Run) -> None:
        """Take a job in at its place."""
        at = bisect_left(self.runs, run)
        self.runs.insert(at, run)
        run.line = self
        if at < self.shown:
            self.shown += 1
        else:
            self._park(run, True)  # noqa: FBT003

    def remove(self, run: Run) -> None:
        """Let a job go; it takes part from now on."""
        at = bisect_left(self.runs, run)
        del self.runs[at]
        run.line = None
        if at < self.shown:
            self.shown -= 1
        else:
            self._park(run, False)  # noqa: FBT003

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
    """What it asks for when it wants to be let in (R,): the pods it needs to start."""
    reserve_rows: NDArray[np.intp]
    reserve_amounts: Column
    """The same without resources that are not asked for."""
    to_start: int
    pod_shape: int
    """Number of the one distinct request of its pods; -1 if they differ."""
    least_rows: NDArray[np.intp]
    least_amounts: Column
    """What it needs at least to start, without resources that it does not need."""
    entered: Line
    """Waiting to be let in, and known to the scheduler."""
    admitted: Line
    """Let in, and waiting for nodes."""
    places: list[tuple[int, int]]
    """For each pod, which of the job's tasks it belongs to and its number within its role."""
    fresh: list[Run] = field(default_factory=list)
    """Not known to the scheduler yet, newest first."""

    @property
    def is_waiting(self) -> bool:
        """Whether any job of the class waits."""
        return bool(self.fresh or self.entered.runs or self.admitted.runs)

    def hide(self, run: Run) -> None:
        """Let a job wait unseen."""
        insort(self.fresh, run, key=lambda each: -each.number)


class ClassBook:
    """Finds the class of a job; classes are made as jobs come."""

    def __init__(self, snapshot: Snapshot, park: Callable[[Run, bool], None]) -> None:
        self._snapshot = snapshot
        self._park = park
        self._classes: dict[Hashable, JobClass] = {}
        self._requests: dict[int, tuple[PodSpec, Column]] = {}
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
        reserve[PODS] = 0.0
        if job.group is not None:
            reserve = self._snapshot.resources.vector(job.group.min_resources or {})
        numbers = {self._number(request) for request in requests}
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
            reserve_rows=np.flatnonzero(reserve > 0),
            reserve_amounts=reserve[reserve > 0],
            to_start=to_start,
            pod_shape=numbers.pop() if len(numbers) == 1 else -1,
            least_rows=np.flatnonzero(least > 0),
            least_amounts=least[least > 0],
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
