"""The jobs of a record as a workload: when they came, what they asked for, how long they ran."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import msgspec

from pumice.api.annotations import GROUP_NAME, TASK_SPEC
from pumice.api.kinds import DEFAULT_QUEUE, POD_GROUP, SCHEDULER_NAME, Manifest
from pumice.api.meta import KubeObject
from pumice.api.objects import TYPES, Pod, PodGroup, from_manifest
from pumice.api.times import epoch
from pumice.api.wording import counted
from pumice.errors import InputError, ManifestError, Words
from pumice.record.changes import place_of
from pumice.record.entries import Entry, Place
from pumice.record.history import History, Step
from pumice.sim.workload import JobSpec, TaskSpec, Workload, in_order

_ENDED: Final = ("Succeeded", "Failed")
_OF_JOBS: Final = frozenset({"Pod", POD_GROUP})


@dataclass
class _PodLife:
    """One pod of a job, whichever of its incarnations."""

    manifest: Manifest
    started: float | None = None
    """When its last incarnation got its node."""
    seconds: float | None = None
    """How long an incarnation ran that ended by itself."""


@dataclass
class _JobLife:
    group: Manifest
    came: float
    was_there: bool
    pods: dict[str, _PodLife] = field(default_factory=dict)
    started: float | None = None


@dataclass(frozen=True)
class RecordedWorkload:
    """A workload, its cluster, and when its jobs really started."""

    workload: Workload
    cluster: tuple[KubeObject, ...]
    waits: dict[str, float]
    """Job to the seconds it really waited."""
    unknown: list[str]
    """What the record does not show, in words."""


class _Reading:
    """Gathers jobs and the cluster while a record is read."""

    def __init__(self) -> None:
        self.jobs: dict[str, _JobLife] = {}
        self.cluster: dict[Place, Manifest] = {}
        self.changed_nodes: set[str] = set()
        self.job_of: dict[str, _JobLife] = {}
        """Pod to its job."""
        self.orphans: dict[str, dict[str, tuple[Place, Manifest, float]]] = {}
        """Pods whose job is not known yet, by its name."""
        self.end = 0.0

    def see(self, step: Step, *, is_start: bool) -> None:
        entry, moment = step.entry, step.moment
        self.end = max(self.end, entry.at)
        place = _place(entry)
        if place is None:
            return
        found = moment.objects.get(place)
        if place[0] == POD_GROUP:
            self._see_group(place, found, entry.at, is_start=is_start)
        elif place[0] == "Pod":
            self._see_pod(place, found, entry.at)
        elif found is not None:
            if place[0] == "Node" and place not in self.cluster and not is_start:
                self.changed_nodes.add(place[2])
            self.cluster[place] = found
        elif place[0] == "Node":
            self.changed_nodes.add(place[2])

    def _see_group(
        self, place: Place, found: Manifest | None, at: float, *, is_start: bool
    ) -> None:
        key = f"{place[1]}/{place[2]}"
        if found is not None and key not in self.jobs:
            made = found["metadata"].get("creationTimestamp")
            came = at if is_start or not made else min(at, epoch(made))
            self.jobs[key] = _JobLife(found, came, is_start)
            for each in self.orphans.pop(key, {}).values():
                self._see_pod(*each)

    def _see_pod(self, place: Place, found: Manifest | None, at: float) -> None:
        key = f"{place[1]}/{place[2]}"
        if found is None:
            if key in self.job_of:
                self.job_of[key].pods[key].started = None
            return
        spec, marks = found.get("spec") or {}, found["metadata"].get("annotations") or {}
        group = f"{place[1]}/{marks.get(GROUP_NAME, '')}"
        job_of = self.jobs.get(group)
        if spec.get("schedulerName") != SCHEDULER_NAME or job_of is None:
            self.orphans.setdefault(group, {})[key] = place, found, at
            return
        self.job_of[key] = job_of
        life = job_of.pods.setdefault(key, _PodLife(found))
        if spec.get("nodeName") and life.started is None and life.seconds is None:
            life.started = at
            running = sum(each.started is not None for each in job_of.pods.values())
            needed = (job_of.group.get("spec") or {}).get("minMember") or 1
            if job_of.started is None and running >= needed:
                job_of.started = at
        phase = (found.get("status") or {}).get("phase")
        if phase in _ENDED and life.started is not None and life.seconds is None:
            life.seconds = at - life.started


def recorded_workload(
    history: History, since: float | None = None, until: float | None = None
) -> RecordedWorkload:
    """Read the jobs of a record between two times.

    Raises:
        InputError: there are none.
    """
    reading, first = _Reading(), None
    for step in history.steps(since, until):
        first = step.entry.at if first is None else first
        border = max(first + 1.0, since or 0.0)
        reading.see(step, is_start=step.entry.at <= border)
    known = [each.seconds for job in reading.jobs.values() for each in job.pods.values()]
    usual = median([each for each in known if each is not None] or [60.0])
    jobs = [*_specs(reading, usual)]
    if not jobs:
        raise InputError(
            wanted="jobs with pods in the record", found=Words("none"), file=str(history.folder)
        )
    start = min(job.arrival for job in jobs)
    workload = Workload(name=history.folder.name, format="record", jobs=in_order(jobs), start=start)
    waits = {
        key: job.started - job.came
        for key, job in reading.jobs.items()
        if job.started is not None and not job.was_there
    }
    cluster = tuple(_typed(reading.cluster))
    return RecordedWorkload(workload, cluster, waits, [*_unknown(reading, usual)])


def _specs(reading: _Reading, usual: float) -> Iterator[JobSpec]:
    for key, job in reading.jobs.items():
        if not job.pods:
            continue
        group = from_manifest(job.group)
        assert isinstance(group, PodGroup)  # noqa: S101  # its place says so
        spec = msgspec.structs.replace(group.spec, queue=group.spec.queue or DEFAULT_QUEUE)
        namespace, _, name = key.partition("/")
        yield JobSpec(
            name=name,
            namespace=namespace,
            arrival=job.came,
            tasks=tuple(_task(each, reading.end, usual) for each in job.pods.values()),
            min_member=spec.min_member or 0,
            queue=spec.queue,
            priority_class=spec.priority_class_name,
            annotations=group.metadata.annotations,
            group=spec,
        )


def _task(life: _PodLife, end: float, usual: float) -> TaskSpec:
    pod = from_manifest(life.manifest)
    assert isinstance(pod, Pod)  # noqa: S101  # its place says so
    ran = life.seconds
    if ran is None:
        ran = usual if life.started is None else max(end - life.started, usual)
    meta = pod.metadata
    return TaskSpec(
        spec=msgspec.structs.replace(pod.spec, node_name=""),
        count=1,
        run_seconds=max(ran, 0.001),
        role=meta.annotations.get(TASK_SPEC) or "task",
        pod_name=meta.name,
        labels=meta.labels,
        annotations={k: v for k, v in meta.annotations.items() if k != GROUP_NAME},
    )


def _typed(objects: dict[Place, Manifest]) -> Iterator[KubeObject]:
    for place, manifest in objects.items():
        if place[0] in TYPES and place[0] not in _OF_JOBS:
            try:
                yield from_manifest(manifest)
            except ManifestError:  # a scheduler skips it, too
                continue


def _place(entry: Entry) -> Place | None:
    if entry.put is not None:
        return place_of(entry.put)
    return entry.of or entry.gone


def _unknown(reading: _Reading, usual: float) -> Iterator[str]:
    pods = [each for job in reading.jobs.values() for each in job.pods.values()]
    cut = sum(each.seconds is None and each.started is not None for each in pods)
    never = sum(each.seconds is None and each.started is None for each in pods)
    if cut:
        yield f"{counted(cut, 'pod')} still ran at the end: as long as known, or {usual:g} s"
    if never:
        yield f"{counted(never, 'pod')} never ran to an end: {usual:g} s each, as the median"
    foreign = sum(map(len, reading.orphans.values()))
    if foreign:
        yield f"{counted(foreign, 'pod')} without a job or of another scheduler left out"
    if reading.changed_nodes:
        changed = counted(len(reading.changed_nodes), "node")
        yield f"{changed} came or went: all nodes exist from the beginning"
