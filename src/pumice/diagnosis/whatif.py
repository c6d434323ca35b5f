"""What if: would a job start now or when, at whose cost, and what would a change do.

Both sides, as it is and as it would be, are played until nothing changes any more, and compared.  A
side on which pods evict each other without end does not settle, and the answer says so first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pumice.api.decisions import Decisions
from pumice.api.kinds import Manifest
from pumice.api.wording import counted, span
from pumice.controllers.base import controller_of
from pumice.diagnosis.changes import Add, Change, chain
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.forecast import Forecast
from pumice.diagnosis.manifest_causes import (
    causes_of,
    ended_phase,
    manifest_findings,
    missing_input,
)
from pumice.diagnosis.missing_pods import quota_notes
from pumice.diagnosis.played import Played, Terms
from pumice.diagnosis.runner import Replay
from pumice.diagnosis.signoff import SignOff, sign_off
from pumice.examine.causes import Examiner

# The answer


@dataclass(frozen=True, kw_only=True)
class Question(Terms):
    """The question: about a job of the cluster, a new job, changes, or all of them."""

    job: str = ""
    """Name of an existing job."""
    new_job: Sequence[Manifest] = ()
    """Objects of a new job."""
    changes: Sequence[Change] = ()
    signs_off: bool = False
    """Whether both sides are compared in figures, and played on until jobs start."""


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
    signoff: SignOff | None = None
    """Both sides in figures; None if that was not asked for."""

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        signed = None if self.signoff is None else self.signoff.to_dict()
        return {**asdict(replace(self, signoff=None)), "signoff": signed}


def what_if(world: ClusterState, question: Question) -> Answer:
    """Answer a question about a world.

    Raises:
        InputError: the question names a missing object, or a change is refused.
    """
    changes = [*question.changes, *_submission(question.new_job)]
    changed = chain(changes)(world) if changes else world
    job = _asked(changed, question)
    before = Played(world, question)
    after = Played(changed, question) if changes else before
    jobs = after.states(before)
    answer = _job_answer(after, changed, job) if job else None
    storm = after.course.storm
    differing = [] if before is after else before.differing(after)
    found = Answer(
        changes=[change.text for change in changes],
        notes=[*missing_input(world), *quota_notes(changed)],
        settled=after.is_settled,
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
    # last, as both sides are played on
    signs = question.signs_off and bool(changes)
    return replace(found, signoff=sign_off(before, after, question)) if signs else found


def _submission(objects: Sequence[Manifest]) -> list[Change]:
    """Return the change that adds a new job, named after the job itself."""
    if not objects:
        return []
    order = ("PriorityClass", "ResourceClaimTemplate", "ResourceClaim", "Job", "PodGroup", "Pod")
    ops = sorted(map(_kept, objects), key=lambda one: order.index(one["kind"]))
    own = [one for one in objects if not _is_of_pod(one)]
    named = next((one for kind in order[3:] for one in own if one["kind"] == kind), objects[0])
    return [Change(f"submit {key_of(named)}", tuple(Add(object=one) for one in ops))]


def _is_of_pod(one: Manifest) -> bool:
    owner = controller_of(one)
    return owner is not None and owner["kind"] == "Pod"


def _kept(one: Manifest) -> Manifest:
    """Return a new object without a pod that owns it: that pod gets another uid once created."""
    if not _is_of_pod(one):
        return one
    meta = {key: value for key, value in one["metadata"].items() if key != "ownerReferences"}
    return {**one, "metadata": meta}


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
    if seen.state == "never" or not why:
        why = _decisive(world, job) or why
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


def _decisive(world: ClusterState, job: str) -> str:
    """Return the first cause that `explain` finds; empty if a cycle would start the job."""
    examiner = Examiner(_group(world, job))
    Replay(world).decide(examiner)
    found = causes_of(world, examiner)
    return found[0].text if found else ""


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
    more = f"; {waits} more {'waits' if waits == 1 else 'wait'}" if waits else ""
    return f"{job} {text}: {counted(n, 'pod')} on {counted(nodes, 'node')}{more}"


def _effects(
    before: Mapping[str, tuple[str, str]],
    after: Mapping[str, tuple[str, str]],
    answer: JobAnswer | None,
) -> list[Effect]:
    found = []
    for job in sorted({*before, *after}):
        left, _ = before.get(job, ("not there: it is not submitted", ""))
        right, why = after.get(job, ("not there: it is removed", ""))
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
    fates = {
        pod: (before.fate(pod, after), after.fate(pod, before, is_later=True))
        for pod in sorted(pods)
    }
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
