"""What if: would a job start now or when, at whose cost, and what would a change do.

Both sides, as it is and as it would be, are played until nothing changes any more, and compared.  A
side on which pods evict each other without end does not settle, and the answer says so first.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import compress
from operator import is_, is_not
from typing import Any

import msgspec

from pumice.api.annotations import GROUP_NAME
from pumice.api.decisions import Decisions
from pumice.api.kinds import ENDED_PHASES, POD_GROUP, Manifest
from pumice.api.wording import counted, span
from pumice.diagnosis.changes import Add, Change, chain
from pumice.diagnosis.cluster_state import ClusterState, key_of, title_of
from pumice.diagnosis.control_plane import owner_of
from pumice.diagnosis.forecast import HORIZON_S, Course, Forecast
from pumice.diagnosis.manifest_causes import ended_phase, manifest_findings, missing_input
from pumice.diagnosis.missing_pods import lacks_pods, quota_notes
from pumice.diagnosis.runner import Timeline

_Sort = tuple[str, str, str, str, bool]
"""Namespace, Volcano job or else pod group, phase, and whether there is no node."""


# All pods at one moment, and what they add up to by job


class KnownPods:
    """Pods by namespace and name; keys are made only of those that are asked for."""

    def __init__(self, spaces: Mapping[str, Mapping[str, Manifest]]) -> None:
        self.spaces = spaces
        self._compared: dict[int, tuple[KnownPods, list[Manifest]]] = {}

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

    def not_in(self, other: "KnownPods") -> list[Manifest]:
        """Return the pods that are not the very same at another moment or on another side."""
        known = self._compared.get(id(other))
        if known is None:
            found: list[Manifest] = []
            for space, pods in self.spaces.items():
                found += _unlike(pods, other.spaces.get(space, {}))
            known = self._compared[id(other)] = other, found
        return known[1]


def _unlike(pods: Mapping[str, Manifest], others: Mapping[str, Manifest]) -> Iterable[Manifest]:
    """Return the pods of a namespace that are not the very same among others."""
    if len(pods) == len(others) and all(map(is_, pods, others)):
        return compress(pods.values(), map(is_not, pods.values(), others.values()))
    return [pod for name, pod in pods.items() if others.get(name) is not pod]


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

    def __init__(self, pods: Iterable[Manifest] = ()) -> None:
        self._numbers: dict[_Sort, int] = {}
        self._count(pods, 1)

    def changed(self, gone: Iterable[Manifest], new: Iterable[Manifest]) -> "PodTallies":
        """Return tallies without some of the pods and with others."""
        other = PodTallies()
        other._numbers = self._numbers.copy()
        other._count(gone, -1)
        other._count(new, 1)
        return other

    def _count(self, pods: Iterable[Manifest], sign: int) -> None:
        numbers = self._numbers
        for pod in pods:
            meta, status = pod["metadata"], pod.get("status")
            owner = owner_of(pod) if meta.get("ownerReferences") else ""
            marks = None if owner else meta.get("annotations")
            group = (marks.get(GROUP_NAME) or "") if marks else ""
            phase = str(status.get("phase") or "") if status else ""
            sort = meta["namespace"], owner, group, phase, not pod["spec"].get("nodeName")
            numbers[sort] = numbers.get(sort, 0) + sign

    def by_job(self, groups: Iterable[Manifest]) -> dict[str, Tally]:
        """Return tallies by the title of a job; one without pods has none."""
        titles = {key_of(group): title_of(group) for group in groups}
        found: dict[str, Tally] = {}
        for (space, owner, name, phase, is_free), number in self._numbers.items():
            key = f"{space}/{name}" if name else ""
            title = owner or titles.get(key, key)
            if number:
                found.setdefault(title, Tally()).add(number, phase, is_placed=not is_free)
        return found


def phase_of(pod: Manifest) -> str:
    """Return the phase of a pod, empty if it has none."""
    return str((pod.get("status") or {}).get("phase") or "")


# The answer


@dataclass(frozen=True, kw_only=True)
class Question:
    """The question: about a job of the cluster, a new job, changes, or all of them."""

    job: str = ""
    """Name of an existing job."""
    new_job: Sequence[Manifest] = ()
    """Objects of a new job."""
    changes: Sequence[Change] = ()
    default_runtime_s: float | None = None
    """Run time of pods that state none; None: for ever."""
    horizon_s: float = HORIZON_S


@dataclass(frozen=True, kw_only=True)
class JobAnswer:
    """The future of the job; ``state`` is that of a forecast, or running, or finished."""

    job: str
    state: str
    sentence: str
    in_s: float | None = None
    """Seconds until it starts."""
    at: str = ""
    after: list[str] = field(default_factory=list)
    """Jobs whose pods end before, in order; the sentence names those it waits for last."""
    victims: list[str] = field(default_factory=list)
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One job on both sides: its running pods and its phase, once the cluster is settled."""

    job: str
    before: str
    after: str
    why: str = ""
    """Why it waits after the change; empty if it does not."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The whole answer."""

    changes: list[str]
    notes: list[str]
    """What the input lacks, and pods that quotas would refuse and jobs can start without."""
    settled: bool
    """Whether the changed cluster comes to rest; if not, all below is a moment of a storm."""
    storm: dict[str, Any] | None
    job: JobAnswer | None
    jobs: list[Effect]
    """Jobs that differ."""
    waiting: dict[str, str]
    """Job to why it waits, once the cluster is settled; every waiting job."""
    pods: dict[str, tuple[str, str]]
    """Pod to its fate before and after, where that differs."""
    binds: dict[str, tuple[str, str]]
    """Pod to its nodes before and after where they differ; empty: it has none."""
    evictions: dict[str, tuple[bool, bool]]
    """Pod to whether it is evicted before and after, where that differs."""
    queues: dict[str, dict[str, tuple[str, str]]]
    """Queue to resource to amounts in use before and after, where they differ."""
    settled_in_s: float | None = None
    """Seconds until the changed cluster comes to rest; None if it does not."""

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return asdict(self)


