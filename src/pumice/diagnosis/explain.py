"""Why a job waits, as data: causes, nodes, evictions, position, and remedies.

All of it comes from asking the code that decides, in the session that decides, and from running
that code again on copies of the cluster.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pumice.api.codes import Cause
from pumice.api.kinds import RESOURCE_QUOTA, Manifest, queue_of
from pumice.api.wording import counted, first_of, part_of_its, span, verb
from pumice.clock import Deadline
from pumice.controllers.base import phase_of
from pumice.controllers.expected import is_expected, open_queue
from pumice.controllers.job.state import replicas_of
from pumice.diagnosis.cluster_state import ClusterState, group_of
from pumice.diagnosis.control_plane import owner_of
from pumice.diagnosis.forecast import Forecast, broken_promises, forecast
from pumice.diagnosis.manifest_causes import (
    REFUSAL,
    causes_of,
    ended_phase,
    is_barred,
    is_barring,
    missing_input,
)
from pumice.diagnosis.missing_pods import quota_notes, refused_pods
from pumice.diagnosis.remedy.search import Search, Way
from pumice.diagnosis.runner import Replay, is_open, look, unknown_votes
from pumice.examine.causes import Examiner
from pumice.examine.findings import Finding, FunnelRow, Position, SparedPods
from pumice.examine.job_outcome import JobOutcome
from pumice.examine.node_causes import funnel_rows
from pumice.examine.not_evicted import EvictionExaminer, failed_plugins

_NAMED = 3
_LATE = "not all changes that might help were tried within {}"


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change that was tried and works."""

    text: str
    changes: list[dict[str, Any]]
    result: str
    """What happens then, to this job and to others."""
    evicts: list[str] = field(default_factory=list)
    """Pods of other jobs that are evicted then, and would not be otherwise."""
    holds_back: list[str] = field(default_factory=list)
    """Other jobs that would start otherwise, and then wait, or get fewer pods."""

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "text": self.text,
            "changes": self.changes,
            "result": self.result,
            "evicts": self.evicts,
            "holdsBack": self.holds_back,
        }


@dataclass(frozen=True, kw_only=True)
class Victim:
    """A pod that leaves for the job."""

    pod: str
    job: str
    node: str
    queue: str
    priority: int


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One job in one cycle; ``state`` is waits, starts, evicted, runs or finished."""

    job: str
    """Its pod group."""
    name: str
    """The Volcano job that the pod group was made for, else the pod group."""
    state: str
    text: str
    """The answer in one sentence: the decisive cause, or what happens to the job."""
    queue: str = ""
    phase: str = ""
    min_member: int = 0
    pods: Mapping[str, int] = field(default_factory=dict)
    """Number of pods by status."""
    expected: int = 0
    """How many of them do not exist yet: a controller makes them once the job is admitted."""
    refused: int = 0
    """How many further pods it is to get that an API server refuses."""
    causes: list[Finding] = field(default_factory=list)
    not_evicted: list[SparedPods] = field(default_factory=list)
    funnel: list[FunnelRow] = field(default_factory=list)
    position: Position | None = None
    forecast: Mapping[str, Any] | None = None
    reservation: Mapping[str, Any] | None = None
    """When and on which nodes it is promised to start."""
    remedies: list[Remedy] = field(default_factory=list)
    victims: list[Victim] = field(default_factory=list)
    places: Mapping[str, str] = field(default_factory=dict)
    """Pod to node, for pods that start or were promised a place."""
    tried: int = 0
    """How many changes were tried to find remedies."""
    cycle: int = 1
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data; ``explain --schema`` describes it."""
        return {
            "job": self.job,
            "name": self.name,
            "state": self.state,
            "text": self.text,
            "queue": self.queue,
            "phase": self.phase,
            "minMember": self.min_member,
            "pods": dict(self.pods),
            "expected": self.expected,
            "refused": self.refused,
            "causes": [each.to_data() for each in self.causes],
            "notEvicted": [each.to_data() for each in self.not_evicted],
            "funnel": [each.to_data() for each in self.funnel],
            "position": self.position.to_data() if self.position else None,
            "forecast": dict(self.forecast) if self.forecast else None,
            "reservation": dict(self.reservation) if self.reservation else None,
            "remedies": [each.to_data() for each in self.remedies],
            "victims": [vars(each) for each in self.victims],
            "places": dict(self.places),
            "tried": self.tried,
            "cycle": self.cycle,
            "notes": list(self.notes),
        }


