"""Why a job waits: a ladder of gates, one sentence with numbers, and what would get it started.

All of it comes from the records of the code that decided, and from running that code again on
copies of the cluster.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pumice.answers.finding import Finding, look
from pumice.answers.job_manifests import is_expected
from pumice.answers.lab import Lab
from pumice.answers.ladder import FAILED, Gate, climb, count_nodes
from pumice.answers.search import Search
from pumice.answers.world import Manifest, World, group_of
from pumice.api.conf import nearest
from pumice.framework.explaining import amount_text
from pumice.framework.records import Stage, Why

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
    """How many of them are not there yet: a controller makes them once the job is let in."""
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


def explain_job(world: World, name: str, *, cycles: int = 1, unblock: bool = True) -> Explanation:
    """Explain where a job stands after some cycles.

    Raises:
        InputError: no job, or several, have that name.
    """
    job = world.find_job(name)
    lab = Lab(world)
    finding = look(world, job, cycles, lab)
    state = _state(finding)
    if state != "waits":
        return _explanation(world, finding, state, _Reason("", _settled(finding, state)))
    search = Search(world, job, lab, cycles)
    reason = _reason(world, finding, is_behind=_is_behind(search, finding))
    settled = finding.makes_room or finding.is_let_in
    ways = search.ways(finding) if unblock and not settled else []
    return replace(
        _explanation(world, finding, state, reason),
        unblock=[Unblock(change=way.text, result=_result(way.finding)) for way in ways],
        tried=len(search.tried),
    )


def explain_waiting(world: World) -> dict[str, str]:
    """Say of every job that the next cycle leaves waiting why, in one sentence each."""
    return dict(sorted(Lab(world).decide().explanations.items()))


@dataclass(frozen=True)
class _Reason:
    """A reason of the closed list, and the sentence that says it."""

    value: str
    sentence: str


def _state(finding: Finding) -> str:
    if finding.started:
        return "starts"
    if finding.pending or finding.waiting or not finding.listed or not finding.counts:
        return "waits"
    if finding.evicted or finding.leaving:
        return "evicted"
    return "runs" if finding.ready > finding.counts.get("Succeeded", 0) else "finished"


def _explanation(world: World, finding: Finding, state: str, reason: _Reason) -> Explanation:
    stop = finding.last
    return Explanation(
        job=finding.job,
        name=world.title(finding.job),
        state=state,
        reason=reason.value,
        sentence=reason.sentence,
        queue=finding.queue,
        phase=finding.phase,
        min_member=finding.min_member,
        pods=finding.counts,
        expected=sum(map(is_expected, world.pods_by_group.get(finding.job, ()))),
        numbers=dict(stop.numbers) if stop is not None and state == "waits" else {},
        gates=climb(finding, behind=reason.value == Why.QUEUE_POSITION.value),
        victims=_victims(world, finding),
        places={**finding.binds, **finding.promised},
        cycle=finding.cycle,
    )


def _settled(finding: Finding, state: str) -> str:
    if state == "starts":
        n, nodes = len(finding.binds), len(set(finding.binds.values()))
        when = "now" if finding.cycle == 1 else f"in cycle {finding.cycle}"
        more = f"; {finding.pending} more {'waits' if finding.pending == 1 else 'wait'}"
        more = f"{more}: {_rest(finding)}" if finding.pending else ""
        return f"it starts {when}: {_count(n, 'pod')} on {_count(nodes, 'node')}{more}"
    if state == "evicted":
        return _going(finding)
    if state == "runs":
        return f"it runs: {_count(finding.ready, 'pod')} of at least {finding.min_member}"
    return "all its pods have ended"


def _going(finding: Finding) -> str:
    """Say which of its pods leave, for whom and by which action; empty if none does."""
    told = []
    n = sum(finding.counts.values())
    if finding.evicted:
        whom = sorted({each for each in finding.evicted.values() if each})
        for_whom = f" for {_some(whom)}" if whom else ""
        by = f" by {' and '.join(finding.evicted_by)}" if finding.evicted_by else ""
        told.append(
            f"{_part(finding.evicted, n)} evicted{for_whom}{by}: {_some(list(finding.evicted))}"
        )
    if finding.leaving:
        told.append(f"{_part(finding.leaving, n)} leaving: {_some(finding.leaving)}")
    return "; ".join(told)


def _part(pods: Collection[str], n: int) -> str:
    return f"{len(pods)} of its {n} pods {'is' if len(pods) == 1 else 'are'}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _rest(finding: Finding) -> str:
    """Say why further pods of a job that starts have to wait."""
    gates = [gate for gate in climb(finding) if gate.mark == FAILED]
    return gates[-1].text if gates else "a later cycle will look at them"


def _is_behind(search: Search, finding: Finding) -> bool:
    """Say whether a job would start if nobody had been taken before it."""
    if finding.last is None or finding.last.stage not in _LATE or not finding.place.before:
        return False
    return search.starts_without(finding.place.before)


def _reason(world: World, finding: Finding, *, is_behind: bool) -> _Reason:
    """Choose the first reason of the list that holds, and say it."""
    early = _before_any_node(world, finding)
    if early is not None:
        return early
    if is_behind:
        return _Reason(Why.QUEUE_POSITION.value, _who_is_before(finding))
    if finding.last is None:
        why = Why.NOT_ENQUEUED if finding.phase == "Pending" else Why.NOT_TAKEN
        return _Reason((Why.NOT_VALID if finding.gated else why).value, finding.sentence)
    late = finding.last.stage is not Stage.ENQUEUE
    why = finding.last.why if late else Why.NOT_ENQUEUED
    said = _no_node(finding) or _not_offered(world, finding) or finding.sentence
    if finding.makes_room and not finding.victims and finding.makes_way:
        said = f"{said}: {_some(finding.makes_way)}"
    going = _going(finding)
    return _Reason(why.value, f"{said}; {going}" if going else said)


def _before_any_node(world: World, finding: Finding) -> _Reason | None:
    """Say why nodes are not even looked at: no queue, not let in, no pods, not valid."""
    if not finding.listed:
        return _Reason(Why.NOT_VALID.value, _unlisted(world, finding))
    if finding.awaits_entry:
        told = _not_offered(world, finding) or finding.sentence
        return _Reason(Why.NOT_ENQUEUED.value, f"{told}; its pods are made once it is let in")
    if not finding.counts:
        return _Reason(Why.NOT_VALID.value, _no_pods(finding))
    if finding.invalid:
        return _Reason(Why.NOT_VALID.value, f"not valid: {finding.invalid}")
    return None


def _no_pods(finding: Finding) -> str:
    if finding.phase_before in ("Pending", ""):
        return "it is let into its queue now; its pods are not made yet"
    return "it has no pods"


def _who_is_before(finding: Finding) -> str:
    names = finding.place.before
    go, take = ("goes", "takes") if len(names) == 1 else ("go", "take")
    return (
        f"{_count(len(names), 'job')} {go} before it and {take} the room it would start in: "
        f"{_some(names)}"
    )


def _no_node(finding: Finding) -> str:
    """Say what a pod asks for, what nodes said and how far the gang is, if that is the reason."""
    stop = finding.last
    if stop is None or stop.why is not Why.NO_NODE_FITS:
        return ""
    numbers = stop.numbers
    asked = ", ".join(f"{name} {amount_text(name, x)}" for name, x in numbers["need"].items())
    pod = str(numbers["task"]).partition("/")[2]
    text = f"no node fits {pod} ({asked or 'asks for nothing'}): of {finding.n_nodes} "
    text += f"nodes, {count_nodes(numbers)}"
    found = finding.ready + finding.found_node + finding.waiting
    if 1 < finding.min_member > found:
        text += f"; the gang of {finding.min_member} is short by {finding.min_member - found}"
    return text


def _not_offered(world: World, finding: Finding) -> str:
    """Tell a limit of zero that comes from a resource that no node has."""
    numbers = finding.last.numbers if finding.last is not None else {}
    resource = numbers.get("resource", "")
    if not resource or numbers.get("limit"):
        return ""
    nodes = world.of_kind("Node").values()
    if any(resource in ((node.get("status") or {}).get("allocatable") or {}) for node in nodes):
        return ""
    asked = amount_text(resource, numbers["request"])
    return f"no node offers {resource}, of which it asks for {asked}, so {finding.sentence}"


def _unlisted(world: World, finding: Finding) -> str:
    if not finding.queue:
        return "its pod group names no queue"
    near = nearest(finding.queue, world.of_kind("Queue"))
    hint = f"; did you mean {near}?" if near else ""
    return f"not valid: queue {finding.queue} does not exist{hint}"


def _result(finding: Finding) -> str:
    """Say what happens once a change is made."""
    if finding.started:
        later = f" in cycle {finding.cycle}" if finding.cycle > 1 else ""
        n = len(finding.binds)
        return f"{_count(n, 'pod')} {'starts' if n == 1 else 'start'}{later}"
    if finding.is_let_in:
        return "it is let into its queue, and its pods are made"
    if not finding.victims:
        return "it keeps its place until pods that leave are gone"
    return f"it starts once evicted pods are gone: {_some(list(finding.victims))}"


def _victims(world: World, finding: Finding) -> list[Victim]:
    pods = world.of_kind("Pod") if finding.victims else {}
    return [
        Victim(
            pod=key,
            job=group_of(pods[key]),
            node=node,
            queue=_queue_of(world, pods[key]),
            priority=int(pods[key]["spec"].get("priority") or 0),
        )
        for key, node in finding.victims.items()
        if key in pods
    ]


def _queue_of(world: World, pod: Manifest) -> str:
    group = world.groups.get(group_of(pod))
    return str(group["spec"].get("queue", "")) if group else ""


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"
