"""Objects of a scenario that are probably a mistake: dangling references, objects listed twice.

None of it stops a run: a policy test may well be about a queue that does not exist.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pumice.api.annotations import GROUP_NAME
from pumice.api.wording import nearest


def doubts(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    """Yield the number of each odd object, and what is odd about it."""
    names = [_name(one) for one in objects]
    times = Counter(names)
    seen: Counter[tuple[str, str]] = Counter()
    for number, name in enumerate(names):
        seen[name] += 1
        if seen[name] == 2:
            yield number, f"{' '.join(name)} occurs {times[name]} times; the last one counts"
    for number, one in enumerate(objects):
        for what, kind, wanted in _references(one):
            if (kind, wanted) not in seen:
                near = nearest(wanted, [key for each, key in names if each == kind])
                hint = f" (did you mean '{near}'?)" if near else ""
                named = f"{names[number][0]} {names[number][1]}"
                yield number, f"{named} names {what} '{wanted}', which does not exist{hint}"


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
        group = (meta.get("annotations") or {}).get(GROUP_NAME)
        if group:
            yield "pod group", "PodGroup", f"{meta.get('namespace')}/{group}"
        if spec.get("nodeName"):
            yield "node", "Node", str(spec["nodeName"])
    if kind in ("Pod", "PodGroup") and spec.get("priorityClassName"):
        name = str(spec["priorityClassName"])
        if not name.startswith("system-"):
            yield "priority class", "PriorityClass", name
