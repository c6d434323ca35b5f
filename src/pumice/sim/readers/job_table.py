"""Pumice's own table of jobs: one row for each, in CSV or Parquet, or given by a program."""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.quantity import WANTED_QUANTITY, parse_quantity
from pumice.api.wording import nearest
from pumice.errors import ABSENT, InputError, QuantityError
from pumice.sim.options import MAX_JOB_PODS, check_at_most, is_number, within_limits
from pumice.sim.readers.node_sizes import node_for
from pumice.sim.readers.table_files import rows_of, unguarded
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, expected, in_order

NEEDED: Final = frozenset({"arrival", "run"})
REQUEST: Final = "request."
"""Begins a column of a file for a resource that has none of its own."""
AMOUNTS: Final = {"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"}
_NUMBERS: Final = {"arrival": 0, "run": 0, "pods": 1, "needed": 1, "walltime": 0}
"""Columns of numbers, and the least that each may be."""
_WHOLE: Final = frozenset({"pods", "needed"})
_TEXTS: Final = ("name", "queue", "priority_class", "user")
"""Columns of texts; a number, as of a user, is one too."""
_COLUMNS: Final = frozenset({*_NUMBERS, *_TEXTS, "request"})
Row = Mapping[str, Any]


def read(path: Path) -> Workload:
    """Read a table of jobs."""
    jobs = in_order(within_limits(jobs_from(_rows(path)), str(path)))
    return Workload(name=path.name, format="jobs", jobs=jobs, node_hint=node_for(jobs))


def _rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a file with their places; its columns are those of the first line."""
    for number, (line, row) in enumerate(rows_of(path, even=True)):
        if not number:
            _check_columns((name for name in row if not name.startswith(REQUEST)), f"{path}:1")
        yield f"{path}:{line}", _values(row)


def jobs_from(rows: Iterable[tuple[str, Row]]) -> Iterator[JobSpec]:
    """Make jobs of rows, each with the place that errors name.

    Raises:
        InputError: A row lacks something, or has what is not known.
    """
    specs = PodSpecs()
    return (_job(number, place, row, specs) for number, (place, row) in enumerate(rows))


def _values(row: Mapping[str, str]) -> dict[str, Any]:
    """Read the cells of a file: numbers as such, resources gathered; empty ones say nothing."""
    found: dict[str, Any] = {}
    request: dict[str, str] = {}
    for name, text in row.items():
        if name.startswith(REQUEST) and text:
            request[name.removeprefix(REQUEST)] = text
        elif text and not name.startswith(REQUEST):
            found[name] = _number(text) if name in _NUMBERS else unguarded(text)
    return found | ({"request": request} if request else {})


def _number(text: str) -> float | str:
    """Read a number, a whole one as such: errors show it as it is written."""
    try:
        number = float(text)
    except ValueError:
        return text
    is_whole = text.strip().lstrip("+-").isdigit() and number.is_integer()
    return int(number) if is_whole else number


def _job(number: int, place: str, row: Row, specs: PodSpecs) -> JobSpec:
    try:
        _check(row)
    except InputError as error:
        error.file = place
        raise
    pods = int(row.get("pods", 1))
    walltime = row.get("walltime")
    task = TaskSpec(specs.spec(_request(row)), pods, float(row["run"]))
    return JobSpec(
        name=str(row.get("name") or f"job-{number}"),
        arrival=float(row["arrival"]),
        tasks=(task,),
        min_member=int(row.get("needed", pods)),
        queue=str(row.get("queue") or DEFAULT_QUEUE),
        priority_class=str(row.get("priority_class") or ""),
        annotations=expected(None if walltime is None else float(walltime)),
        user=str(row.get("user") or ""),
    )


def _check_columns(names: Iterable[str], place: str = "") -> None:
    known = {*_COLUMNS, *AMOUNTS}
    unknown = sorted(set(names) - known)
    if unknown:
        near = nearest(unknown[0], known)
        hint = f"did you mean '{near}'?" if near else f"known: {', '.join(sorted(known))}"
        raise InputError(wanted="a known column", found=unknown[0], file=place, hint=hint)


def _check(row: Row) -> None:
    """Refuse a row that cannot be used; errors name its column, the caller knows its place."""
    _check_columns(row)
    _check_request(row)
    for column in _TEXTS:
        value = row.get(column)
        if not (value is None or isinstance(value, str) or is_number(value)):
            raise InputError(wanted="a text", found=value, field=column)
    for column, least in _NUMBERS.items():
        value = row.get(column)
        if value is None and column not in NEEDED:
            continue
        if not (is_number(value) and least <= float(value) < math.inf):
            found = ABSENT if value is None else value
            raise InputError(wanted=_wanted(column), found=found, field=column)
        if column in _WHOLE and not float(value).is_integer():
            raise InputError(wanted=_wanted(column), found=value, field=column)
    pods, needed = row.get("pods", 1), row.get("needed")
    if needed is not None and needed > pods:
        raise InputError(wanted=f"at most its {pods:g} pods", found=needed, field="needed")
    check_at_most(int(pods), MAX_JOB_PODS, "pods of a job", field="pods")


def _wanted(column: str) -> str:
    return f"a {'whole ' if column in _WHOLE else ''}number from {_NUMBERS[column]}"


def _check_request(row: Row) -> None:
    asked = row.get("request")
    if not (asked is None or isinstance(asked, Mapping)):
        raise InputError(wanted="amounts by resource", found=asked, field="request")
    check_asked(asked or {}, "request.")
    check_asked({column: row[column] for column in AMOUNTS if column in row})


def check_asked(amounts: Mapping[str, Any], place: str = "") -> None:
    """Refuse an amount of a program that is neither a text nor a number, or cannot be counted.

    Numbers may be of NumPy.  ``place`` is where errors find the names of the amounts.
    """
    for name, each in amounts.items():
        if not (isinstance(each, str) or is_number(each)):
            raise QuantityError(wanted=WANTED_QUANTITY, found=each, field=f"{place}{name}")
        try:
            parse_quantity(str(each))
        except QuantityError as error:
            error.field = f"{place}{name}"
            raise


def _request(row: Row) -> dict[str, str]:
    amounts = {resource: row[column] for column, resource in AMOUNTS.items() if column in row}
    amounts.update(row.get("request") or {})
    return {name: str(amount) for name, amount in (amounts or {"cpu": 1}).items()}
