"""A sign-off as tables, for a terminal and for pages: totals first, then whom they concern."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pumice.api.wording import counted, first_of, span
from pumice.diagnosis.signoff import Costs, SignOff, Start

Row = tuple[str, ...]
_NAMED: Final = 3
"""Names beside a number."""
_SIDES: Final = ("before", "after")
SIGN_OFF: Final = "Sign-off"
"""The title of the totals."""


@dataclass(frozen=True)
class Table:
    """Rows of texts under a title."""

    title: str
    columns: Row
    rows: list[Row]


def tables_of(signed: SignOff, sides: tuple[str, str] = _SIDES) -> list[Table]:
    """Return the tables of a sign-off that have rows; ``sides`` are the names of both columns."""
    before, after = signed.before, signed.after
    parts = [
        *_rows("queue", before.by_queue, after.by_queue),
        *_rows("priority", before.by_priority, after.by_priority),
    ]
    times = ("job", *sides, "difference")
    tables = [
        Table(SIGN_OFF, ("", *sides), _totals(signed)),
        Table("Evictions by queue and priority", ("", *sides), parts),
        Table("Pods evicted more than once", ("pod", *sides), _often(before, after)),
        Table("Queues below their due", ("queue", *sides), _lacking(before, after)),
        Table("Jobs that start earlier or later", times, [_start(each) for each in signed.starts]),
        Table("Not known", ("",), [(line,) for line in signed.unknown]),
    ]
    return [each for each in tables if each.rows]


def _totals(signed: SignOff) -> list[Row]:
    sides = signed.before, signed.after
    return [
        ("pods evicted", *map(_evictions, sides)),
        *((title, *(_cell(names(side)) for side in sides)) for title, names in _LISTED.items()),
        ("jobs that start earlier", "", str(signed.earlier)),
        ("jobs that start later", "", str(signed.later)),
        ("wait, 95th percentile", *map(_percentile, sides)),
        ("settles in", *(_settled(side.settled_in_s) for side in sides)),
    ]


_LISTED: Final[Mapping[str, Callable[[Costs], Iterable[str]]]] = {
    "gangs broken": lambda side: side.gangs_broken,
    "gangs evicted whole": lambda side: side.gangs_evicted,
    "jobs failed or out of retries": lambda side: side.jobs_failed,
    "jobs that lose all pods": lambda side: side.jobs_lost,
    "queues below their due": lambda side: side.below_due,
}


def _cell(names: Iterable[str]) -> str:
    known = list(names)
    return f"{len(known)}: {first_of(known, _NAMED)}" if known else "0"


def _evictions(side: Costs) -> str:
    text = str(len(side.evicted))
    if side.evictions > len(side.evicted):
        text += f", {counted(side.evictions, 'time')} in all"
    return text


def _settled(seconds: float | None) -> str:
    return "it does not settle" if seconds is None else span(seconds)


def _percentile(side: Costs) -> str:
    found = side.figures()["wait.p95"]
    return "not within sight" if found == float("inf") else span(found)


def _start(row: Start) -> Row:
    before, after = row.before_s, row.after_s
    if before is None or after is None:
        difference = "starts" if before is None else "starts no more"
    else:
        difference = f"{span(abs(after - before))} {'later' if after > before else 'earlier'}"
    return row.job, _when(before), _when(after), difference


def _when(seconds: float | None) -> str:
    if seconds is None:
        return "not within sight"
    return f"in {span(seconds)}" if seconds else "now"


def _often(before: Costs, after: Costs) -> list[Row]:
    return [
        (pod, str(before.evicted.get(pod, 0)), str(after.evicted.get(pod, 0)))
        for pod in {**after.evicted, **before.evicted}
        if max(before.evicted.get(pod, 0), after.evicted.get(pod, 0)) > 1
    ]


def _lacking(before: Costs, after: Costs) -> list[Row]:
    return [
        (f"{queue} {resource}", *(_has(side, queue, resource) for side in (before, after)))
        for queue in sorted({*before.below_due, *after.below_due})
        for resource in {**before.below_due.get(queue, {}), **after.below_due.get(queue, {})}
    ]


def _rows(kind: str, before: Mapping[str, int], after: Mapping[str, int]) -> list[Row]:
    return [
        (f"{kind} {name}", str(before.get(name, 0)), str(after.get(name, 0)))
        for name in {**after, **before}
    ]


def _has(side: Costs, queue: str, resource: str) -> str:
    if queue not in side.below_due:
        return "has its due"
    found = side.below_due[queue].get(resource)
    return f"{found[0]} of {found[1]}" if found else ""