def waiting_text(decisions: Decisions, job: str) -> str:
    """Return why a job waits; empty if it does not."""
    return decisions.explanations.get(job, "")


class Played:
    """A world played until it settled."""

    def __init__(
        self, world: ClusterState, question: Question, beside: "Played | None" = None
    ) -> None:
        """Play a world; most pods are the very same as in a world ``beside`` it."""
        timeline = Timeline(world, default_s=question.default_runtime_s, as_stated=True)
        self._first_pods = KnownPods(timeline.cluster.by_place("Pod"))
        self._first_groups = timeline.cluster.list(POD_GROUP)[0]
        self.course = Course(timeline, question.horizon_s)
        self.course.settle()
        self.settled_in_s = None if self.course.storm else timeline.now - timeline.start
        self.timeline = timeline
        self.decisions = timeline.look()
        self.pods = KnownPods(timeline.cluster.by_place("Pod"))
        self._beside = beside
        bound = timeline.story.binds
        self._bound = {each.pod for each in bound}
        self._started = {each.job for each in bound}
        self.evicted = {each.pod: each.whose for each in timeline.story.evictions}

    def differing(self, other: "Played") -> list[str]:
        """Name the pods that are not the very same on both sides, and those that are gone."""
        mine, others = self.pods, other.pods
        differ = {*map(key_of, mine.not_in(others)), *map(key_of, others.not_in(mine))}
        return [*differ.union(self.gone(), other.gone())]

    def knows(self, pod: str) -> bool:
        """Return whether there was such a pod at some time."""
        return pod in self.pods or pod in self._first_pods or pod in self._bound

    def gone(self) -> list[str]:
        """Name the pods that were there at some time and are no longer."""
        changed = map(key_of, self._first_pods.not_in(self.pods))
        return [pod for pod in (*changed, *self._bound) if pod not in self.pods]

    def nodes(self, pods: Iterable[str]) -> dict[str, str]:
        """Running ones of these pods, to their nodes."""
        found = ((key, self.pods.get(key)) for key in pods)
        return {
            key: str(pod["spec"]["nodeName"])
            for key, pod in found
            if pod is not None and pod["spec"].get("nodeName") and phase_of(pod) == "Running"
        }

    def fate(self, pod: str, earlier: "Played | None" = None) -> str:
        """Describe the fate of a pod, which may have existed ``earlier``, before a change."""
        found = self.pods.get(pod)
        node = "" if found is None else found["spec"].get("nodeName")
        if found is None:
            was_there = self.knows(pod) or (earlier is not None and earlier.knows(pod))
            where = "gone" if was_there else "not there"
        elif phase_of(found) in ENDED_PHASES:
            where = "ended"
        else:
            where = f"on {node}" if node else "pending"
        if pod not in self.evicted:
            return where
        whom = f" for {self.evicted[pod]}" if self.evicted[pod] else ""
        return f"evicted{whom}, now {where}"

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
        return self.tallies.by_job(self.timeline.cluster.list(POD_GROUP)[0])

    @cached_property
    def tallies(self) -> PodTallies:
        """Pods added up; those that are the very same in the world beside are not looked at."""
        if self._beside is None:
            return PodTallies(self.pods)
        others = self._beside.pods
        return self._beside.tallies.changed(others.not_in(self.pods), self.pods.not_in(others))

    @cached_property
    def had_pods(self) -> set[str]:
        """Jobs that had pods at some time; few answers ask for them."""
        return {*PodTallies(self._first_pods).by_job(self._first_groups), *self._started}


