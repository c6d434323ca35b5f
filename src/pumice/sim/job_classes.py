"""Classes of jobs with equal requests, and what follows from the request alone."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.meta import ResourceList
from pumice.api.objects import PodGroupSpec, PodSpec
from pumice.cache.job_rows import Priorities
from pumice.cache.requests import learn, pod_request, resource_lists
from pumice.core.resources import CPU, MEMORY, PODS, Column, is_coarse
from pumice.core.snapshot import Snapshot
from pumice.core.tables import PENDING, Delta
from pumice.sim.workload import JobSpec

Amounts = tuple[tuple[int, float], ...]
"""Rows of resources and amounts above zero: for so few, plain numbers are faster than arrays."""


@dataclass(frozen=True, slots=True, eq=False)
class JobClass:
    """The common part of equal jobs."""

    size: int
    queue: str
    group: PodGroupSpec
    request: Column
    """Of all its pods (R,)."""
    requested_amounts: Amounts
    """The same, resource by resource, without those that it does not request."""
    reserve: Column
    """Its request for admission (R,): the pods it needs to start."""
    reserved_amounts: Amounts
    """The same, resource by resource, without pods and unrequested resources."""
    to_start: int
    pod_shape: int
    """Number of the one distinct request of its pods; -1 if they differ."""
    is_steady: bool
    """Whether it stays without nodes as long as nothing is released: its pods are all alike and
    depend on nothing but room."""
    least_amounts: Amounts
    """Its minimum to start, resource by resource."""
    quota_amounts: Amounts
    """The same without pods, which no queue limits."""
    specs: tuple[PodSpec, ...]
    """Of each of its tasks, with the priority that the API server writes."""
    late_pods: bool
    """Whether its pods are created only once it is admitted."""
    places: list[tuple[int, int]]
    """For each pod, which of the job's tasks it belongs to and its number within its role."""

    is_coarse: bool
    """Whether its amounts are too large for exact sums."""
    waits: Delta | None
    """What one counts that waits to be admitted: its request, if its pods exist by then."""


class JobClasses:
    """Finds the class of a job; classes are made as jobs arrive."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._classes: dict[Hashable, JobClass] = {}
        self._requests: dict[int, tuple[PodSpec, Column]] = {}
        self._specs: dict[int, PodSpec] = {}
        self.pod_requests: list[Column] = []
        """Distinct requests of pods (R,)."""
        self._numbers: dict[bytes, int] = {}

    def learn(self, jobs: Sequence[JobSpec]) -> None:
        """Add a row for every resource that jobs request, before anything is counted."""
        for spec in {id(task.spec): task.spec for job in jobs for task in job.tasks}.values():
            learn(self._snapshot, *resource_lists(spec))
        for job in jobs:
            if job.group is not None:
                learn(self._snapshot, job.group.min_resources)

    def of(self, job: JobSpec) -> JobClass:
        """Return the class of a job."""
        key = (
            job.namespace,
            job.queue,
            job.priority_class,
            job.min_member,
            job.late_pods,
            *_marks(job.annotations),
            b"" if job.group is None else msgspec.json.encode(job.group),
            *[
                (id(task.spec), task.count, task.role, *_marks(task.labels, task.annotations))
                for task in job.tasks
            ],
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
        reserve[PODS] = 0.0  # no limit counts the number of pods
        numbers = {self._number(request) for request in requests}
        shape = numbers.pop() if len(numbers) == 1 else -1
        queue = job.queue or DEFAULT_QUEUE  # where the tables count a group that names none
        group = job.group or PodGroupSpec(
            min_member=job.min_member,
            queue=queue,
            priority_class_name=job.priority_class,
            min_resources=self._amounts(reserve),
        )
        to_start = max(job.min_member, 1)
        request = sum((r * n for r, n in zip(requests, counts, strict=True)), start=0.0 * reserve)
        least = np.minimum.reduce(requests) * to_start
        return JobClass(
            size=job.size,
            queue=queue,
            group=group,
            request=request,
            requested_amounts=above_zero(request),
            reserve=reserve,
            reserved_amounts=above_zero(reserve, pods=False),
            to_start=to_start,
            pod_shape=shape,
            is_steady=shape >= 0 and not any(_looks_around(task.spec) for task in job.tasks),
            least_amounts=above_zero(least),
            quota_amounts=above_zero(least, pods=False),
            specs=tuple(self._prioritised(task.spec) for task in job.tasks),
            late_pods=job.late_pods,
            places=_places(job),
            is_coarse=is_coarse(np.maximum(request, reserve)),
            waits=None if job.late_pods else _as_pending(request),
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
            value = spec.priority
            if value is None:
                value = Priorities(self._snapshot).of_pod(spec.priority_class_name)
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


def _as_pending(request: Column) -> Delta:
    sums = np.zeros((3, len(request)))
    sums[PENDING] = request
    return sums


def above_zero(amounts: Column, *, pods: bool = True) -> Amounts:
    """Return the amounts above zero, with or without the number of pods."""
    return tuple(
        (row, amount)
        for row, amount in enumerate(amounts.tolist())
        if amount > 0 and (pods or row != PODS)
    )


def _looks_around(spec: PodSpec) -> bool:
    """Return whether a pod depends on other pods, or on volumes."""
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
    return tuple([tuple(sorted(each.items())) if each else () for each in mappings])
