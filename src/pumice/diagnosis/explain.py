"""Why a job waits, as data: causes, nodes, evictions, position, and what would get it started.

All of it comes from asking the code that decides, in the session that decides, and from running
that code again on copies of the cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pumice.api.codes import Cause
from pumice.api.kinds import Manifest, queue_of
from pumice.api.times import epoch
from pumice.api.wording import counted, first_of
from pumice.controllers.ownership import phase_of
from pumice.diagnosis.cluster_state import ClusterState, group_of
from pumice.diagnosis.examine.examiner import Examiner
from pumice.diagnosis.examine.manifest_causes import manifest_findings
from pumice.diagnosis.examine.node_causes import funnel_rows
from pumice.diagnosis.expected import is_expected
from pumice.diagnosis.findings import Finding, FunnelRow, ObjectRef, Position, SparedPods
from pumice.diagnosis.job_outcome import JobOutcome
from pumice.diagnosis.remedy_search import Search, Way
from pumice.diagnosis.replay import Replay
from pumice.framework.refusals import Why

_NAMED = 3
_BARRING = (Cause.SUSPENDED, Cause.PRIORITY_CLASS_MISSING, Cause.INVALID)
"""Causes for which a job waits even though its pods, once made, would find their nodes."""
_OVER = ("Completed", "Failed", "Terminated")
_GRACE_S = 30.0
"""How long a pod takes to leave that says nothing else."""


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change that was tried out and works."""

    text: str
    changes: list[dict[str, Any]]
    result: str


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
    """The answer in one sentence: the decisive cause, or what becomes of the job."""
    queue: str = ""
    phase: str = ""
    min_member: int = 0
    pods: Mapping[str, int] = field(default_factory=dict)
    """Number of pods by status."""
    expected: int = 0
    """How many of them are not there yet: a controller makes them once the job is admitted."""
    causes: list[Finding] = field(default_factory=list)
    not_evicted: list[SparedPods] = field(default_factory=list)
    funnel: list[FunnelRow] = field(default_factory=list)
    position: Position | None = None
    forecast: Mapping[str, Any] | None = None
    remedies: list[Remedy] = field(default_factory=list)
    victims: list[Victim] = field(default_factory=list)
    places: Mapping[str, str] = field(default_factory=dict)
    """Pod to node, for pods that start or were promised a place."""
    tried: int = 0
    """How many changes were tried to find remedies."""
    cycle: int = 1
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Write all down as plain data; ``explain --schema`` describes it."""
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
            "causes": [each.to_data() for each in self.causes],
            "notEvicted": [each.to_data() for each in self.not_evicted],
            "funnel": [each.to_data() for each in self.funnel],
            "position": self.position.to_data() if self.position else None,
            "forecast": dict(self.forecast) if self.forecast else None,
            "remedies": [vars(each) for each in self.remedies],
            "victims": [vars(each) for each in self.victims],
            "places": dict(self.places),
            "tried": self.tried,
            "cycle": self.cycle,
            "notes": list(self.notes),
        }


def explain_job(
    world: ClusterState, name: str, *, cycles: int = 1, unblock: bool = True
) -> Explanation:
    """Explain where a job stands after some cycles.

    Raises:
        InputError: no job, or several, have that name.
    """
    job = world.find_job(name)
    replay = Replay(world)
    examiner = _examine(replay, job, cycles)
    outcome = examiner.outcome
    state = _state(world, outcome)
    causes = causes_of(world, examiner) if state == "waits" else []
    remedies: list[Remedy] = []
    tried = 0
    if state == "waits" and unblock and not (outcome.makes_room or outcome.is_admitted):
        search = Search(world, job, replay, cycles)
        remedies = [_remedy(way) for way in search.ways(outcome)]
        tried = len(search.tried)
    examination = examiner.examination
    funnel = examination.funnel if examination is not None else None
    return Explanation(
        job=job,
        name=world.title(job),
        state=state,
        text=causes[0].text if causes else _settled(outcome, state),
        queue=outcome.queue,
        phase=outcome.phase,
        min_member=outcome.min_member,
        pods=outcome.counts,
        expected=sum(map(is_expected, world.pods_by_group.get(job, ()))),
        causes=causes,
        not_evicted=examiner.spared if state == "waits" else [],
        funnel=funnel_rows(funnel) if funnel is not None and state == "waits" else [],
        position=examiner.position,
        remedies=remedies,
        victims=_victims(world, outcome),
        places={**outcome.binds, **outcome.promised},
        tried=tried,
        cycle=outcome.cycle,
        notes=list(world.notes),
    )


def _examine(replay: Replay, job: str, cycles: int) -> Examiner:
    """Play cycles, and look at the last one, or the first one that starts the job."""
    cycle = 1
    while True:
        examiner = Examiner(job, cycle)
        decisions = replay.decide(examiner)
        if examiner.outcome.started or cycle >= cycles:
            return examiner
        replay.apply(decisions)
        cycle += 1


def explain_waiting(world: ClusterState) -> dict[str, str]:
    """Say of every job that the next cycle leaves waiting why, in one sentence each."""
    return dict(sorted(Replay(world).decide().explanations.items()))


# Causes


def causes_of(world: ClusterState, examiner: Examiner) -> list[Finding]:
    """List what keeps a job waiting, the decisive cause first."""
    outcome, examination = examiner.outcome, examiner.examination
    if outcome.makes_room:
        return [_waits_for_evicted(world, outcome)]
    early = manifest_findings(world, outcome.job)
    later = examination.findings() if examination is not None else []
    if early:  # what keeps pods from being made, or from being ours, is told once
        later = [each for each in later if each.code not in (Cause.TOO_FEW_PODS, Cause.NO_PODS)]
    found = [*early, *later]
    found += _no_pods(outcome, found)
    if found:
        return found
    if examiner.ahead is not None:
        return [examiner.ahead]
    return [_as_recorded(outcome)]


def _no_pods(outcome: JobOutcome, found: list[Finding]) -> list[Finding]:
    """Tell of a pod group without pods, if nothing else says why it has none."""
    if outcome.counts or found or outcome.awaits_entry:
        return []
    about = ObjectRef.of_key("PodGroup", outcome.job)
    when = "it is admitted to its queue now; " if outcome.is_admitted else ""
    return [Finding(Cause.NO_PODS, f"{when}its pod group has no pods", about, {"pods": 0})]


_CODES = {
    Why.NOT_VALID: Cause.INVALID,
    Why.NOT_ENQUEUED: Cause.NOT_ADMITTED,
    Why.NOT_TAKEN: Cause.ACTION_MISSING,
    Why.QUEUE_OVERUSED: Cause.QUEUE_OVER_DESERVED,
    Why.QUEUE_CLOSED: Cause.QUEUE_CLOSED,
    Why.QUEUE_MISPLACED: Cause.QUEUE_MISPLACED,
    Why.QUEUE_POSITION: Cause.JOB_AHEAD,
    Why.OVER_QUOTA: Cause.QUEUE_OVER_CAPABILITY,
    Why.NO_NODE_FITS: Cause.INSUFFICIENT_RESOURCE,
    Why.NO_DOMAIN_FITS: Cause.NETWORK_DOMAIN,
    Why.GANG_SHORT: Cause.GANG_SHORT,
    Why.SCHEDULED: Cause.GANG_SHORT,
    Why.WAITING_FOR_EVICTION: Cause.WAITING_FOR_EVICTED,
}


def _as_recorded(outcome: JobOutcome) -> Finding:
    """Tell the record of the cycle, where asking every gate found nothing."""
    why = outcome.last.why if outcome.last is not None else Why.NOT_TAKEN
    return Finding(_CODES[why], outcome.sentence or why.value)


def _waits_for_evicted(world: ClusterState, outcome: JobOutcome) -> Finding:
    pods = list(outcome.victims) or list(outcome.makes_way)
    known = world.of_kind("Pod")
    seconds = max((_leaves_in(world, known.get(pod)) for pod in pods), default=0.0)
    told = f": {first_of(pods, _NAMED)}" if pods else ""
    text = f"its place is promised; {counted(len(pods), 'pod')} must leave first{told}"
    about = ObjectRef.of_key("Pod", pods[0]) if pods else None
    numbers = {"pods": pods, "seconds": seconds}
    return Finding(Cause.WAITING_FOR_EVICTED, f"{text} (within {seconds:g} s)", about, numbers)


def _leaves_in(world: ClusterState, pod: Manifest | None) -> float:
    """Return the seconds until a pod is gone that leaves, or is told to."""
    if pod is None:
        return 0.0
    stamp = pod["metadata"].get("deletionTimestamp")
    if stamp:
        return max(epoch(stamp) - world.now, 0.0)
    grace = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    return _GRACE_S if grace is None else float(grace)


# Other states


def _state(world: ClusterState, outcome: JobOutcome) -> str:
    job = world.job_of(outcome.job)
    if job is not None and phase_of(job) in _OVER and not outcome.counts:
        return "finished"
    state = _session_state(outcome)
    if state != "starts":
        return state
    barring = [each for each in manifest_findings(world, outcome.job) if each.code in _BARRING]
    return "waits" if barring else state


def _session_state(outcome: JobOutcome) -> str:
    if outcome.started:
        return "starts"
    if outcome.pending or outcome.waiting or not outcome.listed or not outcome.counts:
        return "waits"
    if outcome.evicted or outcome.leaving:
        return "evicted"
    return "runs" if outcome.ready > outcome.counts.get("Succeeded", 0) else "finished"


def _settled(outcome: JobOutcome, state: str) -> str:
    if state == "starts":
        n, nodes = len(outcome.binds), len(set(outcome.binds.values()))
        when = "now" if outcome.cycle == 1 else f"in cycle {outcome.cycle}"
        more = f"; {outcome.pending} more {'waits' if outcome.pending == 1 else 'wait'}"
        more = more if outcome.pending else ""
        return f"it starts {when}: {counted(n, 'pod')} on {counted(nodes, 'node')}{more}"
    if state == "evicted":
        return _going(outcome)
    if state == "runs":
        return f"it runs: {counted(outcome.ready, 'pod')} of at least {outcome.min_member}"
    return "all its pods have ended"


def _going(outcome: JobOutcome) -> str:
    """Say which of its pods leave, for whom and by which action."""
    told = []
    n = sum(outcome.counts.values())
    if outcome.evicted:
        whom = sorted({each for each in outcome.evicted.values() if each})
        for_whom = f" for {first_of(whom, _NAMED)}" if whom else ""
        by = f" by {' and '.join(outcome.evicted_by)}" if outcome.evicted_by else ""
        pods = first_of(list(outcome.evicted), _NAMED)
        told.append(f"{_part(len(outcome.evicted), n)} evicted{for_whom}{by}: {pods}")
    if outcome.leaving:
        told.append(
            f"{_part(len(outcome.leaving), n)} leaving: {first_of(outcome.leaving, _NAMED)}"
        )
    return "; ".join(told)


def _part(pods: int, n: int) -> str:
    return f"{pods} of its {n} pods {'is' if pods == 1 else 'are'}"


def _remedy(way: Way) -> Remedy:
    return Remedy(text=way.text, changes=[], result=_result(way.outcome))


def _result(outcome: JobOutcome) -> str:
    """Say what happens once a change is made."""
    if outcome.started:
        later = f" in cycle {outcome.cycle}" if outcome.cycle > 1 else ""
        n = len(outcome.binds)
        return f"{counted(n, 'pod')} {'starts' if n == 1 else 'start'}{later}"
    if outcome.is_admitted:
        return "it is admitted to its queue, and its pods are made"
    if not outcome.victims:
        return "it keeps its place until pods that leave are gone"
    return f"it starts once evicted pods are gone: {first_of(list(outcome.victims), _NAMED)}"


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