def what_if(world: ClusterState, question: Question) -> Answer:
    """Answer a question about a world.

    Raises:
        InputError: the question names a missing object, or a change is refused.
    """
    changes = [*question.changes, *_submission(question.new_job)]
    changed = chain(changes)(world) if changes else world
    job = _asked(changed, question)
    before = Played(world, question)
    after = Played(changed, question, before) if changes else before
    jobs = after.states(before)
    answer = _job_answer(after, changed, job) if job else None
    storm = after.course.storm
    differing = [] if before is after else before.differing(after)
    return Answer(
        changes=[change.text for change in changes],
        notes=[*missing_input(world), *quota_notes(changed)],
        settled=storm is None,
        storm=None if storm is None else storm.to_dict(),
        job=answer,
        jobs=_effects(before.states(), jobs, answer) if changes else [],
        waiting={name: why for name, (_, why) in jobs.items() if why},
        pods=_fates(before, after, differing),
        binds=_differences(before.nodes(differing), after.nodes(differing), ""),
        evictions=_evictions(before.evicted, after.evicted),
        queues=_queue_changes(before.decisions, after.decisions),
        settled_in_s=after.settled_in_s,
    )


def _submission(objects: Sequence[Manifest]) -> list[Change]:
    """Return the change that adds a new job, named after the job itself."""
    if not objects:
        return []
    order = ("PriorityClass", "ResourceClaimTemplate", "ResourceClaim", "Job", "PodGroup", "Pod")
    ops = sorted(objects, key=lambda one: order.index(one["kind"]))
    named = next(one for kind in order[3:] for one in ops if one["kind"] == kind)
    return [Change(f"submit {key_of(named)}", tuple(Add(object=one) for one in ops))]


def _asked(changed: ClusterState, question: Question) -> str:
    """Return the job in question."""
    if question.new_job:
        text = _submission(question.new_job)[0].text
        return changed.title(changed.find_job(text.removeprefix("submit ")))
    return changed.title(changed.find_job(question.job)) if question.job else ""


def _job_answer(played: Played, world: ClusterState, job: str) -> JobAnswer:
    """Return the future of a job; plays on if it has not started yet."""
    course = played.course
    settled = None if job in course.first_bind else _settled(played, world, job)
    if settled is not None:
        return settled
    waits = played.pending(job)
    why = played.why(played.timeline.group(_group(world, job)), job)
    course.play([job])
    seen = course.forecast(job)
    return JobAnswer(
        job=job,
        state=seen.state,
        sentence=_sentence(job, seen, lambda: why or _unseen(world, job), waits),
        in_s=seen.in_s,
        at=seen.at if seen.state == "later" else "",
        after=seen.after,
        victims=seen.victims,
        places=seen.places,
    )


