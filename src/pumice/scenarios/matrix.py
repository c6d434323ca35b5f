"""One scenario file for several cases: a value of each parameter in every combination."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

from pumice.api.scenario_values import listed, mapped, problem

_SPAN: Final = re.compile(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*")
_INSTEAD: Final = {"conf": "confFrom", "confFrom": "conf"}
"""Keys that exclude each other."""
_MOST: Final = 10_000
_MATRIX: Final = "matrix"


def cases_of(
    path: Path, document: Mapping[str, Any], known: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the cases of a document, each with its words; one without words if it has no matrix.

    A parameter with the name of a key of a scenario is that key; others stand where ``${name}`` is.

    Raises:
        ScenarioError: the matrix breaks the format.
    """
    if _MATRIX not in document:
        yield "", dict(document)
        return
    wanted = "parameters, each with a list of values"
    matrix = mapped(path, _MATRIX, document[_MATRIX], wanted)
    values = {name: values_of(path, f"{_MATRIX}.{name}", one) for name, one in matrix.items()}
    number = 1
    for each in values.values():
        number *= len(each)
    if not values or number > _MOST:
        raise problem(path, _MATRIX, matrix, f"{wanted}, at most {_MOST} cases")
    rest = {key: value for key, value in document.items() if key != _MATRIX}
    for name in values:
        if name not in known and not _uses(rest, name):
            raise problem(path, f"{_MATRIX}.{name}", name, f"a use of ${{{name}}} in the scenario")
    for chosen in product(*values.values()):
        picked = dict(zip(values, chosen, strict=True))
        yield _words(picked), _filled(rest, picked, known)


def values_of(path: Path, where: str, given: Any) -> list[Any]:
    """Return the values to choose from: a list, or "1..5"."""
    span = _SPAN.fullmatch(given) if isinstance(given, str) else None
    if span:
        return list(range(int(span[1]), int(span[2]) + 1))
    found = listed(path, where, given)
    if not found:
        raise problem(path, where, given, "at least one value")
    return found


def _words(picked: Mapping[str, Any]) -> str:
    """Describe a case; of a long text the first line is enough."""
    return ", ".join(f"{name}={_brief(value)}" for name, value in picked.items())


def _brief(value: Any) -> str:
    text = str(value).strip().partition("\n")[0]
    return text if len(text) <= 40 else f"{text[:39]}…"


def _filled(
    document: dict[str, Any], picked: Mapping[str, Any], known: tuple[str, ...]
) -> dict[str, Any]:
    names = {name: value for name, value in picked.items() if name not in known}
    filled: dict[str, Any] = _replaced(document, names)
    for name in picked.keys() - names.keys():
        filled.pop(_INSTEAD.get(name, ""), None)
        filled[name] = picked[name]
    return filled


def _replaced(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        for name, chosen in names.items():
            mark = f"${{{name}}}"
            if value == mark:
                return chosen
            value = value.replace(mark, str(chosen))
        return value
    if isinstance(value, list):
        return [_replaced(one, names) for one in value]
    if isinstance(value, dict):
        return {_replaced(key, names): _replaced(one, names) for key, one in value.items()}
    return value


def _uses(value: Any, name: str) -> bool:
    if isinstance(value, str):
        return f"${{{name}}}" in value
    if isinstance(value, list):
        return any(_uses(one, name) for one in value)
    if isinstance(value, dict):
        return any(_uses(key, name) or _uses(one, name) for key, one in value.items())
    return False
