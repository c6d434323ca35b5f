"""The lives of jobs in a record: when they came, what their pods did, and how they ended."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pumice.api.annotations import GROUP_NAME, TASK_SPEC
from pumice.api.kinds import ENDED_PHASES, JOB, Manifest, kind_of
from pumice.api.times import epoch
from pumice.controllers.base import controller_of
from pumice.records.entries import Place
from pumice.records.history import Step

_DISRUPTED: Final = frozenset({"Evict", "Evicted", "Preempting", "NodeLost", "NodeShutdown"})
"""Reasons in the status of a pod that did not end by itself."""


@dataclass
class Part:
    """A pod on a node, from one time to another."""

    node: str
    since: float
    until: float | None = None
    """None: to the end of the record."""
    is_ended: bool = False
    """Whether it ended by itself."""
    is_cut: bool = False
    """Whether it was evicted or lost with its node."""

    def seconds(self, end: float) -> float:
        """Return how long it took; ``end`` is that of the record."""
        return (end if self.until is None else self.until) - self.since


@dataclass
class PodLife:
    """One pod of a job, with those that took its place after it was evicted."""

    name: str
    manifest: Manifest
    parts: list[Part] = field(default_factory=list)
    is_gone: bool = False
    """Whether there is no such pod at present."""

    @property
    def is_done(self) -> bool:
        """Whether the last part ended by itself."""
        return bool(self.parts) and self.parts[-1].is_ended

    @property
    def waits(self) -> bool:
        """Whether it has no node and needs one."""
        return not self.parts or self.parts[-1].is_cut

    @property
    def open(self) -> Part | None:
        """The part that lasts."""
        return self.parts[-1] if self.parts and self.parts[-1].until is None else None


@dataclass
class JobLife:
    """One pod group and its pods."""

    group: Manifest
    """As it was when it came."""
    came: float
    created: float
    was_there: bool
    """Whether it came before the record, or the part of it, begins."""
    pods: dict[str, PodLife] = field(default_factory=dict)
    started: float | None = None
    """When it had, for the first time, as many pods on nodes as it needs."""
    regrouped: list[tuple[float, Manifest]] = field(default_factory=list)
    """Changes of its specification."""
    deleted: float | None = None
    cancelled: float | None = None
    """When it was deleted while some of its pods waited."""

    @property
    def needed(self) -> int:
        """How many pods it needs."""
        return int((self.group.get("spec") or {}).get("minMember") or 1)

    @property
    def makes_pods_late(self) -> bool:
        """Whether its pods are created once it is admitted, as for a Volcano job."""
        owner = controller_of(self.group)
        return owner is not None and kind_of(owner) == JOB


@dataclass(frozen=True)
class Drained:
    """A node from which pods were removed by something other than a scheduler."""

    at: float
    node: str


class RecordedJobs:
    """Gathers the lives of jobs while a record is read."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobLife] = {}
        self.drained: list[Drained] = []
        self.chosen: set[str] = set()
        """Pods that a scheduler wanted to evict, and that are not gone yet; it may be refused."""
        self._evicted: set[str] = set()
        """Pods that were evicted, and that are not gone yet."""
        self.terminated: list[float] = []
        """Seconds from the mark of a deletion to the end of a pod."""
        self._terminating: dict[str, float] = {}
        self._finished: list[tuple[str, JobLife]] = []
        """Jobs of which another of the same name came later."""
        self._job_of: dict[str, JobLife] = {}
        """Pod to its job."""
        self._orphans: dict[str, dict[str, tuple[Place, Manifest, Step]]] = {}
        """Pods whose job is not known yet, by its name."""

    def __iter__(self) -> Iterator[tuple[str, JobLife]]:
        """Yield all jobs with their names, in the order in which they came."""
        yield from self._finished
        yield from self.jobs.items()

    def see_group(self, place: Place, group: Manifest | None, at: float, *, is_start: bool) -> None:
        """Take a pod group as it is from then on."""
        key = f"{place[1]}/{place[2]}"
        known = self.jobs.get(key)
        if group is None:
            if known is not None:
                _delete(known, at)
            return
        if known is not None and known.deleted is None:
            last = known.regrouped[-1][1] if known.regrouped else known.group
            if group.get("spec") != last.get("spec"):
                known.regrouped.append((at, group))
            return
        if known is not None:
            self._finished.append((key, known))
        made = group["metadata"].get("creationTimestamp")
        created = min(at, epoch(made)) if made else at
        self.jobs[key] = JobLife(group, at if is_start else created, created, is_start)
        for each in self._orphans.pop(key, {}).values():
            self.see_pod(*each)

    def see_pod(self, place: Place, pod: Manifest | None, step: Step) -> bool:
        """Take a pod as it is from then on; return whether it is one of ours."""
        key, at = f"{place[1]}/{place[2]}", step.entry.at
        if pod is None:
            self._orphans_without(key)
            return self._lose(key, step)
        if (pod.get("spec") or {}).get("schedulerName") not in step.moment.settings.names:
            return False
        group = f"{place[1]}/{(pod['metadata'].get('annotations') or {}).get(GROUP_NAME, '')}"
        job = self.jobs.get(group)
        if job is None or (job.deleted is not None and key not in self._job_of):
            self._orphans.setdefault(group, {})[key] = place, pod, step
            return True
        life = self._life(job, key, pod)
        if (pod.get("spec") or {}).get("nodeName") and life.open is None and not life.is_done:
            life.parts.append(Part(pod["spec"]["nodeName"], at))
            if job.started is None and _running(job) >= job.needed:
                job.started = at
        status = pod.get("status") or {}
        part = life.open
        if part is not None and pod["metadata"].get("deletionTimestamp"):
            self._terminating.setdefault(key, at)
        is_chosen = key in self.chosen and key in self._terminating
        if part is not None and (is_chosen or _is_disrupted(status)):
            self._evicted.add(key)
        if part is not None and status.get("phase") in ENDED_PHASES:
            part.until = at
            part.is_cut = key in self._evicted
            part.is_ended = not part.is_cut
        return True

    @property
    def n_orphans(self) -> int:
        """How many pods have no job."""
        return sum(map(len, self._orphans.values()))

    def _orphans_without(self, key: str) -> None:
        for pods in self._orphans.values():
            pods.pop(key, None)

    def _life(self, job: JobLife, key: str, pod: Manifest) -> PodLife:
        """Return the life that a pod belongs to: its own, or that of one which it replaces."""
        life = job.pods.get(key)
        if life is None:
            role = _role(pod)
            free = (e for e in job.pods.values() if e.is_gone and not e.is_done and role[1])
            life = next((each for each in free if _role(each.manifest) == role), None)
            if life is None:
                life = PodLife(pod["metadata"]["name"], pod)
            job.pods[key] = life
        self._job_of[key] = job
        if life.is_gone:  # made again
            life.is_gone = False
            for part in life.parts[-1:]:
                part.is_cut, part.is_ended = not part.is_ended, False
        return life

    def _lose(self, key: str, step: Step) -> bool:
        job = self._job_of.pop(key, None)
        if job is None:
            return False
        life = job.pods[key]
        life.is_gone = True
        part, since = life.open, self._terminating.pop(key, None)
        if since is not None:
            self.terminated.append(step.entry.at - since)
        if part is not None:
            part.until = step.entry.at
            part.is_cut = key in self._evicted or key in self.chosen
            if not part.is_cut and _repels(step.moment.objects.get(("Node", "", part.node))):
                part.is_cut = True
                self.drained.append(Drained(step.entry.at, part.node))
        self.chosen.discard(key)
        self._evicted.discard(key)
        return True


