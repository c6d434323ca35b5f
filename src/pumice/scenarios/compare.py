"""Compare the decisions of a cycle with the expectations of a scenario, in plain sentences.

Only what the record states is compared. A record that states binds, evictions, pipelined, podGroups
and queues together is a full one: then a pod group or condition it does not list must not exist.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Protocol

from pumice.api.decisions import Condition, Decisions, PodGroupState
from pumice.api.quantity import parse_quantity
from pumice.api.scenario_values import Range
from pumice.api.wording import nearest
from pumice.errors import QuantityError
from pumice.scenarios.expectations import Record, WantedCause
from pumice.scenarios.objects import (
    bind_counts_of_hyper_nodes,
    groups_by_job,
    groups_by_pod,
    key_of,
)

Count = int | Range
_FULL = frozenset({"binds", "evictions", "pipelined", "podGroups", "queues"})
_OF_GROUPS = frozenset(
    {
        *("boundPerPodGroup", "pipelinedPerPodGroup", "evictedPerPodGroup", "pipelinedOnOneOf"),
        *("phases", "podGroups", "taskStatusNums", "unschedulable"),
    }
)
"""Expectations by pod group, or by the Volcano job that it belongs to."""


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What to compare beyond the facts that always count."""

    messages: bool = False
    """Also the texts: condition messages and `unschedulable`."""
    nominated: bool = False
    """Also the nominated nodes."""
    explained: bool = True
    """Whether differences come with their reasons, and counterexamples are saved."""


@dataclass(frozen=True)
class Difference:
    """A sentence on what was decided otherwise than stated, and what it is about."""

    text: str
    about: tuple[str, ...] = ()
    """The pods and pod groups in question."""
    expected: str = ""
    cycle: int = 1
    because: tuple[str, ...] = ()
    """Why it was decided so, a sentence each."""

    def to_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "text": self.text,
            "cycle": self.cycle,
            "about": list(self.about),
            "expected": self.expected,
            "because": list(self.because),
        }


Explain = Callable[[str], Sequence["Cause"]]
"""Returns the causes for which a job waits, the first one first; none if it does not wait."""


class Cause(Protocol):
    """One cause, as `explain` gives it."""

    @property
    def code(self) -> str:
        """Its code."""

    @property
    def text(self) -> str:
        """The sentence."""

    @property
    def numbers(self) -> Mapping[str, Any]:
        """What was compared."""


@dataclass(frozen=True, kw_only=True)
class _Cycle:
    """The input of one check."""

    objects: Sequence[Mapping[str, Any]]
    record: Record
    got: Decisions
    options: CompareOptions
    explain: Explain | None = None


def compare(
    objects: Sequence[Mapping[str, Any]],
    record: Record,
    decisions: Decisions,
    options: CompareOptions | None = None,
) -> list[str]:
    """Return one sentence for each difference; an empty list means agreement.

    A plugin that failed is a difference, whatever was decided.
    """
    return [each.text for each in differences(objects, record, decisions, options)]


def differences(
    objects: Sequence[Mapping[str, Any]],
    record: Record,
    decisions: Decisions,
    options: CompareOptions | None = None,
    explain: Explain | None = None,
) -> list[Difference]:
    """Return the differences, with what each is about; ``explain`` is asked for causes."""
    cycle = _Cycle(
        objects=objects,
        record=record,
        got=decisions,
        options=options or CompareOptions(),
        explain=explain,
    )
    jobs = groups_by_job(objects) if record.keys() & _OF_GROUPS else {}
    found = []
    for key, check in _CHECKS.items():
        if key in record:
            wanted = record[key]
            if key in _OF_GROUPS and jobs:
                wanted = {jobs.get(name, name): value for name, value in wanted.items()}
            found += check(wanted, cycle)
    return [*map(Difference, decisions.failures), *found]


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


def _about(key: str, found: str, expected: str) -> Difference:
    """Make the difference about one pod or pod group."""
    return Difference(f"{key}: {found}, expected {expected}", (key,), expected)


def _binds(wanted: Mapping[str, str], cycle: _Cycle) -> list[Difference]:
    got = cycle.got.binds
    found = []
    for pod in _union(wanted, got):
        if pod not in wanted:
            found.append(_about(pod, f"bound to {got[pod]}", "not bound"))
        elif pod not in got:
            waiting = cycle.got.pipelined.get(pod)
            have = f"pipelined on {waiting}" if waiting else "not bound"
            found.append(_about(pod, have, f"bound to {wanted[pod]}"))
        elif got[pod] != wanted[pod]:
            found.append(_about(pod, f"bound to {got[pod]}", wanted[pod]))
    return found


