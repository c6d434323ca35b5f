"""Compare the decisions of a cycle with the expectations of a scenario, in plain sentences.

Only what the record states is compared. A record that states binds, evictions, pipelined, podGroups
and queues together is a full one: then a pod group or condition it does not list must not exist.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pumice.api.decisions import Condition, Decisions, PodGroupState
from pumice.api.quantity import parse_quantity
from pumice.scenarios.objects import bind_counts_of_hyper_nodes, groups_by_pod
from pumice.scenarios.scenario import Record

_FULL = frozenset({"binds", "evictions", "pipelined", "podGroups", "queues"})


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What to compare beyond the facts that always count."""

    messages: bool = False
    """Also the texts: condition messages and `unschedulable`."""
    nominated: bool = False
    """Also the nominated nodes."""


@dataclass(frozen=True, kw_only=True)
class _Cycle:
    """The input of one check."""

    objects: Sequence[Mapping[str, Any]]
    record: Record
    got: Decisions
    options: CompareOptions


def compare(
    objects: Sequence[Mapping[str, Any]],
    record: Record,
    decisions: Decisions,
    options: CompareOptions | None = None,
) -> list[str]:
    """Return one sentence for each difference; an empty list means agreement.

    A plugin that failed is a difference, whatever was decided.
    """
    cycle = _Cycle(
        objects=objects, record=record, got=decisions, options=options or CompareOptions()
    )
    differences = [
        difference
        for key, check in _CHECKS.items()
        if key in record
        for difference in check(record[key], cycle)
    ]
    return [*decisions.failures, *differences]


def counts(objects: Sequence[Mapping[str, Any]], decisions: Decisions) -> Record:
    """Return the entries of `expect.counts`: the facts that do not depend on ties."""
    groups = groups_by_pod(objects)
    return {
        "boundPerPodGroup": _per_group(decisions.binds, groups),
        "evicted": len(decisions.evictions),
        "phases": {name: state.phase for name, state in sorted(decisions.pod_groups.items())},
        "pipelinedPerPodGroup": _per_group(decisions.pipelined, groups),
    }


def _per_group(pods: Iterable[str], groups: Mapping[str, str]) -> dict[str, int]:
    return dict(sorted(Counter(groups[pod] for pod in pods if pod in groups).items()))


def _binds(wanted: Mapping[str, str], cycle: _Cycle) -> list[str]:
    got = cycle.got.binds
    differences = []
    for pod in _union(wanted, got):
        if pod not in wanted:
            differences.append(f"{pod}: bound to {got[pod]}, expected not bound")
        elif pod not in got:
            waiting = cycle.got.pipelined.get(pod)
            found = f"pipelined on {waiting}" if waiting else "not bound"
            differences.append(f"{pod}: {found}, expected bound to {wanted[pod]}")
        elif got[pod] != wanted[pod]:
            differences.append(f"{pod}: bound to {got[pod]}, expected {wanted[pod]}")
    return differences


def _claims(wanted: Mapping[str, Any], cycle: _Cycle) -> list[str]:
    got = cycle.got.expected_claims()
    return [
        f"claim {key}: {_source(got.get(key))}, expected {_source(wanted.get(key))}"
        for key in _union(wanted, got)
        if wanted.get(key) != got.get(key)
    ]


def _source(given: Mapping[str, str] | Sequence[str] | None) -> str:
    """Describe what a claim gets: a volume, a node to provision one for, or devices."""
    if given is None:
        return "nothing chosen"
    if isinstance(given, Mapping):
        return " and ".join(f"{key} {name}" for key, name in given.items())
    return f"devices {', '.join(given) or 'none'}"


def _bind_order(wanted: Sequence[str], cycle: _Cycle) -> list[str]:
    got = list(cycle.got.binds)
    # pods that only one side binds are reported by the check of binds
    if "binds" in cycle.record and set(got) != set(wanted):
        return []
    return _order("bind", wanted, got)


def _evictions(wanted: Sequence[str], cycle: _Cycle) -> list[str]:
    got = cycle.got.evictions
    missing, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    differences = [
        f"expected eviction of {pod}, {'only others were evicted' if got else 'none happened'}"
        for pod in missing.elements()
    ]
    differences += [
        f"{pod}: evicted{' more often than expected' if pod in wanted else ', expected to stay'}"
        for pod in extra
    ]
    if differences or cycle.record.get("evictionsUnordered"):
        return differences
    return _order("eviction", wanted, got)