def explain_job(
    world: ClusterState,
    name: str,
    *,
    cycles: int = 1,
    unblock: bool = True,
    foresee: bool = True,
    default_s: float | None = None,
    deadline: Deadline | None = None,
) -> Explanation:
    """Explain the state of a job after some cycles.

    What is not known at the deadline is left out, and a note says so.

    Raises:
        InputError: no job, or several, have that name.
    """
    *_, found = explain_in_steps(
        world,
        name,
        cycles=cycles,
        unblock=unblock,
        foresee=foresee,
        default_s=default_s,
        deadline=deadline,
    )
    return found


def explain_in_steps(
    world: ClusterState,
    name: str,
    *,
    cycles: int = 1,
    unblock: bool = True,
    foresee: bool = True,
    default_s: float | None = None,
    deadline: Deadline | None = None,
) -> Iterator[Explanation]:
    """Yield an explanation as it grows: the causes, then with the forecast, then all of it.

    Raises:
        InputError: no job, or several, have that name.
    """
    job, limit = world.find_job(name), deadline or Deadline()
    replay = Replay(world)
    examiner = _examine(replay, job, cycles)
    found = _examined(world, job, examiner, plays=foresee)
    outcome, causes = examiner.outcome, found.causes
    yield found
    if foresee and found.state == "waits":
        half = limit.halved() if unblock else limit
        seen = _forecast(world, job, causes, default_s, half)
        found = replace(found, forecast=seen)
        yield found
    if unblock and causes and _may_be_helped(outcome, causes[0]):
        decisions, promised = examiner.decisions, outcome.makes_room
        search = Search(world, job, replay, decisions, cycles, promised=promised, deadline=limit)
        remedies = [_remedy(way) for way in search.ways(causes)]
        late = [_LATE.format(span(limit.within_s))] if limit.is_over else []
        found = replace(
            found, remedies=remedies, tried=len(search.tried), notes=[*found.notes, *late]
        )
        yield found


def _examined(
    world: ClusterState, job: str, examiner: EvictionExaminer, *, plays: bool
) -> Explanation:
    """Return what one cycle shows about a job."""
    outcome = with_stated(world, examiner.outcome)
    state = state_of(world, outcome)
    waits, refused = state == "waits", refused_pods(world, job)
    causes = _causes(world, examiner, plays=plays) if waits else []
    examination = examiner.examination
    funnel = examination.funnel if examination is not None else None
    return Explanation(
        job=job,
        name=world.title(job),
        state=state,
        text=causes[0].text if causes else _settled(world, outcome, state, len(refused)),
        queue=outcome.queue,
        phase=outcome.phase,
        min_member=outcome.min_member,
        pods=outcome.counts or _remaining(world, job),
        expected=_expected(world, job, refused),
        refused=len(refused),
        causes=causes,
        not_evicted=examiner.spared if waits and not _lacks_pods(causes) else [],
        funnel=funnel_rows(funnel) if funnel is not None and waits else [],
        position=examiner.position,
        reservation=outcome.reservation if waits else None,
        victims=_victims(world, outcome),
        places={**outcome.binds, **outcome.promised},
        cycle=outcome.cycle,
        notes=_notes(world, job),
    )


def _expected(world: ClusterState, job: str, refused: list[Manifest]) -> int:
    """Count the pods that are still to be made, and can be."""
    never = set(map(id, refused))
    pods = world.pods_by_group.get(job, ())
    return sum(is_expected(pod) and id(pod) not in never for pod in pods)


def _notes(world: ClusterState, job: str) -> list[str]:
    """List what is missing from an answer about a job, and the pods that it starts without."""
    refused = quota_notes(world, [job])
    return [*world.notes, *missing_input(world), *refused, *unknown_votes(world)]


def _forecast(
    world: ClusterState,
    job: str,
    causes: list[Finding],
    default_s: float | None,
    deadline: Deadline,
) -> dict[str, Any]:
    """Return when a waiting job starts; never, while something must be done about it first."""
    barring = next(filter(is_barring, causes), None)
    if barring is not None:
        never = Forecast(state="never", text=f"it does not start: {barring.text}")
        return never.to_data()
    return forecast(world, job, default_s=default_s, deadline=deadline).to_data()


