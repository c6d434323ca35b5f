"""Objects that are probably a mistake: listed twice, in circles, misspelt or dangling.

None of it stops a run: a policy test may well be about a queue that does not exist.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from pumice.api.annotations import GROUP_NAME
from pumice.api.groups import PodGroup, PodGroupSpec, QueueSpec
from pumice.api.wording import nearest

_READ: Final = {
    "PodGroup": frozenset(PodGroupSpec.__struct_encode_fields__),
    "Queue": frozenset(QueueSpec.__struct_encode_fields__),
}
"""The fields of specifications that deciding reads; their kinds have a few more."""
_VERSION: Final = PodGroup.API_VERSION
_MAPS: Final = frozenset({"capability", "deserved", "minResources", "minTaskMember"})
"""Fields whose keys are names of users."""
_LINKED: Final = {"Queue": "is below", "HyperNode": "contains"}
"""Kinds that form trees, and what a link from one to the next means."""
_SHOWN: Final = 8
"""Names of a circle that are written."""
_MOST: Final = 20
"""Circles that are followed, and names for which near ones are sought: both take long."""
_OWN: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})


def doubts(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """Yield the number of each odd object, and what is odd about it."""
    names = [_name(one) for one in objects]
    known = set(names)
    yield from mistakes(objects)
    hints = 0
    for number, one in enumerate(objects):
        for what, kind, wanted in _references(one):
            if (kind, wanted) not in known:
                same = [key for each, key in names if each == kind] if hints < _MOST else ()
                hints, near = hints + 1, nearest(wanted, same)
                hint = f" (did you mean '{near}'?)" if near else ""
                named = f"{names[number][0]} {names[number][1]}"
                yield number, f"{named} names {what} '{wanted}', which does not exist{hint}"


def mistakes(
    objects: Sequence[Mapping[str, Any]], *, are_unique: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield what cannot be meant: an object listed twice or below itself, an unknown field.

    No two of those that ``are_unique`` have one name.
    """
    if not are_unique and _may_repeat(objects):
        yield from _repeated([_name(one) for one in objects])
    yield from _circles(objects)
    for number, one in enumerate(objects):
        if one["kind"] in _READ and one.get("apiVersion") == _VERSION and not _is_plain(one):
            for sentence in _misspelt(one):
                yield number, f"{' '.join(_name(one))}: {sentence}"


def _may_repeat(objects: Sequence[Mapping[str, Any]]) -> bool:
    """Return False only if no two objects have one name: a quick look."""
    parts = [one["metadata"] for one in objects]
    try:
        places = {
            (one["kind"], meta.get("namespace") or "", meta["name"])
            for one, meta in zip(objects, parts, strict=True)
        }
    except TypeError:  # a name that is no text
        return True
    return len(places) < len(objects)


