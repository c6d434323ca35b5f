"""One side of a question: a cluster played until nothing changes any more, and its outcome."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from pumice.api.annotations import GROUP_NAME
from pumice.api.decisions import Decisions
from pumice.api.kinds import ENDED_PHASES, POD_GROUP, Manifest
from pumice.api.wording import counted
from pumice.clock import Deadline
from pumice.diagnosis.cluster_state import ClusterState, key_of, title_of
from pumice.diagnosis.control_plane import owner_of
from pumice.diagnosis.forecast import HORIZON_S, Course, waiting_jobs
from pumice.diagnosis.manifest_causes import ended_phase
from pumice.diagnosis.missing_pods import lacks_pods
from pumice.diagnosis.runner import Timeline
from pumice.examine.cycle_facts import BelowDue, Losses

_Sort = tuple[str, str, str, str, bool]
"""Namespace, Volcano job or else pod group, phase, and whether there is no node."""


# All pods at one moment, and what they add up to by job


class KnownPods:
    """Pods by namespace and name; keys are made only of those that are asked for."""

    def __init__(self, spaces: Mapping[str, Mapping[str, Manifest]]) -> None:
        self.spaces = spaces

    def get(self, key: str) -> Manifest | None:
        """Return a pod by "namespace/name", None if there is none."""
        space, _, name = key.partition("/")
        return self.spaces.get(space, {}).get(name)

    def __contains__(self, key: object) -> bool:
        """Return whether there is such a pod."""
        return self.get(str(key)) is not None

    def __iter__(self) -> Iterator[Manifest]:
        """Iterate over the pods."""
        return (pod for space in self.spaces.values() for pod in space.values())

    def not_in(self, other: "KnownPods") -> Iterator[str]:
        """Name the pods that are not there on another side, or have another node or phase."""
        for space, pods in self.spaces.items():
            others = other.spaces.get(space, {})
            for name, pod in pods.items():
                found = others.get(name)
                if found is None or _state_of(found) != _state_of(pod):
                    yield f"{space}/{name}"


def _state_of(pod: Manifest) -> tuple[Any, str]:
    return pod["spec"].get("nodeName"), phase_of(pod)


class Tally(msgspec.Struct):
    """How many pods there are of a job."""

    pods: int = 0
    running: int = 0
    over: int = 0
    pending: int = 0
    unplaced: int = 0
    """Of those that are pending, the ones that have no node."""

    def add(self, number: int, phase: str, *, is_placed: bool) -> None:
        """Count pods of one phase, with a node or without."""
        self.pods += number
        if phase == "Running":
            self.running += number
        elif phase in ENDED_PHASES:
            self.over += number
        elif phase in ("", "Pending"):
            self.pending += number
            if phase and not is_placed:
                self.unplaced += number


class PodTallies:
    """Numbers of pods by their Volcano job, or else by their pod group."""

    def __init__(self, pods: Iterable[Manifest]) -> None:
        numbers: dict[_Sort, int] = {}
        for pod in pods:
            meta, status = pod["metadata"], pod.get("status")
            owner = owner_of(pod) if meta.get("ownerReferences") else ""
            marks = None if owner else meta.get("annotations")
            group = (marks.get(GROUP_NAME) or "") if marks else ""
            phase = str(status.get("phase") or "") if status else ""
            sort = meta["namespace"], owner, group, phase, not pod["spec"].get("nodeName")
            numbers[sort] = numbers.get(sort, 0) + 1
        self._numbers = numbers

    def by_job(self, groups: Iterable[Manifest]) -> dict[str, Tally]:
        """Return tallies by the title of a job; one without pods has none."""
        titles = {key_of(group): title_of(group) for group in groups}
        found: dict[str, Tally] = {}
        for (space, owner, name, phase, is_free), number in self._numbers.items():
            key = f"{space}/{name}" if name else ""
            title = owner or titles.get(key, key)
            found.setdefault(title, Tally()).add(number, phase, is_placed=not is_free)
        return found


def phase_of(pod: Manifest) -> str:
    """Return the phase of a pod, empty if it has none."""
    return str((pod.get("status") or {}).get("phase") or "")


# A side


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a side is played: what nobody knows for certain, and how far."""

    default_runtime_s: float | None = None
    """Run time of pods that state none; None: for ever."""
    requeues: bool = False
    """Whether evicted pods that no controller makes again are made again all the same."""
    horizon_s: float = HORIZON_S
    deadline: Deadline = field(default_factory=Deadline, compare=False)


def waiting_text(decisions: Decisions, job: str) -> str:
    """Return why a job waits; empty if it does not."""
    return decisions.explanations.get(job, "")


