"""Patches of objects: JSON patch, JSON merge patch, strategic merge patch and apply.

Pure functions on plain data the caller owns; used by the store.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from pumice.cluster.base import PatchType
from pumice.errors import RejectedError

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
    """Return the document after a patch; both may be changed, but a merge changes no document.

    Raises:
        RejectedError: a patch that cannot be applied.
    """
    if patch_type != "json" and not isinstance(patch, dict):
        raise RejectedError("patch", problem=f"wanted a mapping, found {patch!r:.60}")
    try:
        return _PATCHES[patch_type](target, patch)
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        problem = f"wanted a patch that fits the object, found one that does not ({error})"
        raise RejectedError("patch", problem=problem) from None


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


def strategic_patch(target: Any, patch: Any) -> Any:
    """Merge as Kubernetes does: as a merge patch, but known lists by the names of their items."""
    if not isinstance(patch, dict):
        return patch
    mode = patch.pop("$patch", "")
    if mode == "replace":
        return patch
    if mode == "delete":
        return None
    out = target if isinstance(target, dict) else {}
    kept = patch.pop("$retainKeys", None)
    orders = {k[len(_ORDER) :]: patch.pop(k) for k in list(patch) if k.startswith(_ORDER)}
    for key in [k for k in patch if k.startswith(_REMOVE)]:
        field, gone = key[len(_REMOVE) :], patch.pop(key)
        out[field] = [item for item in out.get(field) or [] if item not in gone]
    for key, value in patch.items():
        _merge_field(out, key, value)
    for key, order in orders.items():
        _sort_list(out, key, order)
    if kept is not None:
        return {key: value for key, value in out.items() if key in kept}
    return out


def _merge_field(out: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        out.pop(key, None)
    elif isinstance(value, list):
        out[key] = _merge_list(key, out.get(key) or [], value)
    else:
        merged = strategic_patch(out.get(key), value)
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
        return old + [item for item in new if item not in old]
    key = _merge_key(field, old, new)
    if any(isinstance(item, dict) and item == {"$patch": "replace"} for item in new):
        return [item for item in new if item != {"$patch": "replace"}]
    if not key:
        return new
    out = {item[key]: item for item in old}
    for item in new:
        merged = strategic_patch(out.get(item[key]), item)
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

    def place(item: Any) -> int:
        wanted = {key: item[key]} if key else item
        return order.index(wanted) if wanted in order else len(order)

    out[field] = sorted(items, key=place)


def json_patch(target: Any, patch: Any) -> Any:
    """Apply the steps of RFC 6902 in order.

    Raises:
        RejectedError: a step that cannot be done, or a test that fails.
    """
    if not isinstance(patch, list):
        raise RejectedError("patch", problem=f"wanted a list of steps, found {patch!r:.60}")
    box = {"": target}
    for step in patch:
        try:
            _STEPS[step["op"]](box, step)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            kind = type(error).__name__
            problem = f"wanted a step that can be done, found {step!r:.120} ({kind}: {error})"
            raise RejectedError("patch", problem=problem) from None
    return box[""]


def _parts(pointer: str) -> list[str]:
    """Read a JSON pointer, with the empty key of the box before it."""
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"no JSON pointer: {pointer}")
    parts = pointer.split("/")[1:]
    return ["", *(part.replace("~1", "/").replace("~0", "~") for part in parts)]


def _index(values: list[Any], part: str) -> int:
    index = len(values) if part == "-" else int(part)
    if index < 0 or index > len(values):
        raise IndexError(part)
    return index


def _reach(box: Any, parts: list[str]) -> Any:
    for part in parts:
        box = box[_index(box, part)] if isinstance(box, list) else box[part]
    return box


def _add(box: Any, step: Mapping[str, Any]) -> None:
    *way, last = _parts(step["path"])
    place = _reach(box, way)
    if isinstance(place, list):
        place.insert(_index(place, last), step["value"])
    else:
        place[last] = step["value"]


def _take(box: Any, pointer: str) -> Any:
    *way, last = _parts(pointer)
    place = _reach(box, way)
    return place.pop(_index(place, last)) if isinstance(place, list) else place.pop(last)


def _remove(box: Any, step: Mapping[str, Any]) -> None:
    _take(box, step["path"])


def _replace(box: Any, step: Mapping[str, Any]) -> None:
    *way, last = _parts(step["path"])
    place = _reach(box, way)
    if isinstance(place, list):
        place[_index(place, last)] = step["value"]
    else:
        place[last]  # what is replaced must be there
        place[last] = step["value"]


def _move(box: Any, step: Mapping[str, Any]) -> None:
    _add(box, {"path": step["path"], "value": _take(box, step["from"])})


def _copy(box: Any, step: Mapping[str, Any]) -> None:
    _add(box, {"path": step["path"], "value": _copied(_reach(box, _parts(step["from"])))})


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


def _test(box: Any, step: Mapping[str, Any]) -> None:
    found = _reach(box, _parts(step["path"]))
    if found != step["value"]:
        raise ValueError(f"found {found!r:.60}")


_STEPS: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], None]]] = MappingProxyType(
    {
        "add": _add,
        "remove": _remove,
        "replace": _replace,
        "move": _move,
        "copy": _copy,
        "test": _test,
    }
)


_PATCHES: Final[Mapping[PatchType, Callable[[Any, Any], Any]]] = MappingProxyType(
    {
        "json": json_patch,
        "merge": merge_patch,
        "strategic": strategic_patch,
        "apply": strategic_patch,
    }
)
