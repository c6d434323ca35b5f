"""Why a job waits: a ladder of gates, one sentence with numbers, and what would get it started.

All of it comes from the records of the code that decided, and from running that code again on
copies of the cluster.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pumice.api.kinds import Manifest, queue_of
from pumice.api.quantity import amount_text
from pumice.api.wording import counted, first_of, nearest
from pumice.diagnosis.cluster_state import ClusterState, group_of
from pumice.diagnosis.expected import is_expected
from pumice.diagnosis.gates import FAILED, Gate, climb, count_nodes
from pumice.diagnosis.job_outcome import JobOutcome, look
from pumice.diagnosis.remedy_search import Search
from pumice.diagnosis.replay import Replay
from pumice.framework.job_records import Stage
from pumice.framework.refusals import Why

_NAMED = 3
_LATE = (Stage.QUEUE, Stage.QUOTA, Stage.NODES, Stage.GANG)
"""Stages at which a job may have stopped only because others came first."""


@dataclass(frozen=True, kw_only=True)
class Unblock:
    """A change that was tried out and works."""

    change: str
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
    """One job in one cycle; ``state`` is starts, waits, evicted, runs or finished."""

    job: str
    """Its pod group."""
    name: str
    """The Volcano job that the pod group was made for, else the pod group."""
    state: str
    reason: str
    """From the closed list of reasons; empty if it waits for nothing."""
    sentence: str
    queue: str = ""
    phase: str = ""
    min_member: int = 0
    pods: Mapping[str, int] = field(default_factory=dict)
    """Number of pods by status."""
    expected: int = 0
    """How many of them are not there yet: a controller makes them once the job is admitted."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """What the decision compared, in the units of the tables."""
    gates: list[Gate] = field(default_factory=list)
    unblock: list[Unblock] = field(default_factory=list)
    victims: list[Victim] = field(default_factory=list)
    places: Mapping[str, str] = field(default_factory=dict)
    """Pod to node, for pods that start or were promised a place."""
    tried: int = 0
    """How many cycles were run to find what would unblock it."""
    cycle: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Write all down as plain data."""
        return asdict(self)


def explain_job(
    world: ClusterState, name: str, *, cycles: int = 1, unblock: bool = True
) -> Explanation:
    """Explain where a job stands after some cycles.

    Raises:
        InputError: no job, or several, have that name.
    """
    job = world.find_job(name)
    replay = Replay(world)
    outcome = look(world, job, cycles, replay)
    state = _state(outcome)
    if state != "waits":
        return _explanation(world, outcome, state, _Reason("", _settled(outcome, state)))
    search = Search(world, job, replay, cycles)
    reason = _reason(world, outcome, is_behind=_is_behind(search, outcome))
    settled = outcome.makes_room or outcome.is_admitted
    ways = search.ways(outcome) if unblock and not settled else []
    return replace(
        _explanation(world, outcome, state, reason),
        unblock=[Unblock(change=way.text, result=_result(way.outcome)) for way in ways],
        tried=len(search.tried),
    )


def explain_waiting(world: ClusterState) -> dict[str, str]:
    """Say of every job that the next cycle leaves waiting why, in one sentence each."""
    return dict(sorted(Replay(world).decide().explanations.items()))


@dataclass(frozen=True)
class _Reason:
    """A reason of the closed list, and the sentence that says it."""

    value: str
    sentence: str


def _state(outcome: JobOutcome) -> str:
    if outcome.started:
        return "starts"
    if outcome.pending or outcome.waiting or not outcome.listed or not outcome.counts:
        return "waits"
    if outcome.evicted or outcome.leaving:
        return "evicted"
    return "runs" if outcome.ready > outcome.counts.get("Succeeded", 0) else "finished"


def _explanation(
    world: ClusterState, outcome: JobOutcome, state: str, reason: _Reason
) -> Explanation:
    stop = outcome.last
    return Explanation(
        job=outcome.job,
        name=world.title(outcome.job),
        state=state,
        reason=reason.value,
        sentence=reason.sentence,
        queue=outcome.queue,
        phase=outcome.phase,
        min_member=outcome.min_member,
        pods=outcome.counts,
        expected=sum(map(is_expected, world.pods_by_group.get(outcome.job, ()))),
        numbers=dict(stop.numbers) if stop is not None and state == "waits" else {},
        gates=climb(outcome, behind=reason.value == Why.QUEUE_POSITION.value),
        victims=_victims(world, outcome),
        places={**outcome.binds, **outcome.promised},
        cycle=outcome.cycle,
    )


def _settled(outcome: JobOutcome, state: str) -> str:
    if state == "starts":
        n, nodes = len(outcome.binds), len(set(outcome.binds.values()))
        when = "now" if outcome.cycle == 1 else f"in cycle {outcome.cycle}"
        more = f"; {outcome.pending} more {'waits' if outcome.pending == 1 else 'wait'}"
        more = f"{more}: {_rest(outcome)}" if outcome.pending else ""
        return f"it starts {when}: {counted(n, 'pod')} on {counted(nodes, 'node')}{more}"
    if state == "evicted":
        return _going(outcome)
    if state == "runs":
        return f"it runs: {counted(outcome.ready, 'pod')} of at least {outcome.min_member}"
    return "all its pods have ended"


