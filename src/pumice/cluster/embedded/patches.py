"""Patches of objects: JSON patch, JSON merge patch, strategic merge patch and apply.

Pure functions on plain data; used by the store, and for changes that are only tried.  Patches
come from anyone: the time is linear in the sizes of document and patch, the result is bounded.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from pumice.api.cloning import clone
from pumice.api.json_text import DEPTH
from pumice.cluster.base import PatchType
from pumice.errors import RejectedError, TooLargeError

LONGEST: Final = 3 << 20
"""Bytes of a document after a patch, as JSON; an API server reads no longer request."""
_MOST_STEPS: Final = 10_000
"""Steps of a JSON patch, as in an API server."""
_MOST_MOVED: Final = 100_000_000
"""Items of lists that may change their places in one patch: a tenth of a second."""
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)

_MERGE_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "addresses": "type",
        "conditions": "type",
        "containers": "name",
        "ephemeralContainers": "name",
        "env": "name",
        "hostAliases": "ip",
        "imagePullSecrets": "name",
        "initContainers": "name",
        "ownerReferences": "uid",
        "ports": "containerPort",
        "reservedFor": "uid",
        "resourceClaimStatuses": "name",
        "resourceClaims": "name",
        "schedulingGates": "name",
        "secrets": "name",
        "taints": "key",
        "topologySpreadConstraints": "topologyKey",
        "volumeDevices": "devicePath",
        "volumeMounts": "mountPath",
        "volumes": "name",
    }
)
"""List field to the field that identifies its items; other lists are replaced as a whole."""
_SETS: Final = frozenset({"finalizers"})
"""Lists of plain values that are merged."""
_ORDER: Final = "$setElementOrder/"
_REMOVE: Final = "$deleteFromPrimitiveList/"


def apply_patch(target: Any, patch: Any, patch_type: PatchType) -> Any:
    """Return the document after a patch, which stays as it is; a merge changes no document either.

    Raises:
        RejectedError: a patch that cannot be applied.
        TooLargeError: one that asks for too much, or whose result is too large.
    """
    if patch_type != "json" and not isinstance(patch, dict):
        raise RejectedError("patch", problem=f"expected a mapping, got {patch!r:.120}")
    try:
        made = _PATCHES[patch_type](target, patch)
        size = _size(made)
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        problem = f"expected a patch that fits the object, got one that does not ({error!s:.200})"
        raise RejectedError("patch", problem=problem) from None
    if size > LONGEST:
        problem = f"expected an object of at most {LONGEST} bytes, got {size} after the patch"
        raise TooLargeError("patch", problem=problem)
    return made


def merge_patch(target: Any, patch: Any) -> Any:
    """Merge as in RFC 7386: mappings by key, None removes, all else is replaced.

    The target stays as it is; the result shares its unchanged parts.
    """
    if not isinstance(patch, dict):
        return patch
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merge_patch(out.get(key), value) if isinstance(value, dict) else value
    return out


def _strategic_patch(target: Any, patch: Any) -> Any:
    """Merge as Kubernetes does: as a merge patch, but known lists by the names of their items."""
    if not isinstance(patch, dict):
        return patch
    patch = dict(patch)
    mode = patch.pop("$patch", "")
    if mode == "replace":
        return patch
    if mode == "delete":
        return None
    out = target if isinstance(target, dict) else {}
    kept = patch.pop("$retainKeys", None)
    orders = {k[len(_ORDER) :]: patch.pop(k) for k in list(patch) if k.startswith(_ORDER)}
    for key in [k for k in patch if k.startswith(_REMOVE)]:
        field, gone = key[len(_REMOVE) :], _marks(patch.pop(key))
        out[field] = [item for item in out.get(field) or [] if _mark(item) not in gone]
    for key, value in patch.items():
        _merge_field(out, key, value)
    for key, order in orders.items():
        _sort_list(out, key, order)
    if kept is not None:
        named = frozenset(kept)
        return {key: value for key, value in out.items() if key in named}
    return out


def _merge_field(out: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        out.pop(key, None)
    elif isinstance(value, list):
        out[key] = _merge_list(key, out.get(key) or [], value)
    else:
        merged = _strategic_patch(out.get(key), value)
        if merged is None:
            out.pop(key, None)
        else:
            out[key] = merged


def _merge_key(field: str, *lists: list[Any]) -> str:
    """Return the field that identifies the items of a list, empty if they have none."""
    name = _MERGE_KEYS.get(field, "")
    items = [item for values in lists for item in values]
    if not all(isinstance(item, dict) for item in items):
        return ""
    if field == "ports" and any("containerPort" not in item for item in items):
        name = "port"  # those of a service
    marks = [item for item in items if item.keys() != {"$patch"}]
    return name if name and all(name in item for item in marks) else ""


def _merge_list(field: str, old: list[Any], new: list[Any]) -> list[Any]:
    if field in _SETS:
        known = _marks(old)
        return old + [item for item in new if _mark(item) not in known]
    key = _merge_key(field, old, new)
    if any(isinstance(item, dict) and item == {"$patch": "replace"} for item in new):
        return [item for item in new if item != {"$patch": "replace"}]
    if not key:
        return new
    out = {item[key]: item for item in old}
    for item in new:
        merged = _strategic_patch(out.get(item[key]), item)
        if merged is None:
            out.pop(item[key], None)
        else:
            out[item[key]] = merged
    return list(out.values())


def _sort_list(out: dict[str, Any], field: str, order: list[Any]) -> None:
    """Sort a merged list by the order in the patch; other items come last."""
    items = out.get(field)
    if not items:
        return
    key = _merge_key(field, items)
    places = {_mark(item): place for place, item in reversed([*enumerate(order)])}

    def place(item: Any) -> int:
        return places.get(_mark({key: item[key]} if key else item), len(order))

    out[field] = sorted(items, key=place)


def _mark(item: Any) -> bytes:
    """Return what equal items have in common, for quick look-ups."""
    return msgspec.json.encode(item, order="sorted")


def _marks(items: Iterable[Any]) -> set[bytes]:
    return {_mark(item) for item in items}


class _JsonPatch:
    """A document while the steps of RFC 6902 are done."""

    def __init__(self, target: Any) -> None:
        self.box = {"": target}
        self._copied = 0
        self._moved = 0

    def do(self, step: Any) -> None:
        """Do one step."""
        if not isinstance(step, dict):
            raise TypeError("a step is a mapping")
        name = _text(step, "op")
        if name not in _STEPS:
            raise ValueError(f"op is one of {', '.join(_STEPS)}")
        _STEPS[name](self, step, _parts(_text(step, "path")))

    def add(self, step: Mapping[str, Any], path: list[str]) -> None:
        self._add(path, clone(_value(step)))

    def remove(self, step: Mapping[str, Any], path: list[str]) -> None:
        del step
        self._take(path)

    def replace(self, step: Mapping[str, Any], path: list[str]) -> None:
        value = clone(_value(step))
        self._reach(path)  # what is replaced must exist
        place = self._reach(path[:-1])
        place[_index(place, path[-1]) if isinstance(place, list) else path[-1]] = value

    def move(self, step: Mapping[str, Any], path: list[str]) -> None:
        self._add(path, self._take(_parts(_text(step, "from"))))

    def copy(self, step: Mapping[str, Any], path: list[str]) -> None:
        found = self._reach(_parts(_text(step, "from")))
        _check_depth(found)
        self._copied += _size(found)
        if self._copied > LONGEST:
            raise TooLargeError("patch", problem=f"expected at most {LONGEST} bytes to copy")
        self._add(path, clone(found))

    def test(self, step: Mapping[str, Any], path: list[str]) -> None:
        found = self._reach(path)
        if found != _value(step):
            raise ValueError("the value there is another")

    def _reach(self, path: list[str]) -> Any:
        place: Any = self.box
        for part in path:
            if isinstance(place, list):
                place = place[_index(place, part)]
            elif isinstance(place, dict) and part in place:
                place = place[part]
            else:
                raise LookupError(f"there is no '{part:.60}'")
        return place

    def _add(self, path: list[str], value: Any) -> None:
        place, last = self._reach(path[:-1]), path[-1]
        if isinstance(place, list):
            place.insert(self._shifted(place, last), value)
        elif isinstance(place, dict):
            place[last] = value
        else:
            raise TypeError(f"there is no place for '{last:.60}'")

    def _take(self, path: list[str]) -> Any:
        if len(path) == 1:
            raise LookupError("the whole object cannot be removed")
        found = self._reach(path)
        place = self._reach(path[:-1])
        del place[self._shifted(place, path[-1]) if isinstance(place, list) else path[-1]]
        return found

    def _shifted(self, values: list[Any], part: str) -> int:
        """Return a place in a list behind which all items are going to move."""
        index = _index(values, part)
        self._moved += len(values) - index
        if self._moved > _MOST_MOVED:
            raise TooLargeError(
                "patch", problem="expected fewer changes at the front of long lists"
            )
        return index


_STEPS: Final[Mapping[str, Callable[[_JsonPatch, Mapping[str, Any], list[str]], None]]] = (
    MappingProxyType(
        {
            "add": _JsonPatch.add,
            "remove": _JsonPatch.remove,
            "replace": _JsonPatch.replace,
            "move": _JsonPatch.move,
            "copy": _JsonPatch.copy,
            "test": _JsonPatch.test,
        }
    )
)


def _json_patch(target: Any, patch: Any) -> Any:
    """Do the steps of RFC 6902 in order."""
    if not isinstance(patch, list):
        raise RejectedError("patch", problem=f"expected a list of steps, got {patch!r:.120}")
    if len(patch) > _MOST_STEPS:
        problem = f"expected at most {_MOST_STEPS} steps, got {len(patch)}"
        raise TooLargeError("patch", problem=problem)
    document = _JsonPatch(target)
    for step in patch:
        try:
            document.do(step)
        except (LookupError, TypeError, ValueError) as error:
            problem = f"expected a step that can be done, got {step!r:.120} ({error})"
            raise RejectedError("patch", problem=problem) from None
    _check_depth(document.box)
    return document.box[""]


def _text(step: Mapping[str, Any], field: str) -> str:
    found = step.get(field)
    if not isinstance(found, str):
        raise TypeError(f"{field} is a text")
    return found


def _value(step: Mapping[str, Any]) -> Any:
    if "value" not in step:
        raise ValueError("value is missing")
    return step["value"]


def _parts(pointer: str) -> list[str]:
    """Read a JSON pointer, with the empty key of the box before it."""
    if pointer and not pointer.startswith("/"):
        raise ValueError("a path begins with /")
    parts = pointer.split("/")[1:]
    return ["", *(part.replace("~1", "/").replace("~0", "~") for part in parts)]


def _index(values: list[Any], part: str) -> int:
    """Read a place in a list; the one after the last counts, as something may be added there."""
    if part != "-" and not _INDEX.fullmatch(part):
        raise ValueError(f"'{part:.60}' is no index of a list")
    index = len(values) if part == "-" else int(part)
    if index > len(values):
        raise LookupError(f"the list has {len(values)} items")
    return index


def _check_depth(value: Any, levels: int = DEPTH + 1) -> None:
    """Refuse nesting beyond what a document may have; the box around one is a level too."""
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, dict | list) else ():
        if not levels:
            raise TooLargeError("patch", problem=f"expected at most {DEPTH} nested levels")
        _check_depth(part, levels - 1)


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))


_PATCHES: Final[Mapping[PatchType, Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        "json": _json_patch,
        "merge": merge_patch,
        "strategic": _strategic_patch,
        "apply": _strategic_patch,
    }
)