def _may_be_helped(outcome: JobOutcome, decisive: Finding) -> bool:
    """Return whether changes are worth trying.

    They are not for a job that only waits for leaving pods, nor for pods that an API server
    refuses: what these lack is in its message.
    """
    if outcome.makes_room and decisive.code is Cause.WAITING_FOR_EVICTED:
        return {*decisive.numbers["pods"]} <= {*decisive.numbers.get("overdue", ())}
    return REFUSAL not in decisive.numbers


def _causes(world: ClusterState, examiner: EvictionExaminer, *, plays: bool) -> list[Finding]:
    """List the reasons why a job waits; whether a promise is kept shows if the cluster is played.

    A forecast plays it anyway.
    """
    outcome = examiner.outcome
    found = [*_all_causes(world, examiner), *failed_plugins(examiner.spared)]
    if plays and outcome.makes_room and found[0].code is Cause.WAITING_FOR_EVICTED:
        return broken_promises(world, [examiner]).get(outcome.job) or found
    return found


def _all_causes(world: ClusterState, examiner: Examiner) -> list[Finding]:
    """List the reasons why a job waits, also those behind a missing queue and behind quotas."""
    job, found = examiner.outcome.job, causes_of(world, examiner)
    missing = [each.about for each in found if each.code is Cause.QUEUE_MISSING]
    if missing and missing[0] is not None:
        found += _causes_in(world.with_objects([open_queue(missing[0].name)]), job, found)
    quotas = {each.about for each in found if each.code is Cause.QUOTA_EXCEEDED}
    if quotas:
        names = {each.name for each in quotas if each is not None}
        found += _causes_in(world.edited(_without_quotas(job.partition("/")[0], names)), job, found)
    return found


def _lacks_pods(causes: list[Finding]) -> bool:
    """Return whether a job does not get its pods: then no eviction is for it."""
    return any(each.code is Cause.QUOTA_EXCEEDED or REFUSAL in each.numbers for each in causes)


def _causes_in(other: ClusterState, job: str, known: list[Finding]) -> list[Finding]:
    """List the further reasons why a job would wait in a world where one of them is gone."""
    examiner = Examiner(job)
    Replay(other).decide(examiner)
    if _session_state(examiner.outcome) != "waits" or examiner.outcome.makes_room:
        return []
    codes = {each.code for each in known}
    found = causes_of(other, examiner)
    return [each for each in found if each.code not in codes and each.code is not Cause.JOB_AHEAD]


def _without_quotas(home: str, names: set[str]) -> Callable[[Manifest], Manifest | None]:
    """Return an edit that leaves some resource quotas of a namespace out."""

    def edit(one: Manifest) -> Manifest | None:
        meta = one["metadata"]
        named = one["kind"] == RESOURCE_QUOTA and meta["name"] in names
        return None if named and (meta.get("namespace") or "default") == home else one

    return edit


def _examine(replay: Replay, job: str, cycles: int) -> EvictionExaminer:
    """Play cycles, and look at the last one, or the first one that starts the job."""
    if cycles > 1:
        return look(replay.world, job, cycles, EvictionExaminer)
    examiner = EvictionExaminer(job, 1)
    replay.decide(examiner)
    return examiner


def with_stated(world: ClusterState, outcome: JobOutcome) -> JobOutcome:
    """Return an outcome with what a Volcano job states, if it has no pod group in the session."""
    job = world.job_of(outcome.job)
    if job is None or outcome.queue:
        return outcome
    spec = job.get("spec") or {}
    least = spec.get("minAvailable") or sum(map(replicas_of, spec.get("tasks") or ()))
    return replace(outcome, queue=queue_of(job), phase=phase_of(job), min_member=int(least))


# Other states


def state_of(world: ClusterState, outcome: JobOutcome) -> str:
    """Return the state of a job: waits, starts, evicted, runs or finished."""
    if ended_phase(world, outcome.job) and not outcome.counts:
        return "finished"
    state = _session_state(outcome)
    if state != "starts":
        return state
    return "waits" if is_barred(world, outcome.job) else state


def _session_state(outcome: JobOutcome) -> str:
    if outcome.started:
        return "starts"
    if outcome.waits:
        return "waits"
    if outcome.evicted or outcome.leaving:
        return "evicted"
    return "runs" if outcome.ready > outcome.counts.get("Succeeded", 0) else "finished"