def _going(outcome: JobOutcome) -> str:
    """Say which of its pods leave, for whom and by which action; empty if none does."""
    told = []
    n = sum(outcome.counts.values())
    if outcome.evicted:
        whom = sorted({each for each in outcome.evicted.values() if each})
        for_whom = f" for {first_of(whom, _NAMED)}" if whom else ""
        by = f" by {' and '.join(outcome.evicted_by)}" if outcome.evicted_by else ""
        pods = first_of(list(outcome.evicted), _NAMED)
        told.append(f"{_part(outcome.evicted, n)} evicted{for_whom}{by}: {pods}")
    if outcome.leaving:
        told.append(f"{_part(outcome.leaving, n)} leaving: {first_of(outcome.leaving, _NAMED)}")
    return "; ".join(told)


def _part(pods: Collection[str], n: int) -> str:
    return f"{len(pods)} of its {n} pods {'is' if len(pods) == 1 else 'are'}"


def _rest(outcome: JobOutcome) -> str:
    gates = [gate for gate in climb(outcome) if gate.mark == FAILED]
    return gates[-1].text if gates else "a later cycle will look at them"


def _is_behind(search: Search, outcome: JobOutcome) -> bool:
    """Say whether a job would start if nobody had been taken before it."""
    if outcome.last is None or outcome.last.stage not in _LATE or not outcome.place.before:
        return False
    return search.starts_without(outcome.place.before)


def _reason(world: ClusterState, outcome: JobOutcome, *, is_behind: bool) -> _Reason:
    """Choose the first reason of the list that holds, and say it."""
    early = _before_any_node(world, outcome)
    if early is not None:
        return early
    if is_behind:
        return _Reason(Why.QUEUE_POSITION.value, _who_is_before(outcome))
    if outcome.last is None:
        why = Why.NOT_ENQUEUED if outcome.phase == "Pending" else Why.NOT_TAKEN
        return _Reason((Why.NOT_VALID if outcome.gated else why).value, outcome.sentence)
    late = outcome.last.stage is not Stage.ENQUEUE
    why = outcome.last.why if late else Why.NOT_ENQUEUED
    said = _no_node(outcome) or _not_offered(world, outcome) or outcome.sentence
    if outcome.makes_room and not outcome.victims and outcome.makes_way:
        said = f"{said}: {first_of(outcome.makes_way, _NAMED)}"
    going = _going(outcome)
    return _Reason(why.value, f"{said}; {going}" if going else said)


def _before_any_node(world: ClusterState, outcome: JobOutcome) -> _Reason | None:
    """Say why nodes are not even looked at: no queue, not admitted, no pods, not valid."""
    if not outcome.listed:
        return _Reason(Why.NOT_VALID.value, _unlisted(world, outcome))
    if outcome.awaits_entry:
        told = _not_offered(world, outcome) or outcome.sentence
        return _Reason(Why.NOT_ENQUEUED.value, f"{told}; its pods are made once it is admitted")
    if not outcome.counts:
        return _Reason(Why.NOT_VALID.value, _no_pods(outcome))
    if outcome.invalid:
        return _Reason(Why.NOT_VALID.value, f"not valid: {outcome.invalid}")
    return None


def _no_pods(outcome: JobOutcome) -> str:
    if outcome.phase_before in ("Pending", ""):
        return "it is admitted to its queue now; its pods are not made yet"
    return "it has no pods"


def _who_is_before(outcome: JobOutcome) -> str:
    names = outcome.place.before
    go, take = ("goes", "takes") if len(names) == 1 else ("go", "take")
    return (
        f"{counted(len(names), 'job')} {go} before it and {take} the room it would start in: "
        f"{first_of(names, _NAMED)}"
    )


def _no_node(outcome: JobOutcome) -> str:
    """Say what a pod asks for, what nodes said and how far the gang is, if that is the reason."""
    stop = outcome.last
    if stop is None or stop.why is not Why.NO_NODE_FITS:
        return ""
    numbers = stop.numbers
    asked = ", ".join(f"{name} {amount_text(name, x)}" for name, x in numbers["need"].items())
    pod = str(numbers["task"]).partition("/")[2]
    text = f"no node fits {pod} ({asked or 'asks for nothing'}): of {outcome.n_nodes} "
    text += f"nodes, {count_nodes(numbers)}"
    found = outcome.ready + outcome.found_node + outcome.waiting
    if 1 < outcome.min_member > found:
        text += f"; the gang of {outcome.min_member} is short by {outcome.min_member - found}"
    return text


def _not_offered(world: ClusterState, outcome: JobOutcome) -> str:
    """Tell a limit of zero that comes from a resource that no node has."""
    numbers = outcome.last.numbers if outcome.last is not None else {}
    resource = numbers.get("resource", "")
    if not resource or numbers.get("limit"):
        return ""
    nodes = world.of_kind("Node").values()
    if any(resource in ((node.get("status") or {}).get("allocatable") or {}) for node in nodes):
        return ""
    asked = amount_text(resource, numbers["request"])
    return f"no node offers {resource}, of which it asks for {asked}, so {outcome.sentence}"


def _unlisted(world: ClusterState, outcome: JobOutcome) -> str:
    near = nearest(outcome.queue, world.of_kind("Queue"))
    hint = f"; did you mean {near}?" if near else ""
    return f"not valid: queue {outcome.queue} does not exist{hint}"


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