def lives_of(job: JobLife) -> list[PodLife]:
    """Return the pods of a job, each once."""
    return [*{id(life): life for life in job.pods.values()}.values()]


def _is_disrupted(status: Manifest) -> bool:
    """Return whether a pod did not end by itself."""
    said = [each.get("reason") for each in status.get("conditions") or ()]
    return not _DISRUPTED.isdisjoint([status.get("reason"), *said])


def _delete(job: JobLife, at: float) -> None:
    if job.deleted is None:
        job.deleted = at
        if not job.pods or any(life.waits for life in lives_of(job)):
            job.cancelled = at


def _running(job: JobLife) -> int:
    return sum(bool(each.parts) and not each.is_gone for each in lives_of(job))


def _role(pod: Manifest) -> tuple[str, str]:
    owner = controller_of(pod) or {}
    marks = pod["metadata"].get("annotations") or {}
    return str(marks.get(TASK_SPEC, "")), str(owner.get("uid", ""))


def _repels(node: Manifest | None) -> bool:
    """Return whether a node drives its pods away: it is gone, cordoned or not ready."""
    if node is None:
        return True
    spec, status = node.get("spec") or {}, node.get("status") or {}
    taints: Iterable[Manifest] = spec.get("taints") or ()
    ready = {one["type"]: one["status"] for one in status.get("conditions") or ()}.get("Ready")
    leaves = any(taint.get("effect") == "NoExecute" for taint in taints)
    return bool(spec.get("unschedulable")) or leaves or ready in ("False", "Unknown")
