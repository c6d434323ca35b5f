"""Label and field selectors as written in a query; pure."""

import re
from collections.abc import Callable
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.apiserver.failures import RequestError

Selector = Callable[[Manifest], bool]

_TERM: Final = re.compile(r"(?:\([^)]*\)?|[^,(])+")
_SET: Final = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^()]*)\)$")
_PAIR: Final = re.compile(r"^([^\s!=]+)\s*(==|=|!=)\s*([^\s=!]*)$")
_KEY: Final = re.compile(r"^(!?)\s*([^\s!=(),]+)$")
_UNSAID: Final = {"spec.unschedulable": "false"}
"""Default of a field that an object does not state."""
_ABOUT: Final = "involvedObject.uid"
"""Of an event; one that names its object without a uid is about any of that name."""
_CALLED: Final = {"source": "source.component"}


def _terms(text: str) -> list[str]:
    return [term.strip() for term in _TERM.findall(text) if term.strip()]


def label_selector(text: str) -> Selector:
    """Read a label selector.

    Raises:
        RequestError: it cannot be read.
    """
    rules = [_label_rule(term) for term in _terms(text)]

    def fits(manifest: Manifest) -> bool:
        labels = manifest["metadata"].get("labels") or {}
        return all(rule(labels) for rule in rules)

    return fits


def _label_rule(term: str) -> Callable[[dict[str, str]], bool]:
    if found := _SET.match(term):
        key, word, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        if word == "in":
            return lambda labels: key in labels and labels[key] in values
        return lambda labels: key not in labels or labels[key] not in values
    if found := _PAIR.match(term):
        key, sign, value = found.groups()
        if sign == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _KEY.match(term):
        absent, key = bool(found[1]), found[2]
        return lambda labels: (key in labels) != absent
    raise RequestError(400, f"unable to parse requirement: expected a selector, got '{term}'")


def field_selector(text: str) -> Selector:
    """Read a field selector; any field may be named.

    Raises:
        RequestError: it cannot be read.
    """
    rules = []
    for term in _terms(text):
        found = re.match(r"^([\w./-]+)\s*(==|=|!=)\s*(.*)$", term)
        if found is None:
            raise RequestError(400, f"invalid selector: expected field=value, got '{term}'")
        rules.append((found[1], found[2] != "!=", found[3]))
    return lambda manifest: all(
        (_field(manifest, path) in ({value, ""} if path == _ABOUT else {value})) is equal
        for path, equal, value in rules
    )


def _field(manifest: Manifest, path: str) -> str:
    value: Any = manifest
    for part in _CALLED.get(path, path).split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return _UNSAID.get(path, "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def selector(labels: str, fields: str) -> Selector | None:
    """Join both selectors of a query; None if all objects match."""
    wanted = []
    if labels.strip():
        wanted.append(label_selector(labels))
    if fields.strip():
        wanted.append(field_selector(fields))
    if not wanted:
        return None
    return lambda manifest: all(fits(manifest) for fits in wanted)