def _settled(played: Played, world: ClusterState, job: str) -> JobAnswer | None:
    """Return the answer about a job that has nothing left to start; None if it has."""
    phase = ended_phase(world, _group(world, job))
    if played.is_over(job) or (phase and not played.has_pods(job)):
        how = f": {phase}" if phase else ": all its pods have"
        return JobAnswer(job=job, state="finished", sentence=f"{job} has ended{how}")
    if played.has_pods(job) and not played.pending(job):
        return JobAnswer(job=job, state="running", sentence=f"{job} has no pending pods")
    return None


def _unseen(world: ClusterState, job: str) -> str:
    """Return why no cycle considers a job, from its objects alone."""
    found = manifest_findings(world, _group(world, job))
    return found[0].text if found else "no cycle considers it"


def _group(world: ClusterState, job: str) -> str:
    return next((key for key in world.groups if world.title(key) == job), job)


def _sentence(job: str, seen: Forecast, why: Callable[[], str], waits: int) -> str:
    text = seen.text.removeprefix("it ")
    if seen.state == "later":
        return f"{job} {text}; now: {why()}"
    if seen.state == "never":
        never, mark, hint = text.partition(";")
        return f"{job} {never}: {why()}{mark}{hint}"
    if seen.state == "unknown":
        return f"{job}: {text}; now: {why()}"
    n, nodes = len(seen.places), len(set(seen.places.values()))
    if seen.state == "now" and seen.in_s:
        text = text.replace(" in ", " now, in ", 1)
    more = f"; {waits} more {'waits' if waits == 1 else 'wait'}" if waits else ""
    return f"{job} {text}: {counted(n, 'pod')} on {counted(nodes, 'node')}{more}"


def _effects(
    before: Mapping[str, tuple[str, str]],
    after: Mapping[str, tuple[str, str]],
    answer: JobAnswer | None,
) -> list[Effect]:
    found = []
    for job in sorted({*before, *after}):
        left, _ = before.get(job, ("not there", ""))
        right, why = after.get(job, ("not there", ""))
        if left == right:
            continue
        if answer is not None and answer.job == job and answer.state == "later":
            right = f"{right}, starts in {span(answer.in_s or 0.0)}"
        found.append(Effect(job=job, before=left, after=right, why=why))
    return found


def _fates(before: Played, after: Played, differing: Iterable[str]) -> dict[str, tuple[str, str]]:
    evicted = () if before is after else {*before.evicted, *after.evicted}
    known = (pod for pod in evicted if before.knows(pod) or after.knows(pod))
    pods = {*differing, *known}
    fates = {pod: (before.fate(pod), after.fate(pod, before)) for pod in sorted(pods)}
    return {pod: (left, right) for pod, (left, right) in fates.items() if left != right}


def _differences(
    before: Mapping[str, str], after: Mapping[str, str], none: str
) -> dict[str, tuple[str, str]]:
    found = {
        key: (before.get(key, none), after.get(key, none)) for key in before.keys() | after.keys()
    }
    return {key: found[key] for key in sorted(key for key, (a, b) in found.items() if a != b)}


def _evictions(before: Iterable[str], after: Iterable[str]) -> dict[str, tuple[bool, bool]]:
    left, right = set(before), set(after)
    return {pod: (pod in left, pod in right) for pod in sorted(left ^ right)}


def _queue_changes(before: Decisions, after: Decisions) -> dict[str, dict[str, tuple[str, str]]]:
    out: dict[str, dict[str, tuple[str, str]]] = {}
    for queue in sorted({*before.queues, *after.queues}):
        found = _differences(before.queues.get(queue, {}), after.queues.get(queue, {}), "0")
        if found:
            out[queue] = found
    return out


def _state(pods: Tally | None, phase: str, *, had_some: bool, refused: int) -> str:
    """Describe a job by its pods, also those that quotas refuse, and the phase of its pod group."""
    and_phase = f"{refused} refused by quotas, {phase}" if refused else phase
    if pods is None:
        return "all its pods are gone" if had_some else f"no pods yet, {and_phase}"
    if pods.over == pods.pods:
        return f"{counted(pods.pods, 'pod')} ended, {and_phase}"
    return f"{pods.running} of {pods.pods + refused} run, {and_phase}"
