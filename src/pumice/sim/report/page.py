"""The report as one HTML page: tables written here, charts drawn by the script inside it."""

import html
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

from pumice.sim.measure import Measures
from pumice.sim.report.data import N_BARS, N_QUEUES, chart_data

Summary = Mapping[str, Any]
_NOTHING, _MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
_SCRIPTS = ("base.js", "charts.js", "canvases.js", "page.js")
_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def render(summary: Summary, measured: Sequence[Measures], files: Sequence[str]) -> str:
    """Make the page; ``files`` are named as its sources and lie beside it."""
    data = json.dumps(chart_data(measured), separators=(",", ":"), allow_nan=False)
    title = f"Simulation of {summary['trace']['name']}"
    parts = {
        "title": html.escape(title),
        "css": _file("report.css"),
        "body": _body(title, summary, measured, files),
        "data": data.replace("</", "<\\/"),
        "script": "\n".join(map(_file, _SCRIPTS)),
    }
    page = _file("report.html")
    for name, text in parts.items():
        page = page.replace(f"%{name}%", text, 1)
    return page


def _file(name: str) -> str:
    return resources.files("pumice.sim.report").joinpath(name).read_text(encoding="utf-8")


def _body(title: str, summary: Summary, measured: Sequence[Measures], files: Sequence[str]) -> str:
    trace, options = summary["trace"], summary["options"]
    names = " and ".join(html.escape(each.name) for each in measured)
    facts = (
        f"{trace['jobs']:,} jobs ({trace['format']}) on {trace['nodes']:,} nodes, "
        f"under {names}; seed {options['seed']}, a cycle every {options['period']:g} s"
    )
    links = ", ".join(f'<a href="{html.escape(f)}">{html.escape(f)}</a>' for f in files)
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in trace["notes"])
    drag = "Drag over a chart to look closer at a part of the time; double-click for all of it."
    parts = [
        f"<h1>{html.escape(title)}</h1><p>{facts}. Figures: {links}.</p>",
        "<noscript><p>The charts need JavaScript; the tables do not.</p></noscript>",
        _section("Summary", "", _tables(summary) + f'<ul class="notes">{notes}</ul>'),
        _section("Utilisation", f"Part of the cluster in use. {drag}", _chart("utilisation", 1)),
        _section("Queues", _queues_text(measured), _queues_key() + _chart("queues", 1)),
        _section(
            "Waiting jobs",
            "Jobs that have not started, by queue.",
            '<div id="lengths-key"></div>' + _chart("lengths"),
        ),
        _section(
            "Wait times",
            "Part of the jobs that waited no longer than a time, from arrival to the moment their "
            "gang was complete.",
            _chart("waits"),
        ),
        _section(
            "Fairness",
            "Jain's index over what queues hold of what is due to them by weight and demand: 1 if "
            "all get the same part of their due. Drawn where two queues or more ask for something.",
            _chart("fairness"),
        ),
        _section("Nodes", _nodes_text(measured), '<div id="heat-key"></div>' + _chart("heat")),
        _section("Gangs", _gangs_text(measured), '<div id="gantt-key"></div>' + _chart("gantt")),
    ]
    return "\n".join(parts)


def _section(title: str, words: str, content: str) -> str:
    text = f"<p>{html.escape(words)}</p>" if words else ""
    return f"<section><h2>{html.escape(title)}</h2>{text}{content}</section>"


def _chart(name: str, tools: int = 0) -> str:
    return ('<div class="tools"></div>' if tools else "") + f'<div id="{name}"></div>'


def _queues_key() -> str:
    entries = (
        ("", "--within", "", "held, up to what is deserved"),
        ("", "--beyond", "", "held beyond it (borrowed)"),
        ("stroke", "--ink", "dashed", "deserved"),
        ("stroke", "--good", "solid", "guarantee"),
        ("stroke", "--bad", "solid", "capability"),
    )
    spans = "".join(
        f'<span class="{kind}" style="--swatch: var({colour}); --dash: {dash or "solid"}">'
        f"{words}</span>"
        for kind, colour, dash, words in entries
    )
    return f'<div class="legend">{spans}</div>'


def _queues_text(measured: Sequence[Measures]) -> str:
    n = len(measured[0].queues.names)
    some = f" The {N_QUEUES} largest of {n} queues are drawn." if n > N_QUEUES else ""
    return (
        "What each queue holds against what it deserves: as stated, or else its part by weight "
        f"among the queues that ask.{some}"
    )


def _nodes_text(measured: Sequence[Measures]) -> str:
    first = measured[0]
    return (
        f"One row a node (or a group of neighbours), time from left to right: how much of its "
        f"{first.resources[first.main_resource]} is in use."
    )


