"""What a scenario expects: of each cycle, of every cycle, and in the end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pumice.api.codes import Cause
from pumice.api.scenario_values import (
    Within,
    is_range,
    is_span,
    listed,
    mapped,
    problem,
    range_from,
    refuse_unknown,
    typed,
    within_from,
)
from pumice.api.wording import nearest

Record = dict[str, Any]

MOST_CYCLES: Final = 100_000
_NUMBER_KEYS = ("bindsNum", "evictNum", "evicted")
_NODE_KEYS = ("binds", "pipelined", "nominated")
"""Keys of expectations that map pods to nodes."""
LIST_KEYS = (
    *("bindOrder", "evictions", "bindNumsInHyperNode", "openedGates"),
    *("starts", "waits"),
)
_PER_GROUP = ("boundPerPodGroup", "pipelinedPerPodGroup", "evictedPerPodGroup")
MAPPING_KEYS = (
    *("binds", "pipelined", "podGroups", "nominated", "queues", "unschedulable"),
    *("claims", "pipelinedOnOneOf", "taskStatusNums", "phases", "causes"),
    *_PER_GROUP,
)
EXPECT_KEYS = (
    *MAPPING_KEYS,
    *LIST_KEYS,
    *_NUMBER_KEYS,
    *("evictionsUnordered", "counts", "cycles"),
)
_COUNTED = {"binds": "bindsNum", "evictions": "evictNum"}
"""Keys that name pods, and those that count them."""
NO_EXPECTATION: Final = "at least one expectation"


@dataclass(frozen=True, kw_only=True)
class Eventually:
    """What must hold after some cycle, and by when."""

    record: Record
    within: Within | None = None
    """None: as soon as nothing changes any more."""


@dataclass(frozen=True, kw_only=True)
class WantedCause:
    """The first cause for which a job waits, and numbers of it."""

    codes: tuple[str, ...]
    """One: the first cause; several: each is among the causes."""
    numbers: Mapping[str, Any] = field(default_factory=dict)


def expectations_from(path: Path, document: Mapping[str, Any]) -> tuple[int | None, list[Record]]:
    """Return the stated number of cycles of a scenario, and what is expected of the first ones.

    Raises:
        ScenarioError: they break the format.
    """
    cycles = document.get("cycles")
    is_number = isinstance(cycles, int) and not isinstance(cycles, bool)
    if cycles is not None and not (is_number and 1 <= cycles <= MOST_CYCLES):
        raise problem(path, "cycles", cycles, f"a number of at least 1, at most {MOST_CYCLES}")
    if document.get("expect") is None:
        return cycles, []
    expect = mapped(path, "expect", document["expect"])
    if "cycles" not in expect:
        if cycles is not None and cycles > 1:
            raise problem(path, "expect.cycles", None, f"a list of {cycles} records")
        return cycles, [_record(path, "expect", expect)]
    refuse_unknown(path, "expect", expect, ("cycles",))
    given = listed(path, "expect.cycles", expect["cycles"])
    if not given or len(given) != (cycles or len(given)):
        raise problem(
            path, "expect.cycles", f"{len(given)} records", f"{cycles or 'at least 1'}, as 'cycles'"
        )
    return len(given), [_record(path, f"expect.cycles[{i}]", one) for i, one in enumerate(given)]


def always_from(path: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the invariants of a scenario with their values; those that are switched off are out.

    A list names invariants that need no value.

    Raises:
        ScenarioError: they break the format.
    """
    given = document.get("always")
    if given is None and "always" not in document:
        return {}
    wanted = "invariants, such as gangsWhole: true"
    if isinstance(given, str):
        given = [given]
    if isinstance(given, list):
        given = _joined(path, given, wanted)
    found = mapped(path, "always", given, wanted)
    stated = {str(key): True if value is None else value for key, value in found.items()}
    kept = {key: value for key, value in stated.items() if value is not False}
    if not kept:
        raise problem(path, "always", given, "at least one invariant")
    return kept


def _joined(path: Path, items: list[Any], wanted: str) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for i, item in enumerate(items):
        where = f"always[{i}]"
        if isinstance(item, str):
            joined[item] = True
        else:
            joined |= mapped(path, where, item, wanted)
    return joined