def _order(what: str, wanted: Sequence[str], got: Sequence[str]) -> list[str]:
    """Name the first place at which two sequences differ."""
    for place, (want, have) in enumerate(zip(wanted, got, strict=False), start=1):
        if want != have:
            return [f"{what} order: number {place} is {have}, expected {want}"]
    if len(wanted) != len(got):
        return [_number(what, len(got), len(wanted))]
    return []


def _opened_gates(wanted: Sequence[str], cycle: _Cycle) -> list[str]:
    got = cycle.got.opened_gates
    kept = [f"{pod}: gate kept, expected it to be removed" for pod in wanted if pod not in got]
    opened = [f"{pod}: gate removed, expected it to stay" for pod in got if pod not in wanted]
    return kept + opened


def _pipelined(wanted: Mapping[str, str], cycle: _Cycle) -> list[str]:
    return _placed("pipelined on", wanted, cycle.got.pipelined)


def _nominated(wanted: Mapping[str, str], cycle: _Cycle) -> list[str]:
    if not cycle.options.nominated:
        return []
    return _placed("nominated to", wanted, cycle.got.nominated)


def _placed(verb: str, wanted: Mapping[str, str], got: Mapping[str, str]) -> list[str]:
    differences = []
    for pod in _union(wanted, got):
        if wanted.get(pod) == got.get(pod):
            continue
        have = f"{verb} {got[pod]}" if pod in got else f"not {verb.split(maxsplit=1)[0]}"
        want = f"{verb} {wanted[pod]}" if pod in wanted else f"not {verb.split(maxsplit=1)[0]}"
        differences.append(f"{pod}: {have}, expected {want}")
    return differences


def _pod_groups(wanted: Mapping[str, Mapping[str, Any]], cycle: _Cycle) -> list[str]:
    got = cycle.got.pod_groups
    full = cycle.record.keys() >= _FULL
    differences = []
    for name, entry in wanted.items():
        if name in got:
            differences += _pod_group(name, entry, got[name], cycle.options, full=full)
        else:
            differences.append(f"{name}: not in the session, expected phase {entry.get('phase')}")
    if full:
        differences += [
            f"{name}: phase {got[name].phase}, expected not to be in the session"
            for name in got
            if name not in wanted
        ]
    return differences


def _pod_group(
    name: str, wanted: Mapping[str, Any], got: PodGroupState, options: CompareOptions, *, full: bool
) -> list[str]:
    differences = []
    if "phase" in wanted and wanted["phase"] != got.phase:
        differences.append(f"{name}: phase {got.phase or 'none'}, expected {wanted['phase']}")
    if "hyperNode" in wanted and wanted["hyperNode"] != got.hyper_node:
        differences.append(
            f"{name}: HyperNode {got.hyper_node or 'none'}, expected {wanted['hyperNode']}"
        )
    if full or "conditions" in wanted:
        conditions = [Condition.from_manifest(one) for one in wanted.get("conditions") or []]
        differences += _conditions(name, conditions, got.conditions, messages=options.messages)
    return differences


def _conditions(
    name: str, wanted: Sequence[Condition], got: Sequence[Condition], *, messages: bool
) -> list[str]:
    want = {condition.type: condition for condition in wanted}
    have = {condition.type: condition for condition in got}
    differences = []
    for kind in _union(want, have):
        if kind not in have:
            differences.append(f"{name}: no condition {kind}, expected {_brief(want[kind])}")
        elif kind not in want:
            differences.append(f"{name}: condition {_brief(have[kind])}, expected no {kind}")
        elif _brief(want[kind]) != _brief(have[kind]):
            differences.append(
                f"{name}: condition {_brief(have[kind])}, expected {_brief(want[kind])}"
            )
        elif messages and want[kind].message and want[kind].message != have[kind].message:
            differences.append(
                f"{name}: message of {kind} is {have[kind].message!r}, "
                f"expected {want[kind].message!r}"
            )
    return differences


def _brief(condition: Condition) -> str:
    reason = f" ({condition.reason})" if condition.reason else ""
    return f"{condition.type}={condition.status}{reason}"


def _queues(wanted: Mapping[str, Mapping[str, Any]], cycle: _Cycle) -> list[str]:
    differences = []
    for name, amounts in wanted.items():
        got = cycle.got.queues.get(name)
        if got is None:
            differences.append(f"queue {name}: no status, expected one")
            continue
        differences += [
            f"queue {name}: allocated {resource} {got.get(resource, '0')}, "
            f"expected {amounts.get(resource, '0')}"
            for resource in _union(amounts, got)
            if parse_quantity(amounts.get(resource, "0")) != parse_quantity(got.get(resource, "0"))
        ]
    return differences