def _gangs_text(measured: Sequence[Measures]) -> str:
    n = len(measured[0].outcome.runs)
    some = f"{N_BARS} of {n:,} jobs, from when most waited" if n > N_BARS else "All jobs"
    return (
        f"{some}, in the order of their arrival: a thin line while they wait, a bar in the colour "
        "of their queue while they run, a diamond where a gang starts. Behind a name stands the "
        "number of its pods."
    )


def _tables(summary: Summary) -> str:
    return (
        f'<div class="pair"><div>{_summary_table(summary)}</div>'
        f"<div>{_queue_table(summary)}</div></div>"
    )


def _summary_table(summary: Summary) -> str:
    """Write one row a figure, one column a configuration, and how the last differs."""
    found = summary["configurations"]
    head = ["", *(each["configuration"] for each in found)]
    compared = len(found) > 1
    if compared:
        head.append("difference" if len(found) == 2 else "last against first")
    rows = []
    for label, get, show, better in _figures(found[0]):
        values = [get(each) for each in found]
        cells = [html.escape(label), *(_show(show, value) for value in values)]
        if compared:
            cells.append(_delta(values[0], values[-1], show, better))
        rows.append(cells)
    return _table(head, rows)


Figure = tuple[str, Callable[[Summary], Any], Callable[[float], str], int]
"""Label, where it stands, how to write it, and whether more is better (+1), worse (-1) or neither.
"""


def _figures(first: Summary) -> list[Figure]:
    out: list[Figure] = [
        ("jobs finished", lambda s: s["finished"], _count, 1),
        ("makespan", lambda s: s["makespan"], duration, -1),
    ]
    out += [(f"{name} in use", _use(name), _percent, 1) for name in first["utilisation"]]
    out += [
        ("wait, mean", _wait("mean"), duration, -1),
        ("wait, median", _wait("p50"), duration, -1),
        ("wait, 95th percentile", _wait("p95"), duration, -1),
        ("wait, longest", _wait("max"), duration, -1),
        ("fairness, mean", lambda s: s["fairness"]["mean"], _three, 1),
        ("fairness, least", lambda s: s["fairness"]["least"], _three, 1),
        ("evictions", lambda s: s["evictions"], _count, -1),
        ("cycles", lambda s: s["cycles"], _count, 0),
        ("decisions", lambda s: s["decisions"], _count, 0),
    ]
    return out


def summary_rows(summary: Summary) -> list[list[str]]:
    """Write every figure of a summary in words: its name, then one value a configuration."""
    found = summary["configurations"]
    return [
        [label, *(_show(show, get(each)) for each in found)]
        for label, get, show, _ in _figures(found[0])
    ]


def _use(name: str) -> Callable[[Summary], Any]:
    return lambda found: found["utilisation"].get(name)


def _wait(key: str) -> Callable[[Summary], Any]:
    return lambda found: found["wait"][key]


def _queue_table(summary: Summary) -> str:
    found = summary["configurations"]
    head = ["queue", "jobs", "weight"]
    for each in found:
        name = f"{each['configuration']}: " if len(found) > 1 else ""
        head += [f"{name}median", "p95", "longest"]
    rows = []
    for queue, facts in found[0]["queues"].items():
        cells = [html.escape(queue), f"{facts['jobs']:,}", f"{facts['weight']:g}"]
        for each in found:
            wait = each["queues"][queue]["wait"]
            cells += [_show(duration, wait[key]) for key in ("p50", "p95", "max")]
        rows.append(cells)
    return "<h3>Waits by queue</h3>" + _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>" for cells in rows
    )
    return (
        f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _delta(
    before: float | None, after: float | None, show: Callable[[float], str], better: int
) -> str:
    if before is None or after is None:
        return _NOTHING
    change = after - before
    if abs(change) < 1e-9:
        return "same"
    kind = "" if not better else "better" if change * better > 0 else "worse"
    sign = "+" if change > 0 else _MINUS
    part = f" ({100 * abs(change) / abs(before):.1f} %)" if before else ""
    return f'<span class="{kind}">{sign}{show(abs(change))}{part}</span>'


def _show(how: Callable[[float], str], value: float | None) -> str:
    return _NOTHING if value is None else how(value)


def duration(seconds: float) -> str:
    """Write a time in the largest unit of which it has one."""
    for size, name in _UNITS:
        if abs(seconds) >= size:
            return f"{seconds / size:,.3g} {name}"
    return f"{seconds:.3g} s"


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _three(value: float) -> str:
    return f"{value:.3f}"
