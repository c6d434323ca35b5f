"""What changes from outside while a scenario is played: arrivals, ends, cordons, queues."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.api.scenario_values import (
    Within,
    is_count,
    listed,
    mapped,
    problem,
    refuse_unknown,
    seconds_from,
    typed,
)
from pumice.api.short_forms import Making, changed_queue, nodes_from, queues_from, workloads_from
from pumice.scenarios.objects import group_of, key_of

WHEN: Final = ("cycle", "time")
DOES: Final = ("workloads", "nodes", "queues", "objects", "ends", "delete", "cordon", "uncordon")
_CYCLE: Final = re.compile(r"(?:cycle\s*)?(\d+)")
_STEP: Final = "steps such as {cycle: 3, ends: [team/a]}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change before one of the cycles."""

    at: Within
    """The cycle, or the seconds since the first one."""
    given: Mapping[str, Any]
    where: str

    def is_due(self, cycle: int, seconds: float) -> bool:
        """Return whether it comes before a cycle, counted from 1."""
        return seconds >= self.at.seconds if self.at.cycles is None else cycle >= self.at.cycles


def steps_from(path: Path, document: Mapping[str, Any]) -> list[Step]:
    """Read the steps of a scenario: a list, or times to changes.

    Raises:
        ScenarioError: they break the format.
    """
    given = document.get("at")
    if given is None:
        return []
    if isinstance(given, dict):
        steps = [
            Step(
                at=_moment(path, f"at.{key}", key),
                given=_checked(path, f"at.{key}", one),
                where=f"at.{key}",
            )
            for key, one in given.items()
        ]
    else:
        items = typed(path, "at", given, list, _STEP)
        steps = [_step(path, f"at[{i}]", item) for i, item in enumerate(items)]
    return steps


def _step(path: Path, where: str, item: Any) -> Step:
    given = dict(mapped(path, where, item, _STEP))
    when = [key for key in WHEN if key in given]
    if len(when) != 1:
        raise problem(path, where, given, "either cycle or time")
    value = given.pop(when[0])
    at = f"{where}.{when[0]}"
    if when[0] == "time":
        moment = Within(seconds=seconds_from(path, at, value))
    elif is_count(value) and value >= 1:
        moment = Within(cycles=value)
    else:
        raise problem(path, at, value, "the number of a cycle, from 1")
    return Step(at=moment, given=_checked(path, where, given), where=where)


def _moment(path: Path, where: str, key: Any) -> Within:
    found = _CYCLE.fullmatch(str(key))
    return Within(cycles=int(found[1])) if found else Within(seconds=seconds_from(path, where, key))


def _checked(path: Path, where: str, given: Any) -> dict[str, Any]:
    """Check what a step does, as far as that does not depend on what is there then."""
    does = mapped(path, where, given, _STEP)
    refuse_unknown(path, where, does, DOES)
    if not does:
        raise problem(path, where, given, f"one of the keys {', '.join(DOES)}")
    if "workloads" in does:
        workloads_from(path, f"{where}.workloads", does["workloads"])
    if "nodes" in does:
        nodes_from(path, f"{where}.nodes", does["nodes"])
    if "queues" in does:
        queues_from(path, f"{where}.queues", does["queues"])
    for key in ("ends", "delete", "cordon", "uncordon"):
        if key in does:
            _patterns(path, f"{where}.{key}", does[key])
    for i, one in enumerate(listed(path, f"{where}.objects", does.get("objects", []))):
        manifest = mapped(path, f"{where}.objects[{i}]", one, "a manifest")
        for key, kind in (("kind", str), ("metadata", dict)):
            typed(path, f"{where}.objects[{i}].{key}", manifest.get(key), kind, f"a {key}")
    return does


def _patterns(path: Path, where: str, value: Any) -> list[str]:
    items = [value] if isinstance(value, str) else listed(path, where, value)
    return [typed(path, where, one, str, "names, with wildcards") for one in items]


def applied(step: Step, objects: list[Manifest], now: float, path: Path) -> list[Manifest]:
    """Return the objects as they are after a step.

    Raises:
        ScenarioError: it names something that is not there, or running pods without room.
    """
    given, where = step.given, step.where
    for key, change in _CHANGES.items():
        if key in given:
            patterns = _patterns(path, f"{where}.{key}", given[key])
            for pattern in patterns:
                if not any(_means(pattern, one, key) for one in objects):
                    raise problem(path, f"{where}.{key}", pattern, "the name of something there")
            objects = [*_changed(objects, patterns, key, change)]
    if "objects" in given:
        objects = _put(objects, given["objects"])
    if "nodes" in given:
        names = {one["metadata"]["name"] for one in objects if one["kind"] == "Node"}
        objects = [*objects, *nodes_from(path, f"{where}.nodes", given["nodes"], names)]
    if "queues" in given:
        objects = _queues(path, f"{where}.queues", given["queues"], objects)
    if "workloads" in given:
        workloads = workloads_from(path, f"{where}.workloads", given["workloads"])
        objects = [*objects, *Making(path, objects, now).objects(workloads, fresh=True)]
    return objects


def _put(objects: list[Manifest], new: Iterable[Manifest]) -> list[Manifest]:
    """Add objects; one of the same kind and name is replaced."""
    by_name = {(one["kind"], key_of(one)): one for one in new}
    kept = [by_name.pop((one["kind"], key_of(one)), one) for one in objects]
    return [*kept, *by_name.values()]


def _queues(path: Path, where: str, given: Any, objects: list[Manifest]) -> list[Manifest]:
    stated = dict.fromkeys(given) if isinstance(given, list) else dict(given)
    changed = [
        changed_queue(path, f"{where}.{one['metadata']['name']}", one, stated.pop(name))
        if one["kind"] == "Queue" and (name := one["metadata"]["name"]) in stated
        else one
        for one in objects
    ]
    return [*changed, *queues_from(path, where, stated)]


_Change = Callable[[Manifest], Manifest | None]


def _changed(
    objects: list[Manifest], patterns: list[str], key: str, change: _Change
) -> Iterable[Manifest]:
    for one in objects:
        after = change(one) if any(_means(each, one, key) for each in patterns) else one
        if after is not None:
            yield after


def _means(pattern: str, one: Manifest, key: str) -> bool:
    """Return whether a name means an object: nodes for cordons, else pods and their groups."""
    if key in ("cordon", "uncordon"):
        return one["kind"] == "Node" and fnmatchcase(one["metadata"]["name"], pattern)
    if one["kind"] == "Node" and key == "delete":
        return fnmatchcase(one["metadata"]["name"], pattern)
    names = [key_of(one)] if one["kind"] in ("Pod", "PodGroup") else []
    if one["kind"] == "Pod":
        names.append(group_of(one) or "")
    return any(fnmatchcase(name, pattern) for name in names)


def _ended(one: Manifest) -> Manifest:
    if one["kind"] != "Pod" or (one.get("status") or {}).get("phase") != "Running":
        return one
    return {**one, "status": {**one["status"], "phase": "Succeeded"}}


def _cordoned(one: Manifest) -> Manifest:
    return {**one, "spec": {**(one.get("spec") or {}), "unschedulable": True}}


def _uncordoned(one: Manifest) -> Manifest:
    spec = {key: value for key, value in (one.get("spec") or {}).items() if key != "unschedulable"}
    return {**one, "spec": spec}


_CHANGES: Final[Mapping[str, _Change]] = {
    "ends": _ended,
    "delete": lambda _: None,
    "cordon": _cordoned,
    "uncordon": _uncordoned,
}