class Played:
    """A world played until it settled."""

    def __init__(self, world: ClusterState, terms: Terms) -> None:
        """Play a world."""
        default_s, requeues = terms.default_runtime_s, terms.requeues
        timeline = Timeline(world, default_s=default_s, as_stated=True, requeues=requeues)
        self.first_pods = KnownPods(timeline.cluster.by_place("Pod"))
        self.first_groups = timeline.cluster.list(POD_GROUP)[0]
        self.losses, due = Losses(), BelowDue()
        self.course = Course(timeline, terms.horizon_s, terms.deadline, observer=self.losses)
        self.course.settle()
        self.is_settled = not (self.course.storm or self.course.is_cut)
        self.settled_in_s = timeline.now - timeline.start if self.is_settled else None
        self.timeline = timeline
        self.decisions = timeline.look(due)
        self.below_due = due.found
        """Queues that have less than is due to them once nothing changes any more."""
        self.pods = KnownPods(timeline.cluster.by_place("Pod"))
        bound = timeline.story.binds
        self._bound = {each.pod for each in bound}
        self._started = {each.job for each in bound}
        self.evicted = {each.pod: each.whose for each in timeline.story.evictions}

    def differing(self, other: "Played") -> list[str]:
        """Name the pods that differ in node or phase between the sides, and those that are gone."""
        differ = {*self.pods.not_in(other.pods), *other.pods.not_in(self.pods)}
        return [*differ.union(self.gone(), other.gone())]

    def knows(self, pod: str) -> bool:
        """Return whether there was such a pod at some time."""
        return pod in self.pods or pod in self.first_pods or pod in self._bound

    def gone(self) -> list[str]:
        """Name the pods that were there at some time and are no longer."""
        known = (*map(key_of, self.first_pods), *self._bound)
        return [pod for pod in known if pod not in self.pods]

    def nodes(self, pods: Iterable[str]) -> dict[str, str]:
        """Running ones of these pods, to their nodes."""
        found = ((key, self.pods.get(key)) for key in pods)
        return {
            key: str(pod["spec"]["nodeName"])
            for key, pod in found
            if pod is not None and pod["spec"].get("nodeName") and phase_of(pod) == "Running"
        }

    def fate(self, pod: str, other: "Played", *, is_later: bool = False) -> str:
        """Describe the fate of a pod; before a change it may have existed on the ``other`` side."""
        found = self.pods.get(pod)
        node = "" if found is None else found["spec"].get("nodeName")
        if found is None:
            was_there = self.knows(pod) or (is_later and other.knows(pod))
            where = "gone" if was_there else f"not there: {self._absence(pod, other)}"
        elif phase_of(found) in ENDED_PHASES:
            where = "ended"
        else:
            where = f"on {node}" if node else "pending"
        if pod not in self.evicted:
            return where
        whom = f" for {self.evicted[pod]}" if self.evicted[pod] else ""
        return f"evicted{whom}, now {where}"

    def _absence(self, pod: str, other: "Played") -> str:
        """Return why there never was a pod that the other side has."""
        found = other.pods.get(pod)
        job = "" if found is None else other.timeline.job_of(found)
        if not job or job not in self.jobs:
            return "its job is not submitted" if job else "only the other side makes it"
        if job in self._by_job:
            return "made only in place of a pod that leaves"
        why = self.why(self.jobs[job], job)
        return f"{job} has no pods yet" + (f": {why}" if why else "")

    @cached_property
    def jobs(self) -> dict[str, str]:
        """The names of all jobs, to the keys of their pod groups."""
        groups = self.timeline.cluster.list(POD_GROUP)[0]
        return {title_of(group): key_of(group) for group in groups}

    def first_waiting(self) -> list[str]:
        """Name the jobs that wait in the beginning and have no pod with a node."""
        world = self.timeline.beginning
        keys = [key for key in waiting_jobs(world) if not ended_phase(world, key)]
        return [job for job in map(world.title, keys) if job not in self.course.running]

    def states(self, earlier: "Played | None" = None) -> dict[str, tuple[str, str]]:
        """Describe every job: pods that run and its phase, and why it waits.

        Jobs that had pods ``earlier``, before a change, may have lost them.
        """
        sides = (self,) if earlier is None else (self, earlier)
        found = {}
        for group in self.timeline.cluster.list(POD_GROUP)[0]:
            name = title_of(group)
            mine = self._by_job.get(name)
            state = self.decisions.pod_groups.get(key_of(group))
            phase = state.phase if state is not None else "not scheduled"
            waits = mine is None or mine.unplaced
            why = self.why(key_of(group), name) if waits else ""
            had_some = mine is None and any(name in side.had_pods for side in sides)
            refused = self.timeline.plane.refused(name)
            found[name] = _state(mine, phase, had_some=had_some, refused=refused), why
        return found

    def why(self, group: str, title: str) -> str:
        """Return why a job waits; empty if it does not."""
        refused = self.timeline.plane.refusal(title) if lacks_pods(self.decisions, group) else ""
        return refused or waiting_text(self.decisions, group)

    def pending(self, job: str) -> int:
        """Count the pods of a job that wait."""
        return self._by_job[job].pending if job in self._by_job else 0

    def is_over(self, job: str) -> bool:
        """Return whether all pods of a job have ended."""
        mine = self._by_job.get(job)
        return mine is not None and mine.over == mine.pods

    def has_pods(self, job: str) -> bool:
        """Return whether a job has pods."""
        return job in self._by_job

    @cached_property
    def _by_job(self) -> dict[str, Tally]:
        """Pods added up by job."""
        return PodTallies(self.pods).by_job(self.timeline.cluster.list(POD_GROUP)[0])

    @cached_property
    def had_pods(self) -> set[str]:
        """Jobs that had pods at some time; few answers ask for them."""
        return {*PodTallies(self.first_pods).by_job(self.first_groups), *self._started}


def _state(pods: Tally | None, phase: str, *, had_some: bool, refused: int) -> str:
    """Describe a job by its pods, also those that quotas refuse, and the phase of its pod group."""
    and_phase = f"{refused} refused by quotas, {phase}" if refused else phase
    if pods is None:
        return "all its pods are gone" if had_some else f"no pods yet, {and_phase}"
    if pods.over == pods.pods:
        return f"{counted(pods.pods, 'pod')} ended, {and_phase}"
    return f"{pods.running} of {pods.pods + refused} run, {and_phase}"