def _settled(world: ClusterState, outcome: JobOutcome, state: str, refused: int) -> str:
    if state == "starts" and is_open(world):
        n = len(outcome.binds)
        found = f"{counted(n, 'pod')} {verb(n, 'finds', 'find')} a node"
        what = " about jobs and queues" if world.asks_extender else ""
        return f"it is open whether it starts: {found}, but the extender was not asked{what}"
    if state == "starts":
        n, nodes = len(outcome.binds), len(set(outcome.binds.values()))
        when = "now" if outcome.cycle == 1 else f"in cycle {outcome.cycle}"
        more = f"; {outcome.pending} more {'waits' if outcome.pending == 1 else 'wait'}"
        more = more if outcome.pending else ""
        more += _refused_too(refused)
        starts = "starts more pods" if outcome.counts.get("Running") else "starts"
        return f"it {starts} {when}: {counted(n, 'pod')} on {counted(nodes, 'node')}{more}"
    if state == "evicted":
        return _going(outcome)
    if state == "runs":
        running = f"{counted(outcome.ready, 'pod')} of at least {outcome.min_member}"
        return f"it runs: {running}{_refused_too(refused)}"
    return "all its pods have ended" if outcome.counts else f"it has ended: {outcome.phase}"


def _refused_too(refused: int) -> str:
    return f"; the API server refuses {refused} more" if refused else ""


def _remaining(world: ClusterState, job: str) -> Counter[str]:
    """Count the pods by status that are left of a Volcano job whose pod group is gone."""
    title = world.title(job)
    left = (pod for pod in world.pods if owner_of(pod) == title and not is_expected(pod))
    return Counter(str((pod.get("status") or {}).get("phase") or "Pending") for pod in left)


def _going(outcome: JobOutcome) -> str:
    """Describe which of its pods leave, for whom and by which action."""
    parts = []
    n = sum(outcome.counts.values())
    if outcome.evicted:
        whom = sorted({each for each in outcome.evicted.values() if each})
        for_whom = f" for {first_of(whom, _NAMED)}" if whom else ""
        by = f" by {' and '.join(outcome.evicted_by)}" if outcome.evicted_by else ""
        pods = first_of(list(outcome.evicted), _NAMED)
        parts.append(f"{_part(len(outcome.evicted), n)} evicted{for_whom}{by}: {pods}")
    if outcome.leaving:
        parts.append(
            f"{_part(len(outcome.leaving), n)} leaving: {first_of(outcome.leaving, _NAMED)}"
        )
    return "; ".join(parts)


def _part(pods: int, n: int) -> str:
    return f"{part_of_its(pods, n, 'pod')} {verb(pods, 'is', 'are')}"


def _remedy(way: Way) -> Remedy:
    return Remedy(
        text=way.change.text,
        changes=way.change.to_data(),
        result="; ".join(_results(way)),
        evicts=way.cost.pods,
        holds_back=list(way.cost.held_back),
    )


def _results(way: Way) -> list[str]:
    """Describe the result of a change, and what it costs."""
    outcome = way.outcome
    later = f" in cycle {outcome.cycle}" if outcome.cycle > 1 else ""
    later = f" in {span(way.in_s)}" if way.in_s else later
    if outcome.started:
        n = len(outcome.binds)
        return [f"{counted(n, 'pod')} {verb(n, 'starts', 'start')}{later}", *way.cost.texts()]
    if outcome.is_admitted:
        return ["it is admitted to its queue, and its pods can be made", *way.cost.texts()]
    if not outcome.victims:
        n = len(outcome.makes_way)
        those = f"{counted(n, 'leaving pod')} {verb(n, 'is', 'are')}" if n else "leaving pods are"
        return [f"it starts{later} once {those} gone", *way.cost.texts()]
    evicted = list(outcome.victims)
    done = f"it starts after {counted(len(evicted), 'eviction')}: {first_of(evicted, _NAMED)}"
    return [done, *way.cost.texts(known=evicted)]


def _victims(world: ClusterState, outcome: JobOutcome) -> list[Victim]:
    pods = world.of_kind("Pod") if outcome.victims else {}
    return [
        Victim(
            pod=key,
            job=group_of(pods[key]),
            node=node,
            queue=_queue_of(world, pods[key]),
            priority=int(pods[key]["spec"].get("priority") or 0),
        )
        for key, node in outcome.victims.items()
        if key in pods
    ]


def _queue_of(world: ClusterState, pod: Manifest) -> str:
    group = world.groups.get(group_of(pod))
    return queue_of(group) if group else ""