def _circles(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """Yield queues below themselves, and hypernodes that contain themselves."""
    numbers = {_name(one): number for number, one in enumerate(objects) if one["kind"] in _LINKED}
    links = {name: _links(objects[number]) for name, number in numbers.items()}
    links = _on_circles(links)
    for name in islice(links, _MOST):
        way = _way_back(name[1], name[0], links)
        if way:
            words = " -> ".join(way if len(way) <= _SHOWN else [*way[:_SHOWN], "…", name[1]])
            yield numbers[name], f"{' '.join(name)} {_LINKED[name[0]]} itself: {words}"


def _links(manifest: Mapping[str, Any]) -> list[str]:
    """Name the objects of its own kind that an object is below, or contains."""
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return []
    if manifest["kind"] == "Queue":
        return [str(spec["parent"])] if spec.get("parent") else []
    members = [one for one in spec.get("members") or () if isinstance(one, Mapping)]
    chosen = [one.get("selector") or {} for one in members if one.get("type") == "HyperNode"]
    exact = [one.get("exactMatch") or {} for one in chosen if isinstance(one, Mapping)]
    return [str(one["name"]) for one in exact if isinstance(one, Mapping) and one.get("name")]


def _on_circles(links: Mapping[tuple[str, str], list[str]]) -> dict[tuple[str, str], list[str]]:
    """Leave out objects from which no way leads on for ever, and those that none leads to."""
    left = {name: [one for one in to if (name[0], one) in links] for name, to in links.items()}
    for _ in range(2):
        backwards: dict[tuple[str, str], list[str]] = {name: [] for name in left}
        for (kind, name), to in left.items():
            for one in to:
                backwards[kind, one].append(name)
        numbers = {name: len(to) for name, to in left.items()}
        ends = [name for name, number in numbers.items() if not number]
        while ends:
            kind, name = ends.pop()
            for one in backwards[kind, name]:
                numbers[kind, one] -= 1
                if not numbers[kind, one]:
                    ends.append((kind, one))
        left = {
            name: [one for one in to if numbers[name[0], one]]
            for name, to in backwards.items()
            if numbers[name]
        }
    return left


def _way_back(start: str, kind: str, links: Mapping[tuple[str, str], list[str]]) -> list[str]:
    """Return the names on a way from an object back to it; none if there is no such way."""
    before = dict.fromkeys(links[kind, start], start)
    ahead = [*before]
    while ahead:
        last = ahead.pop()
        if last == start:
            way = [start]
            while (last := before[last]) != start:
                way.append(last)
            return [start, *reversed(way[1:]), start]
        for after in links.get((kind, last), ()):
            if after not in before:
                before[after] = last
                ahead.append(after)
    return []


def _repeated(names: Sequence[tuple[str, str]]) -> Iterator[tuple[int, str]]:
    times = Counter(names)
    seen: Counter[tuple[str, str]] = Counter()
    for number, name in enumerate(names):
        seen[name] += 1
        if seen[name] == 2:
            yield number, f"{' '.join(name)} occurs {times[name]} times; the last one counts"


def _is_plain(manifest: Mapping[str, Any]) -> bool:
    """Return True only if a gang or a queue has no fields but those known here.

    That is so for most, and a look at the declaration of their kind takes longer.
    """
    spec = manifest.get("spec")
    if not isinstance(spec, dict):
        return manifest.keys() <= _OWN
    if not (manifest.keys() <= _OWN and spec.keys() <= _READ[manifest["kind"]]):
        return False
    return all(name in _MAPS or not isinstance(value, (dict, list)) for name, value in spec.items())


def _misspelt(manifest: Mapping[str, Any]) -> list[str]:
    from pumice.api.schema.build import misspelt_fields  # noqa: PLC0415  (rarely needed)

    return [field.sentence for field in misspelt_fields(manifest)]


def _name(manifest: Mapping[str, Any]) -> tuple[str, str]:
    meta = manifest["metadata"]
    space = meta.get("namespace")
    return str(manifest["kind"]), f"{space}/{meta['name']}" if space else str(meta["name"])


def _references(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield the references of an object: in words, the kind, and the key."""
    kind, meta = manifest["kind"], manifest["metadata"]
    spec = manifest.get("spec") or {}
    if not isinstance(spec, Mapping):
        return
    if kind == "PodGroup" and spec.get("queue"):
        yield "queue", "Queue", str(spec["queue"])
    if kind == "Queue" and spec.get("parent") not in (None, "", "root"):
        yield "queue", "Queue", str(spec["parent"])
    if kind == "Pod":
        notes = meta.get("annotations")
        group = notes.get(GROUP_NAME) if isinstance(notes, Mapping) else None
        group = group or (spec.get("schedulingGroup") or {}).get("podGroupName")
        if group:
            yield "pod group", "PodGroup", f"{meta.get('namespace')}/{group}"
        if spec.get("nodeName"):
            yield "node", "Node", str(spec["nodeName"])
    if kind in ("Pod", "PodGroup") and spec.get("priorityClassName"):
        name = str(spec["priorityClassName"])
        if not name.startswith("system-"):
            yield "priority class", "PriorityClass", name
