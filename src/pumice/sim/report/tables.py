"""The figures of a summary in words: rows for the terminal, tables for the page."""

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pumice.sim.wording import duration

Summary = Mapping[str, Any]
_NOTHING, _MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


class Figure(NamedTuple):
    """One figure of a configuration's summary."""

    label: str
    get: Callable[[Summary], float | None]
    show: Callable[[float], str]
    better: int
    """Whether more is better (+1), worse (-1) or neither (0)."""

    def text(self, value: float | None) -> str:
        """Write a value of the figure."""
        return _NOTHING if value is None else self.show(value)

    def delta(self, before: float | None, after: float | None) -> str:
        """Write how one value differs from another, as HTML."""
        if before is None or after is None:
            return _NOTHING
        change = after - before
        if abs(change) < 1e-9:
            return "same"
        kind = "" if not self.better else "better" if change * self.better > 0 else "worse"
        sign = "+" if change > 0 else _MINUS
        part = f" ({100 * abs(change) / abs(before):.1f} %)" if before else ""
        return f'<span class="{kind}">{sign}{self.show(abs(change))}{part}</span>'


def _figures(first: Summary) -> list[Figure]:
    waits = (("mean", "mean"), ("median", "p50"), ("95th percentile", "p95"), ("longest", "max"))
    return [
        Figure("jobs finished", _at("finished"), _count, 1),
        Figure("makespan", _at("makespan"), duration, -1),
        *(
            Figure(f"{name} in use", _at("utilisation", name), _percent, 1)
            for name in first["utilisation"]
        ),
        *(Figure(f"wait, {name}", _at("wait", key), duration, -1) for name, key in waits),
        Figure("fairness, mean", _at("fairness", "mean"), _three, 1),
        Figure("fairness, least", _at("fairness", "least"), _three, 1),
        Figure("evictions", _at("evictions"), _count, -1),
        Figure("cycles", _at("cycles"), _count, 0),
        Figure("decisions", _at("decisions"), _count, 0),
    ]


def _at(name: str, key: str = "") -> Callable[[Summary], float | None]:
    return lambda found: found[name].get(key) if key else found[name]


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _three(value: float) -> str:
    return f"{value:.3f}"


def summary_rows(summary: Summary) -> list[list[str]]:
    """Write every figure of a summary in words: its name, then one value a configuration."""
    found = summary["configurations"]
    return [
        [figure.label, *(figure.text(figure.get(each)) for each in found)]
        for figure in _figures(found[0])
    ]


def summary_table(summary: Summary) -> str:
    """Write one row a figure, one column a configuration, and how the last differs."""
    found = summary["configurations"]
    head = ["", *(each["configuration"] for each in found)]
    rows = summary_rows(summary)
    if len(found) > 1:
        head.append("difference" if len(found) == 2 else "last against first")
        for row, figure in zip(rows, _figures(found[0]), strict=True):
            row.append(figure.delta(figure.get(found[0]), figure.get(found[-1])))
    kind = ' class="compared"' if len(found) > 1 else ""
    body = "".join(_row([html.escape(label), *values]) for label, *values in rows)
    return f'<table{kind} style="--n: {len(head) - 1}">{_head(head)}{body}</table>'


def queue_table(summary: Summary) -> str:
    """Write how long the jobs of each queue waited, one row a queue and configuration."""
    found = summary["configurations"]
    parts = []
    for queue, facts in found[0]["queues"].items():
        n = facts["jobs"]
        words = f"{n:,} {'job' if n == 1 else 'jobs'}, weight {facts['weight']:g}"
        name = f"{html.escape(queue)} <small>{words}</small>"
        waits = [(each["configuration"], each["queues"][queue]["wait"]) for each in found]
        if len(found) == 1:
            parts.append(_row([name, *_times(waits[0][1])]))
            continue
        parts.append(f'<tr><th class="group" colspan="4" scope="rowgroup">{name}</th></tr>')
        parts += [_row([html.escape(conf), *_times(wait)]) for conf, wait in waits]
    head = _head(["", "median", "95th percentile", "longest"])
    return f"<h3>Waits by queue</h3><table>{head}{''.join(parts)}</table>"


def _times(wait: Mapping[str, float | None]) -> list[str]:
    times = (wait[key] for key in ("p50", "p95", "max"))
    return [_NOTHING if time is None else duration(time) for time in times]


def _head(cells: Sequence[str]) -> str:
    columns = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in cells)
    return f"<thead><tr>{columns}</tr></thead>"


def _row(cells: Iterable[str]) -> str:
    """Write a row of HTML; its first cell names it."""
    name, *values = cells
    return f'<tr><th scope="row">{name}</th>' + "".join(f"<td>{v}</td>" for v in values) + "</tr>"