def _unschedulable(wanted: Mapping[str, str], cycle: _Cycle) -> list[str]:
    if not cycle.options.messages:
        return []
    got = cycle.got.unschedulable
    return [
        f"{job}: fit error {got.get(job, '')!r}, expected {text!r}"
        for job, text in wanted.items()
        if got.get(job) != text
    ]


def _binds_number(wanted: int, cycle: _Cycle) -> list[str]:
    got = len(cycle.got.binds)
    return [] if got == wanted else [_number("bind", got, wanted)]


def _evictions_number(wanted: int, cycle: _Cycle) -> list[str]:
    got = len(cycle.got.evictions)
    return [] if got == wanted else [_number("eviction", got, wanted)]


def _pipelined_on_one_of(wanted: Mapping[str, Sequence[str]], cycle: _Cycle) -> list[str]:
    groups = groups_by_pod(cycle.objects)
    differences = []
    for job, nodes in wanted.items():
        placed = {p: n for p, n in cycle.got.pipelined.items() if groups.get(p) == job}
        allowed = " or ".join(nodes)
        if not placed:
            differences.append(f"{job}: no task pipelined, expected one on {allowed}")
        differences += [
            f"{pod}: pipelined on {node}, expected {allowed}"
            for pod, node in placed.items()
            if node not in nodes
        ]
    return differences


def _task_statuses(wanted: Mapping[str, Mapping[str, int]], cycle: _Cycle) -> list[str]:
    return [
        f"{job}: {cycle.got.task_statuses.get(job, {}).get(status, 0)} tasks {status}, "
        f"expected {number}"
        for job, numbers in wanted.items()
        for status, number in numbers.items()
        if cycle.got.task_statuses.get(job, {}).get(status, 0) != number
    ]


def _binds_in_hyper_nodes(wanted: Sequence[int], cycle: _Cycle) -> list[str]:
    got = bind_counts_of_hyper_nodes(cycle.objects, cycle.got.binds)
    if got == sorted(wanted):
        return []
    return [f"binds for each HyperNode {got}, expected {sorted(wanted)}"]


def _bound_per_group(wanted: Mapping[str, int], cycle: _Cycle) -> list[str]:
    return _numbers("bound", wanted, counts(cycle.objects, cycle.got)["boundPerPodGroup"])


def _pipelined_per_group(wanted: Mapping[str, int], cycle: _Cycle) -> list[str]:
    return _numbers("pipelined", wanted, counts(cycle.objects, cycle.got)["pipelinedPerPodGroup"])


def _phases(wanted: Mapping[str, str], cycle: _Cycle) -> list[str]:
    got = cycle.got.pod_groups
    return [
        f"{name}: phase {got[name].phase}, expected {phase}"
        if name in got
        else f"{name}: not in the session, expected phase {phase}"
        for name, phase in wanted.items()
        if name not in got or got[name].phase != phase
    ]


def _numbers(verb: str, wanted: Mapping[str, int], got: Mapping[str, int]) -> list[str]:
    return [
        f"{name}: {got.get(name, 0)} pods {verb}, expected {wanted.get(name, 0)}"
        for name in _union(wanted, got)
        if got.get(name, 0) != wanted.get(name, 0)
    ]


def _number(what: str, got: int, wanted: int) -> str:
    return f"{got} {what}{'' if got == 1 else 's'}, expected {wanted}"


def _union(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Return the keys of both, those of the first one first."""
    return list(dict.fromkeys([*first, *second]))


# in the order in which differences are reported: placements first, texts last
_CHECKS: dict[str, Callable[[Any, _Cycle], list[str]]] = {
    "binds": _binds,
    "claims": _claims,
    "bindsNum": _binds_number,
    "boundPerPodGroup": _bound_per_group,
    "bindNumsInHyperNode": _binds_in_hyper_nodes,
    "evictions": _evictions,
    "evictNum": _evictions_number,
    "evicted": _evictions_number,
    "openedGates": _opened_gates,
    "pipelined": _pipelined,
    "pipelinedOnOneOf": _pipelined_on_one_of,
    "pipelinedPerPodGroup": _pipelined_per_group,
    "phases": _phases,
    "podGroups": _pod_groups,
    "taskStatusNums": _task_statuses,
    "nominated": _nominated,
    "bindOrder": _bind_order,
    "queues": _queues,
    "unschedulable": _unschedulable,
}