def _claims(wanted: Mapping[str, Any], cycle: _Cycle) -> list[Difference]:
    got = cycle.got.expected_claims()
    return [
        Difference(f"claim {key}: {_source(got.get(key))}, expected {_source(wanted.get(key))}")
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


def _bind_order(wanted: Sequence[str], cycle: _Cycle) -> list[Difference]:
    got = list(cycle.got.binds)
    # pods that only one side binds are reported by the check of binds
    if "binds" in cycle.record and set(got) != set(wanted):
        return []
    return _order("bind", wanted, got)


def _evictions(wanted: Sequence[str], cycle: _Cycle) -> list[Difference]:
    got = cycle.got.evictions
    missing, extra = Counter(wanted) - Counter(got), Counter(got) - Counter(wanted)
    others = "only others were evicted" if got else "none happened"
    found = [
        Difference(f"expected eviction of {pod}, {others}", (pod,), "evicted")
        for pod in missing.elements()
    ]
    for pod in extra:
        how = " more often than expected" if pod in wanted else ", expected to stay"
        found.append(Difference(f"{pod}: evicted{how}", (pod,), "not evicted"))
    if found or cycle.record.get("evictionsUnordered"):
        return found
    return _order("eviction", wanted, got)


def _order(what: str, wanted: Sequence[str], got: Sequence[str]) -> list[Difference]:
    """Name the first place at which two sequences differ."""
    for place, (want, have) in enumerate(zip(wanted, got, strict=False), start=1):
        if want != have:
            text = f"{what} order: number {place} is {have}, expected {want}"
            return [Difference(text, (have, want), want)]
    if len(wanted) != len(got):
        return [_number(what, got, len(wanted))]
    return []


def _opened_gates(wanted: Sequence[str], cycle: _Cycle) -> list[Difference]:
    got = cycle.got.opened_gates
    kept = [_about(pod, "gate kept", "it to be removed") for pod in wanted if pod not in got]
    opened = [_about(pod, "gate removed", "it to stay") for pod in got if pod not in wanted]
    return kept + opened


def _pipelined(wanted: Mapping[str, str], cycle: _Cycle) -> list[Difference]:
    return _placed("pipelined on", wanted, cycle.got.pipelined)


def _nominated(wanted: Mapping[str, str], cycle: _Cycle) -> list[Difference]:
    if not cycle.options.nominated:
        return []
    return _placed("nominated to", wanted, cycle.got.nominated)


def _placed(verb: str, wanted: Mapping[str, str], got: Mapping[str, str]) -> list[Difference]:
    found = []
    for pod in _union(wanted, got):
        if wanted.get(pod) == got.get(pod):
            continue
        have = f"{verb} {got[pod]}" if pod in got else f"not {verb.split(maxsplit=1)[0]}"
        want = f"{verb} {wanted[pod]}" if pod in wanted else f"not {verb.split(maxsplit=1)[0]}"
        found.append(_about(pod, have, want))
    return found


def _pod_groups(wanted: Mapping[str, Mapping[str, Any]], cycle: _Cycle) -> list[Difference]:
    got = cycle.got.pod_groups
    full = cycle.record.keys() >= _FULL
    found = []
    for name, entry in wanted.items():
        if name in got:
            found += _pod_group(name, entry, got[name], cycle.options, full=full)
        else:
            found.append(_about(name, "not in the session", f"phase {entry.get('phase')}"))
    if full:
        found += [
            _about(name, f"phase {got[name].phase}", "not to be in the session")
            for name in got
            if name not in wanted
        ]
    return found


def _pod_group(
    name: str, wanted: Mapping[str, Any], got: PodGroupState, options: CompareOptions, *, full: bool
) -> list[Difference]:
    found = []
    if "phase" in wanted and wanted["phase"] != got.phase:
        found.append(_about(name, f"phase {got.phase or 'none'}", str(wanted["phase"])))
    if "hyperNode" in wanted and wanted["hyperNode"] != got.hyper_node:
        have = f"HyperNode {got.hyper_node or 'none'}"
        found.append(_about(name, have, str(wanted["hyperNode"])))
    if full or "conditions" in wanted:
        conditions = [Condition.from_manifest(one) for one in wanted.get("conditions") or []]
        found += _conditions(name, conditions, got.conditions, messages=options.messages)
    return found


def _conditions(
    name: str, wanted: Sequence[Condition], got: Sequence[Condition], *, messages: bool
) -> list[Difference]:
    want = {condition.type: condition for condition in wanted}
    have = {condition.type: condition for condition in got}
    found = []
    for kind in _union(want, have):
        if kind not in have:
            found.append(_about(name, f"no condition {kind}", _brief(want[kind])))
        elif kind not in want:
            found.append(_about(name, f"condition {_brief(have[kind])}", f"no {kind}"))
        elif _brief(want[kind]) != _brief(have[kind]):
            found.append(_about(name, f"condition {_brief(have[kind])}", _brief(want[kind])))
        elif messages and want[kind].message and want[kind].message != have[kind].message:
            text = f"message of {kind} is {have[kind].message!r}"
            found.append(_about(name, text, repr(want[kind].message)))
    return found


def _brief(condition: Condition) -> str:
    reason = f" ({condition.reason})" if condition.reason else ""
    return f"{condition.type}={condition.status}{reason}"


def _queues(wanted: Mapping[str, Mapping[str, Any]], cycle: _Cycle) -> list[Difference]:
    found = []
    for name, amounts in wanted.items():
        got = cycle.got.queues.get(name)
        if got is None:
            found.append(Difference(f"queue {name}: no status, expected one"))
            continue
        found += [
            Difference(
                f"queue {name}: allocated {resource} {got.get(resource, '0')}, "
                f"expected {amounts.get(resource, '0')}",
                expected=str(amounts.get(resource, "0")),
            )
            for resource in _union(amounts, got)
            if parse_quantity(amounts.get(resource, "0")) != parse_quantity(got.get(resource, "0"))
        ]
    return found


def _unschedulable(wanted: Mapping[str, str], cycle: _Cycle) -> list[Difference]:
    if not cycle.options.messages:
        return []
    got = cycle.got.unschedulable
    return [
        _about(job, f"fit error {got.get(job, '')!r}", repr(text))
        for job, text in wanted.items()
        if got.get(job) != text
    ]


def _binds_number(wanted: Count, cycle: _Cycle) -> list[Difference]:
    got = cycle.got.binds
    return [] if _is(len(got), wanted) else [_number("bind", got, wanted)]


def _evictions_number(wanted: Count, cycle: _Cycle) -> list[Difference]:
    got = cycle.got.evictions
    return [] if _is(len(got), wanted) else [_number("eviction", got, wanted)]


def _pipelined_on_one_of(wanted: Mapping[str, Sequence[str]], cycle: _Cycle) -> list[Difference]:
    groups = groups_by_pod(cycle.objects)
    found = []
    for job, nodes in wanted.items():
        placed = {p: n for p, n in cycle.got.pipelined.items() if groups.get(p) == job}
        allowed = " or ".join(nodes)
        if not placed:
            found.append(_about(job, "no task pipelined", f"one on {allowed}"))
        found += [
            _about(pod, f"pipelined on {node}", allowed)
            for pod, node in placed.items()
            if node not in nodes
        ]
    return found


def _task_statuses(wanted: Mapping[str, Mapping[str, int]], cycle: _Cycle) -> list[Difference]:
    return [
        _about(
            job,
            f"{cycle.got.task_statuses.get(job, {}).get(status, 0)} tasks {status}",
            str(number),
        )
        for job, numbers in wanted.items()
        for status, number in numbers.items()
        if cycle.got.task_statuses.get(job, {}).get(status, 0) != number
    ]


def _binds_in_hyper_nodes(wanted: Sequence[int], cycle: _Cycle) -> list[Difference]:
    got = bind_counts_of_hyper_nodes(cycle.objects, cycle.got.binds)
    if got == sorted(wanted):
        return []
    text = f"binds for each HyperNode {got}, expected {sorted(wanted)}"
    return [Difference(text, tuple(cycle.got.binds), str(sorted(wanted)))]


def _bound_per_group(wanted: Mapping[str, Count], cycle: _Cycle) -> list[Difference]:
    return _numbers("bound", wanted, counts(cycle.objects, cycle.got)["boundPerPodGroup"], cycle)


def _pipelined_per_group(wanted: Mapping[str, Count], cycle: _Cycle) -> list[Difference]:
    got = counts(cycle.objects, cycle.got)["pipelinedPerPodGroup"]
    return _numbers("pipelined", wanted, got, cycle)


def _evicted_per_group(wanted: Mapping[str, Count], cycle: _Cycle) -> list[Difference]:
    got = _per_group(cycle.got.evictions, groups_by_pod(cycle.objects))
    return _numbers("evicted", wanted, got, cycle)


def _phases(wanted: Mapping[str, str], cycle: _Cycle) -> list[Difference]:
    got = cycle.got.pod_groups
    return [
        _about(name, f"phase {got[name].phase}", phase)
        if name in got
        else _about(name, "not in the session", f"phase {phase}")
        for name, phase in wanted.items()
        if name not in got or got[name].phase != phase
    ]


def _starts(wanted: Sequence[str], cycle: _Cycle) -> list[Difference]:
    """A job starts if a pod of it is bound; wildcards mean every job that they match."""
    bound = counts(cycle.objects, cycle.got)["boundPerPodGroup"]
    jobs, unknown = _matching(wanted, cycle, "it to start")
    return unknown + [
        _about(job, "does not start", "it to start") for job in jobs if job not in bound
    ]


def _waits(wanted: Sequence[str], cycle: _Cycle) -> list[Difference]:
    bound = counts(cycle.objects, cycle.got)["boundPerPodGroup"]
    jobs, unknown = _matching(wanted, cycle, "it to wait")
    return unknown + [
        _about(job, f"{bound[job]} pods bound", "it to wait") for job in jobs if job in bound
    ]


def _matching(
    patterns: Sequence[str], cycle: _Cycle, wanted: str
) -> tuple[list[str], list[Difference]]:
    """List the pod groups of names with wildcards; a name that none has is a difference."""
    names = _jobs(cycle)
    found: dict[str, None] = {}
    unknown = []
    for pattern in patterns:
        matches = [group for name, group in names.items() if fnmatchcase(name, pattern)]
        found |= dict.fromkeys(matches)
        if not matches:
            unknown.append(_about(pattern, _no_job(pattern, names), wanted))
    return [*found], unknown


def _jobs(cycle: _Cycle) -> dict[str, str]:
    """Return the pod group of each name of a job."""
    names = {key_of(one): key_of(one) for one in cycle.objects if one["kind"] == "PodGroup"}
    return groups_by_job(cycle.objects) | names


def _no_job(name: str, known: Collection[str]) -> str:
    near = nearest(name, known)
    return "there is no such job" + (f" (did you mean '{near}'?)" if near else "")


def _causes(wanted: Mapping[str, WantedCause], cycle: _Cycle) -> list[Difference]:
    if cycle.explain is None:
        return []
    return [
        difference
        for job, want in wanted.items()
        for difference in _cause(job, want, cycle.explain(job))
    ]


def _cause(job: str, wanted: WantedCause, causes: Sequence[Cause]) -> list[Difference]:
    found = [str(each.code) for each in causes]
    if not found:
        return [_about(job, "does not wait", f"it to wait with {' and '.join(wanted.codes)}")]
    first = [found[0]] if len(wanted.codes) == 1 else found
    missing = [code for code in wanted.codes if code not in first]
    if missing:
        return [_about(job, f"waits with {', '.join(found)}", " and ".join(missing))]
    numbers = causes[0].numbers
    return [
        _about(job, f"{name} of {found[0]} is {numbers.get(name, 'not stated')}", str(number))
        for name, number in wanted.numbers.items()
        if not _is_amount(numbers.get(name), number)
    ]


def _is_amount(got: Any, wanted: Any) -> bool:
    """Compare a number of a cause with one that may be written as a quantity."""
    if got == wanted or str(got) == str(wanted):
        return True
    if not isinstance(got, int | float) or not isinstance(wanted, str | int | float):
        return False
    try:
        return parse_quantity(wanted) == parse_quantity(got)
    except QuantityError:
        return False


def _numbers(
    verb: str, wanted: Mapping[str, Count], got: Mapping[str, int], cycle: _Cycle
) -> list[Difference]:
    differing = [
        name for name in _union(wanted, got) if not _is(got.get(name, 0), wanted.get(name, 0))
    ]
    known = {*_jobs(cycle), *groups_by_pod(cycle.objects).values()} if differing else set()
    return [
        _about(name, f"{got.get(name, 0)} pods {verb}", str(wanted.get(name, 0)))
        if name in known
        else _about(name, _no_job(name, known), f"{wanted.get(name, 0)} pods {verb}")
        for name in differing
    ]


def _is(got: int, wanted: Count) -> bool:
    return got in wanted if isinstance(wanted, Range) else got == wanted


def _number(what: str, got: Collection[str], wanted: Count) -> Difference:
    n = len(got)
    text = f"{n} {what}{'' if n == 1 else 's'}, expected {wanted}"
    return Difference(text, tuple(got), str(wanted))


def _union(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """Return the keys of both, those of the first one first."""
    return list(dict.fromkeys([*first, *second]))


# in the order in which differences are reported: placements first, texts last
_CHECKS: dict[str, Callable[[Any, _Cycle], list[Difference]]] = {
    "starts": _starts,
    "waits": _waits,
    "binds": _binds,
    "claims": _claims,
    "bindsNum": _binds_number,
    "boundPerPodGroup": _bound_per_group,
    "bindNumsInHyperNode": _binds_in_hyper_nodes,
    "evictions": _evictions,
    "evictNum": _evictions_number,
    "evicted": _evictions_number,
    "evictedPerPodGroup": _evicted_per_group,
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
    "causes": _causes,
}