def eventually_from(path: Path, document: Mapping[str, Any]) -> list[Eventually]:
    """Return what must hold after some cycle: one goal, a list of them, or spans to goals.

    Raises:
        ScenarioError: they break the format.
    """
    if "eventually" not in document:
        return []
    given = document["eventually"]
    if isinstance(given, list) and given:
        return [_goal(path, f"eventually[{i}]", one) for i, one in enumerate(given)]
    if isinstance(given, dict) and given and all(map(is_span, given)):
        return [_goal(path, f"eventually.{span}", one, span) for span, one in given.items()]
    return [_goal(path, "eventually", given)]


def _goal(path: Path, where: str, given: Any, span: Any = None) -> Eventually:
    record = dict(mapped(path, where, given))
    span = record.pop("within", span)
    if not record:
        raise problem(path, where, given, NO_EXPECTATION)
    known = tuple(key for key in EXPECT_KEYS if key not in ("cycles", "bindOrder"))
    refuse_unknown(path, where, record, ("within", *known))
    within = None if span is None else within_from(path, f"{where}.within", span)
    return Eventually(record=_record(path, where, record), within=within)


def _record(path: Path, where: str, given: Any) -> Record:
    """Check the expectations for one cycle and lift the entries of `counts` to the top."""
    record = dict(mapped(path, where, given))
    refuse_unknown(path, where, record, EXPECT_KEYS)
    counts = mapped(path, f"{where}.counts", record.pop("counts", {}))
    refuse_unknown(path, f"{where}.counts", counts, EXPECT_KEYS)
    record |= counts
    for names, number in _COUNTED.items():
        if is_range(record.get(names)):
            record[number] = record.pop(names)
    for key, value in record.items():
        kind, wanted = _kind(key)
        if not kind(value):
            raise problem(path, f"{where}.{key}", value, wanted)
    _check_names(path, where, record)
    for key in _NUMBER_KEYS:
        if key in record:
            record[key] = _number(path, f"{where}.{key}", record[key])
    for key in _PER_GROUP:
        if key in record:
            record[key] = {
                name: _number(path, f"{where}.{key}.{name}", number)
                for name, number in record[key].items()
            }
    if "causes" in record:
        record["causes"] = {
            name: _cause(path, f"{where}.causes.{name}", value)
            for name, value in record["causes"].items()
        }
    return record


def _check_names(path: Path, where: str, record: Record) -> None:
    for key in _NODE_KEYS:
        for pod, node in (record.get(key) or {}).items():
            typed(path, f"{where}.{key}.{pod}", node, str, "the name of a node")
    for name, group in record.get("podGroups", {}).items():
        entry = typed(path, f"{where}.podGroups.{name}", group, dict, "a mapping with phase")
        refuse_unknown(
            path, f"{where}.podGroups.{name}", entry, ("phase", "conditions", "hyperNode")
        )


def _number(path: Path, where: str, value: Any) -> Any:
    """Return a plain number as it is, else the range."""
    return value if isinstance(value, int) and is_range(value) else range_from(path, where, value)


def _cause(path: Path, where: str, value: Any) -> WantedCause:
    """Read a code, a list of codes, or a code with numbers."""
    if isinstance(value, dict):
        refuse_unknown(path, where, value, ("code", "numbers"))
        code = _code(path, f"{where}.code", value.get("code"))
        numbers = mapped(path, f"{where}.numbers", value.get("numbers", {}))
        return WantedCause(codes=(code,), numbers=numbers)
    if isinstance(value, list) and value:
        codes = [_code(path, f"{where}[{i}]", one) for i, one in enumerate(value)]
        return WantedCause(codes=tuple(codes))
    return WantedCause(codes=(_code(path, where, value),))


def _code(path: Path, where: str, value: Any) -> str:
    known = [each.value for each in Cause]
    if value not in known:
        near = nearest(str(value), known)
        hint = f"did you mean '{near}'?" if near else "docs/codes.md lists them"
        raise problem(path, where, value, "the code of a cause", hint)
    return str(value)


def _kind(key: str) -> tuple[Callable[[Any], bool], str]:
    if key in _NUMBER_KEYS:
        return is_range, "a number, or {at least: N, at most: N}"
    if key in LIST_KEYS:
        return lambda value: isinstance(value, list), "a list"
    if key in MAPPING_KEYS:
        return lambda value: isinstance(value, dict), "a mapping"
    return lambda value: isinstance(value, bool), "true or false"
