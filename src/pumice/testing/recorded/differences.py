"""Compares observed with recorded objects, and describes the differences."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

Path = tuple[str, ...]
_SHOWN: Final = 300
_ABSENT: Final = object()


def skipped_paths(step: Mapping[str, Any]) -> set[Path]:
    """List the paths of a step that are not compared."""
    return {
        tuple(str(part) for part in entry["path"])
        for name in ("unstable", "soft")
        for entry in step.get(name) or []
    }


def differences(expected: Any, seen: Any, skipped: set[Path], path: Path = ()) -> list[str]:
    """List where two trees differ, except in the skipped paths."""
    if path in skipped or expected == seen:
        return []
    pairs: list[tuple[str, Any, Any]] | None = None
    if isinstance(expected, Mapping) and isinstance(seen, Mapping):
        keys = dict.fromkeys((*expected, *seen))
        pairs = [(str(key), expected.get(key, _ABSENT), seen.get(key, _ABSENT)) for key in keys]
    elif isinstance(expected, list) and isinstance(seen, list) and len(expected) == len(seen):
        both = zip(expected, seen, strict=True)
        pairs = [(str(index), one, other) for index, (one, other) in enumerate(both)]
    if pairs is None:
        return _differences(expected, seen, skipped, path)
    return [
        line for key, one, other in pairs for line in differences(one, other, skipped, (*path, key))
    ]


def _differences(expected: Any, seen: Any, skipped: set[Path], path: Path) -> list[str]:
    """Describe the difference of two values."""
    place = ".".join(path)
    if _leads_only_to_skipped(expected, seen, skipped, path) or _both_empty(expected, seen):
        return []
    if expected is _ABSENT:
        return [f"{place}: not expected, found {_shown(seen)}"]
    if seen is _ABSENT:
        return [f"{place}: missing, expected {_shown(expected)}"]
    return [f"{place}: expected {_shown(expected)}, got {_shown(seen)}"]


def event_differences(
    expected: Iterable[Mapping[str, Any]], seen: set[tuple[str, ...]], *, others_allowed: bool
) -> list[str]:
    """List events that are missing, and those that were not expected."""
    names = ("kind", "name", "type", "reason", "message", "source")
    wanted = {tuple(str(event.get(name, "")) for name in names) for event in expected}
    found = [f"events: missing {' | '.join(event)}" for event in sorted(wanted - seen)]
    if not others_allowed:
        found += [f"events: not expected {' | '.join(event)}" for event in sorted(seen - wanted)]
    return found


def _both_empty(expected: Any, seen: Any) -> bool:
    """Return whether a field is empty on both sides: recordings leave empty ones out."""
    return all(one is _ABSENT or one in (None, "", [], {}) for one in (expected, seen))


def _leads_only_to_skipped(expected: Any, seen: Any, skipped: set[Path], path: Path) -> bool:
    """Return whether an absent mapping would hold nothing but skipped paths."""
    if expected is not _ABSENT and seen is not _ABSENT:
        return False
    there = seen if expected is _ABSENT else expected
    if not isinstance(there, Mapping) or not there:
        return False
    return all((*path, str(key)) in skipped for key in there)


def _shown(value: Any) -> str:
    """Print a value, cut to a readable length."""
    text = json.dumps(value, sort_keys=True, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
