"""A record as a workload: its jobs, their true run times, and a cluster that changes meanwhile."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any, Final

import msgspec

from pumice.api.annotations import GROUP_NAME, TASK_SPEC
from pumice.api.kinds import (
    DEFAULT_QUEUE,
    ENDED_PHASES,
    GRACE_PERIOD_S,
    HYPER_NODE,
    JOB,
    POD_GROUP,
    PRIORITY_CLASS,
    QUEUE,
    Manifest,
)
from pumice.api.meta import KubeObject
from pumice.api.objects import TYPES, Node, Pod, PodGroup, PodSpec, Queue, from_manifest
from pumice.api.run_times import run_time
from pumice.api.wording import counted
from pumice.controllers.base import controller_of
from pumice.controllers.job.objects import expand
from pumice.controllers.view import ManifestView
from pumice.diagnosis.cluster_state import title_of
from pumice.errors import InputError, ManifestError, Words
from pumice.records.changes import place_of
from pumice.records.entries import Entry, Place
from pumice.records.history import History, Step
from pumice.replay.recorded_jobs import JobLife, Part, PodLife, RecordedJobs, lives_of
from pumice.sim.inputs import SimulationInput
from pumice.sim.options import Evicted, SimulationOptions
from pumice.sim.workload import ClusterChange, JobSpec, TaskSpec, Workload, in_order
from pumice.webhooks.files import stored_job

_OF_JOBS: Final = frozenset({"Pod", POD_GROUP, JOB})
_TIMED: Final = frozenset({"Node", QUEUE, PRIORITY_CLASS, HYPER_NODE})
"""Kinds whose changes count; others are as they were last."""
_SHORTEST_S: Final = 0.001
_BUSY: Final = 0.25
"""Part of the times between two cycles that are taken for those of a busy scheduler."""


@dataclass(frozen=True)
class RecordedWorkload:
    """A workload, its cluster, and what really became of its jobs."""

    workload: Workload
    cluster: tuple[KubeObject, ...]
    last: dict[str, float]
    """Job that did not start to when it was last seen, in seconds since the first arrival."""
    waits: dict[str, float | None]
    """Job to the seconds that it really waited; None if it did not start."""
    nodes: dict[str, str]
    """Pod to the node that it was really given first."""
    evicted: dict[str, int]
    """Pod to how often it was really evicted, or lost with its node."""
    titles: dict[str, str]
    """Job to the name under which its user knows it."""
    seed: int = 0
    """Of the scheduler that was recorded, if it was ours."""
    unknown: list[str] = field(default_factory=list)
    """What the record does not show, in words."""
    options: SimulationOptions = field(default_factory=SimulationOptions)
    """With cycles as far apart as those of the scheduler that was recorded."""

    @property
    def setup(self) -> SimulationInput:
        """What is simulated."""
        return SimulationInput(self.workload, self.cluster)


class _Cluster:
    """The objects of a cluster besides its jobs, and how they change."""

    def __init__(self) -> None:
        self.first: dict[Place, KubeObject] = {}
        self._known: dict[Place, KubeObject] = {}
        self.changes: list[ClusterChange] = []
        self.foreign: set[Place] = set()
        """Pods of other schedulers that had a node."""

    def see(self, place: Place, found: Manifest | None, at: float, *, is_start: bool) -> None:
        """Take an object as it is from then on."""
        thing, known = _typed(found), self._known.get(place)
        if thing is None and known is None:
            return
        if place[0] not in _TIMED or is_start:
            if thing is not None:
                self._known[place] = self.first[place] = thing
            elif is_start:
                del self._known[place], self.first[place]
        elif thing is None:
            assert known is not None  # noqa: S101  # else nothing was there to go
            self.changes.append(ClusterChange(at, known, is_gone=True))
            del self._known[place]
        elif known is None or _content(thing) != _content(known):
            self.changes.append(ClusterChange(at, thing))
            self._known[place] = thing

    def see_foreign(self, place: Place, found: Manifest | None, at: float) -> None:
        """Take a pod of another scheduler: it fills its node as long as it did."""
        pod = found or {}
        has_node = bool((pod.get("spec") or {}).get("nodeName"))
        is_over = not pod or (pod.get("status") or {}).get("phase") in ENDED_PHASES
        known = self._known.get(place)
        if known is None and has_node and not is_over:
            thing = _typed(found)
            if thing is not None:
                self._known[place] = thing
                self.foreign.add(place)
                self.changes.append(ClusterChange(at, thing))
        elif known is not None and is_over:
            self.changes.append(ClusterChange(at, self._known.pop(place), is_gone=True))

    def drain(self, at: float, node: str) -> None:
        """Note that a node was emptied."""
        thing = self._known.get(("Node", "", node))
        if thing is not None:
            self.changes.append(ClusterChange(at, thing, empties=True))


def _content(thing: KubeObject) -> object:
    """Return what of an object decides."""
    meta = thing.metadata
    if isinstance(thing, Queue):
        return thing.spec, thing.status.state, meta.annotations, meta.labels
    if isinstance(thing, Node):
        return thing.spec, thing.status, meta.annotations, meta.labels
    return msgspec.structs.replace(thing, metadata=msgspec.structs.replace(
        meta, resource_version="", generation=None
    ))  # fmt: skip


def _typed(manifest: Manifest | None) -> KubeObject | None:
    """Read an object; None for one that a scheduler skips, too."""
    if manifest is None:
        return None
    try:
        return from_manifest(manifest)
    except ManifestError:
        return None


class _Reading:
    """Gathers jobs and the cluster while a record is read."""

    def __init__(self, since: float | None) -> None:
        self.jobs = RecordedJobs()
        self.cluster = _Cluster()
        self.volcano_jobs: dict[tuple[str, str], Manifest] = {}
        self.seed = 0
        self._since = since
        self._first: float | None = None
        self.end = 0.0
        self._cycles: list[float] = []

    @property
    def period(self) -> float:
        """How far apart the cycles of a busy scheduler are; those of others are not known."""
        gaps = sorted(later - one for one, later in pairwise(self._cycles) if later > one)
        usual = SimulationOptions().period
        return max(usual, round(gaps[int(_BUSY * len(gaps))], 1)) if gaps else usual

    @property
    def start(self) -> float:
        """When the part of the record begins that counts."""
        return max(self._first or 0.0, self._since or 0.0)

    def see(self, step: Step) -> None:
        """Take one step of the record."""
        at = step.entry.at
        self._first = at if self._first is None else self._first
        self.end = max(self.end, at)
        self.seed = step.moment.settings.seed
        if step.entry.cycle is not None:
            self.jobs.chosen |= step.entry.cycle.evictions.keys()
            self._cycles.append(at)
        place = _place(step.entry)
        if place is None or _is_skipped(place, step.moment.objects.get(place)):
            return
        is_start = at <= max(self._first + 1.0, self._since or 0.0)
        found = step.moment.objects.get(place)
        if place[0] == "Pod":
            n_drained = len(self.jobs.drained)
            if not self.jobs.see_pod(place, found, step):
                self.cluster.see_foreign(place, found, at)
            for each in self.jobs.drained[n_drained:]:
                self.cluster.drain(each.at, each.node)
        elif place[0] == POD_GROUP:
            self.jobs.see_group(place, found, at, is_start=is_start)
        elif place[0] == JOB:
            if found is not None:
                self.volcano_jobs[place[1], place[2]] = found
        elif place[0] in TYPES:
            self.cluster.see(place, found, at, is_start=is_start)


def _is_skipped(place: Place, found: Manifest | None) -> bool:
    """Return whether a scheduler cannot read an object."""
    return found is not None and place[0] in TYPES and _typed(found) is None


def _place(entry: Entry) -> Place | None:
    if entry.put is not None:
        return place_of(entry.put)
    return entry.of or entry.gone


def recorded_workload(
    history: History, since: float | None = None, until: float | None = None
) -> RecordedWorkload:
    """Read the jobs of a record between two times.

    Raises:
        InputError: there are none.
    """
    reading = _Reading(since)
    for step in history.steps(since, until):
        reading.see(step)
    making = _Making(reading)
    jobs = [*making.jobs()]
    if not jobs:
        raise InputError(
            wanted="jobs with pods in the record", found=Words("none"), file=str(history.folder)
        )
    base = min(job.arrival for job in jobs)
    changes = [*reading.cluster.changes, *making.changes]
    workload = Workload(
        name=history.folder.name,
        format="record",
        jobs=in_order(jobs),
        start=base,
        grace=median(reading.jobs.terminated or [GRACE_PERIOD_S]),
        changes=tuple(
            ClusterChange(max(each.at - base, 0.0), each.thing, each.is_gone, each.empties)
            for each in sorted(changes, key=lambda each: each.at)
        ),
    )
    return RecordedWorkload(
        workload=workload,
        cluster=tuple(reading.cluster.first.values()),
        last={key: at - base for key, at in making.last.items()},
        waits=making.waits,
        nodes=making.nodes,
        evicted=making.evicted,
        seed=reading.seed,
        titles=making.titles,
        unknown=[*making.unknown()],
        options=SimulationOptions(period=reading.period),
    )


class _Making:
    """Makes jobs of a simulation of what was read."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._start, self._end = reading.start, reading.end
        self._specs: dict[bytes, PodSpec] = {}
        self.changes: list[ClusterChange] = []
        self.waits: dict[str, float | None] = {}
        self.last: dict[str, float] = {}
        self.nodes: dict[str, str] = {}
        self.evicted: dict[str, int] = {}
        self.titles: dict[str, str] = {}
        self._n_cut = self._n_never = self._n_kept = 0
        known = (
            part for _, job in reading.jobs for life in job.pods.values() for part in life.parts
        )
        self.usual = median([each.seconds(self._end) for each in known if each.is_ended] or [60.0])
        """How long a pod runs of which nothing is known."""

    def jobs(self) -> Iterator[JobSpec]:
        """Yield the jobs that were there in the time that counts."""
        taken: set[str] = set()
        for key, job in self._reading.jobs:
            tasks = [*self._tasks(key.partition("/")[0], job)]
            if not tasks or (job.deleted is not None and job.deleted <= self._start):
                continue
            name, number = key, 2
            while name in taken:  # as a job that came later under the same name
                name, number = f"{key}-{number}", number + 1
            taken.add(name)
            yield self._job(name, job, tasks)

    def _job(self, key: str, job: JobLife, tasks: list[TaskSpec]) -> JobSpec:
        group = _group(job.group, len(tasks))
        spec = group.spec
        namespace, _, name = key.partition("/")
        self.titles[key] = title_of(job.group)
        for at, manifest in job.regrouped:
            if at > self._start:
                self.changes.append(ClusterChange(at, _named(_group(manifest, len(tasks)), name)))
        if job.cancelled is not None:
            self.changes.append(ClusterChange(job.cancelled, _named(group, name), is_gone=True))
        if not job.was_there:
            self.waits[key] = None if job.started is None else job.started - job.came
            if job.started is None:
                self.last[key] = self._end if job.deleted is None else job.deleted
        return JobSpec(
            name=name,
            namespace=namespace,
            arrival=max(job.came, self._start),
            age=max(max(job.came, self._start) - job.created, 0.0),
            tasks=tuple(tasks),
            min_member=spec.min_member or 0,
            queue=spec.queue,
            priority_class=spec.priority_class_name,
            annotations=group.metadata.annotations,
            group=spec,
            late_pods=job.makes_pods_late,
            evicted=self._fate(namespace, job),
        )

    def _fate(self, namespace: str, job: JobLife) -> Evicted:
        """Return what becomes of evicted pods of a job, as their controller decides it."""
        if not any(controller_of(life.manifest) for life in lives_of(job)):
            return "requeue" if job.makes_pods_late or not job.pods else "lose"
        known = self._volcano_job(namespace, job) or {}
        policies = (known.get("spec") or {}).get("policies") or ()
        for policy in policies:
            events = {policy.get("event"), *(policy.get("events") or ())}
            if policy.get("action") == "RestartJob" and events & {"PodEvicted", "*"}:
                return "restart"
        return "requeue"

    def _volcano_job(self, namespace: str, job: JobLife) -> Manifest | None:
        owner = controller_of(job.group) or {}
        known = self._reading.volcano_jobs.get((namespace, str(owner.get("name"))))
        try:
            return None if known is None else stored_job(known)
        except ManifestError:  # no cluster stores it
            return None

    def _tasks(self, namespace: str, job: JobLife) -> Iterator[TaskSpec]:
        lives = lives_of(job) or [*self._expected(namespace, job)]
        for life in lives:
            if life.is_done and (life.parts[-1].until or 0.0) <= self._start:
                continue  # it had ended before
            pod = _typed(life.manifest)
            if isinstance(pod, Pod):
                yield self._task(pod, life, job)

    def _expected(self, namespace: str, job: JobLife) -> Iterator[PodLife]:
        """Yield pods that a Volcano job would have got once it was admitted."""
        known = self._volcano_job(namespace, job)
        if known is None:
            return
        try:
            expansion = expand(known, ManifestView())
            for task in expansion.tasks:
                for pod in expansion.new_pods(task):
                    yield PodLife(pod["metadata"]["name"], pod)
        except ManifestError:  # the controller made none either
            return

    def _task(self, pod: Pod, life: PodLife, job: JobLife) -> TaskSpec:
        parts = [part for part in life.parts if part.until is None or part.until > self._start]
        key = f"{pod.metadata.namespace}/{life.name}"
        is_running = bool(parts) and parts[0].since <= self._start
        if parts:
            self.nodes[key] = parts[0].node
        cut = sum(part.is_cut for part in parts)
        if cut:
            self.evicted[key] = cut
        first, reruns = self._seconds(parts, job, _stated(pod, self.usual))
        meta = pod.metadata
        spec = msgspec.structs.replace(pod.spec, node_name="")
        return TaskSpec(
            spec=self._specs.setdefault(msgspec.json.encode(spec), spec),
            count=1,
            run_seconds=first,
            reruns=reruns,
            node=parts[0].node if is_running else "",
            role=meta.annotations.get(TASK_SPEC) or "task",
            pod_name=life.name,
            labels=meta.labels,
            annotations={k: v for k, v in meta.annotations.items() if k != GROUP_NAME},
        )

    def _seconds(
        self, parts: list[Part], job: JobLife, usual: float
    ) -> tuple[float, tuple[float, ...]]:
        """Return how long a pod runs if nobody disturbs it, and after each eviction.

        An evicted pod begins at the beginning, so that its last part is its run time; if an evicted
        part was longer, it must have kept its work, and the run time is the sum.
        """
        cut = [self._length(each) for each in parts if each.is_cut]
        own = [each for each in parts if not each.is_cut]
        last = sum(self._length(each) for each in own)
        if own and own[-1].until is None:
            self._n_cut += 1
            last = max(last, usual)
        elif not own:
            self._n_never += 1
            last = max([usual, *cut])
            if job.cancelled is not None:
                last = max(last, job.cancelled - job.came)  # until it was deleted
        if not cut:
            return max(last, _SHORTEST_S), ()
        self._n_kept += max(cut) > last
        first = last if max(cut) <= last else last + sum(cut)
        return max(first, _SHORTEST_S), (
            *(max(each, last) for each in cut[1:]),
            max(last, _SHORTEST_S),
        )

    def _length(self, part: Part) -> float:
        return part.seconds(self._end) - max(self._start - part.since, 0.0)

    def unknown(self) -> Iterator[str]:
        """Yield what the record does not show, in words."""
        usual = f"as stated, else {self.usual:g} s, the median"
        for count, what, words in (
            (self._n_cut, "pod", f"still ran at the end: as long as known, or {usual}"),
            (self._n_never, "pod", f"never ran to an end: {usual}"),
            (self._n_kept, "evicted pod", "kept work: without evictions the sum of the parts"),
            (len(self._reading.cluster.foreign), "pod", "of other schedulers: where they were"),
            (self._reading.jobs.n_orphans, "pod", "without a job: left out"),
        ):
            if count:
                yield f"{counted(count, what)} {words}"


def _stated(pod: Pod, usual: float) -> float:
    """Return how long the user expects a pod to run, if that is stated."""
    stated = run_time([pod.metadata.annotations]).estimate
    return usual if stated is None else stated


def _group(manifest: Mapping[str, Any], pods: int) -> PodGroup:
    group = _typed(dict(manifest))
    assert isinstance(group, PodGroup)  # noqa: S101  # its place says so
    spec = msgspec.structs.replace(
        group.spec,
        queue=group.spec.queue or DEFAULT_QUEUE,
        min_member=min(group.spec.min_member or 0, pods),  # others had ended before
    )
    return msgspec.structs.replace(group, spec=spec)


def _named(group: PodGroup, name: str) -> PodGroup:
    return msgspec.structs.replace(
        group, metadata=msgspec.structs.replace(group.metadata, name=name)
    )
