"""The report as one HTML page: figures in words, a template that escapes all input, and charts."""

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, Final, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pumice.api.wording import counted
from pumice.sim.measure import NOTHING, Measures, Summary, are_comparable, duration
from pumice.sim.report.data import N_BARS, N_COLOURS, N_QUEUES, chart_data

_SMALLEST_PART = 0.0005
"""A smaller change is written as an amount: it would round to zero."""
_MINUS = "\N{MINUS SIGN}"


class Change(NamedTuple):
    """How a value differs from that of the first configuration."""

    text: str
    kind: str
    """``better``, ``worse`` or neither."""
    brief: str
    """The same in short form."""


class Cell(NamedTuple):
    """A value in words."""

    text: str
    change: Change | None = None


class Row(NamedTuple):
    """A row of a table: its name, its values, and more about it."""

    name: str
    cells: list[Cell]
    words: str = ""


class Group(NamedTuple):
    """Rows that belong together."""

    rows: list[Row]
    name: str = ""
    words: str = ""


class Table(NamedTuple):
    """A table: its column titles, and its rows."""

    head: list[str]
    groups: list[Group]


class Figure(NamedTuple):
    """One figure of a configuration's summary."""

    label: str
    get: Callable[[Summary], float | None]
    show: Callable[[float], str]
    better: int
    """Whether more is better (+1), worse (-1) or neither (0)."""
    total: str = ""
    """The count of which the figure is a part."""
    is_over_jobs: bool = True
    """Whether it depends on which jobs finished."""

    def text(self, found: Summary) -> str:
        """Write the figure of a configuration."""
        value = self.get(found)
        if value is None:
            return NOTHING
        return self.show(value) + (f" of {self.show(found[self.total])}" if self.total else "")

    def change(self, first: Summary, found: Summary) -> Change | None:
        """Write how a value differs from the first; None if one of them is missing."""
        before, after = self.get(first), self.get(found)
        if before is None or after is None:
            return None
        if self.is_over_jobs and not are_comparable(first, found):
            return _OVER_OTHER_JOBS
        difference = after - before
        if abs(difference) < 1e-9:
            return Change("same", "", "")
        kind = "" if not self.better else "better" if difference * self.better > 0 else "worse"
        sign = "+" if difference > 0 else _MINUS
        if self.show is _percent:
            points = f"{sign}{100 * abs(difference):.1f} points"
            return Change(points, kind, points)
        amount, part = f"{sign}{self.show(abs(difference))}", abs(difference / (before or math.inf))
        if part < _SMALLEST_PART:
            return Change(amount, kind, amount)
        percent = f"{sign}{100 * part:,.1f} %"
        return Change(f"{amount} ({percent})", kind, percent)


_OVER_OTHER_JOBS = Change("over other jobs", "", "over other jobs")


def _figures(found: Sequence[Summary]) -> list[Figure]:
    waits = (("mean", "mean"), ("median", "p50"), ("95th percentile", "p95"), ("longest", "max"))
    return [
        Figure("jobs finished", _at("finished"), _count, 1, "jobs", is_over_jobs=False),
        Figure("makespan", _at("makespan"), duration, -1),
        *(
            Figure(f"{name} in use", _at("utilisation", name), _percent, 1)
            for name in found[0]["utilisation"]
        ),
        *(Figure(f"wait, {name}", _at("wait", key), duration, -1) for name, key in waits),
        Figure("bounded slowdown, mean", _at("bounded_slowdown", "mean"), _two, -1),
        Figure("fairness, mean", _at("fairness", "mean"), _three, 1),
        Figure("fairness, least", _at("fairness", "least"), _three, 1),
        Figure("evictions", _at("evictions"), _count, -1),
        *(
            Figure(f"{name} wasted by them", _at("wasted", name), _percent, -1)
            for name in found[0]["wasted"]
            if any(each["evictions"] for each in found)
        ),
        Figure("cycles", _at("cycles"), _count, 0, is_over_jobs=False),
        Figure("decisions", _at("decisions"), _count, 0, is_over_jobs=False),
    ]


def _at(name: str, key: str = "") -> Callable[[Summary], float | None]:
    return lambda found: found[name].get(key) if key else found[name]


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _two(value: float) -> str:
    return f"{value:,.2f}"


def _three(value: float) -> str:
    return f"{value:.3f}"


def summary_rows(summary: Summary) -> list[list[str]]:
    """Write every figure in words: its name, then one value a configuration.

    A value is followed by its difference from the first configuration.
    """
    return [
        [row.name, *(_in_one_line(cell) for cell in row.cells)]
        for row in summary_table(summary).groups[0].rows
    ]


def _in_one_line(cell: Cell) -> str:
    brief = cell.change.brief if cell.change else ""
    return f"{cell.text} ({brief})" if brief else cell.text


def summary_table(summary: Summary) -> Table:
    """Lay out one row a figure, one column a configuration, compared with the first."""
    found = summary["configurations"]
    rows = []
    for figure in _figures(found):
        cells = [Cell(figure.text(found[0]))]
        cells += [Cell(figure.text(each), figure.change(found[0], each)) for each in found[1:]]
        rows.append(Row(figure.label, cells))
    return Table(["", *(each["configuration"] for each in found)], [Group(rows)])


def unfinished_notes(summary: Summary) -> list[tuple[str, str]]:
    """Count the jobs that did not finish, by configuration, and what leaves them out."""
    found = []
    for each in summary["configurations"]:
        jobs = each["unfinished"]
        never = sum(not job["started"] for job in jobs)
        if jobs:
            sentence = f"{len(jobs):,} of {each['jobs']:,} jobs did not finish"
            more = f"; {never:,} of them never started, and no figure of waits counts them"
            found.append((each["configuration"], sentence + (more if never else "")))
    return found


def queue_table(summary: Summary) -> Table:
    """Lay out the waits of each queue's jobs, one row a queue and configuration."""
    found = summary["configurations"]
    groups = []
    for queue, facts in found[0]["queues"].items():
        n = facts["jobs"]
        words = f"{n:,} {'job' if n == 1 else 'jobs'}, weight {facts['weight']:g}"
        waits = [(each["configuration"], each["queues"][queue]["wait"]) for each in found]
        if len(found) == 1:
            groups.append(Group([Row(queue, _times(waits[0][1]), words)]))
        else:
            groups.append(Group([Row(conf, _times(wait)) for conf, wait in waits], queue, words))
    return Table(["", "median", "95th percentile", "longest"], groups)


def _times(wait: Mapping[str, float | None]) -> list[Cell]:
    times = (wait[key] for key in ("p50", "p95", "max"))
    return [Cell(NOTHING if time is None else duration(time)) for time in times]


UPLOT: Final = "uplot-1.6.32"
"""The plotting library in the folder ``vendor``."""
_STROKES: Final = ("solid", "dashed", "dotted", "dashed")
_QUEUE_LINES: Final = (
    ("held, up to deserved", "within", ""),
    ("held beyond it (borrowed)", "beyond", ""),
    ("deserved", "ink", "dashed"),
    ("guarantee", "good", "solid"),
    ("capability", "bad", "solid"),
)
_ENVIRONMENT: Final = Environment(autoescape=True, undefined=StrictUndefined)


def render(
    summary: Summary,
    measured: Sequence[Measures],
    files: Iterable[str],
    *,
    charts: dict[str, Any] | None = None,
    title: str = "",
    introduction: str = "",
    heading: str = "The story",
    chapters: Iterable[Any] = (),
) -> str:
    """Make the page.

    Args:
        summary: The figures of all configurations.
        measured: The same configurations, for the charts.
        files: Tables beside the page, named as its sources.
        charts: The data of the charts, if somebody has gathered it before.
        title: Of the page; otherwise it names the trace.
        introduction: The first sentence; otherwise it describes the simulation.
        heading: Of the first parts.
        chapters: The first parts: each with a title, a text and lines.
    """
    data = charts or chart_data(measured)
    confs = data["configurations"]
    script = f'"use strict";\n{_file(f"vendor/{UPLOT}/uPlot.iife.min.js")}\n{_file("charts.js")}'
    return _ENVIRONMENT.from_string(_file("report.html")).render(
        title=title or f"Simulation of {summary['trace']['name']}",
        introduction=introduction or _introduction(summary),
        heading=heading,
        chapters=list(chapters),
        files=list(files),
        notes=summary["trace"]["notes"],
        storms=_storms(summary),
        unfinished=unfinished_notes(summary),
        summary_table=summary_table(summary),
        queue_table=queue_table(summary),
        data=data,
        confs=confs,
        conf_lines=_configuration_lines(confs),
        queue_lines=_QUEUE_LINES,
        queue_colours=lambda stroke: _colours(data["queues"], stroke),
        has_fairness=any(value is not None for conf in confs for value in conf["fairness"]),
        queues_text=_queues_text(summary),
        waits_text=_waits_text(summary),
        gangs_text=_gangs_text(summary),
        css=_markup(_file(f"vendor/{UPLOT}/uPlot.min.css") + _file("report.css")),
        embedded=_markup(embedded_json(data)),
        script=_markup(script),
        script_hash=f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}",
    )


def embedded_json(data: Mapping[str, Any]) -> str:
    """Write data so that no text in it ends the script element that holds it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # plain ASCII
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _markup(text: str) -> Markup:
    """Mark our own text, or text without markup, as safe."""
    return Markup(text)  # noqa: S704  (never called with text of a user's)


def _file(name: str) -> str:
    return resources.files("pumice.sim.report").joinpath(name).read_text(encoding="utf-8")


def _storms(summary: Summary) -> list[tuple[str, str]]:
    found = summary["configurations"]
    return [(each["configuration"], each["storm"]["text"]) for each in found if each["storm"]]


# Legends


def _colours(queues: Sequence[str], stroke: str) -> list[tuple[str, str, str]]:
    return [(name, f"c{i % N_COLOURS}", stroke) for i, name in enumerate(queues)]


def _configuration_lines(confs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (conf["name"], f"c{i % N_COLOURS}", _STROKES[i % len(_STROKES)])
        for i, conf in enumerate(confs)
    ]


# Words


def _introduction(summary: Summary) -> str:
    trace, options = summary["trace"], summary["options"]
    names = " and ".join(each["configuration"] for each in summary["configurations"])
    return (
        f"{counted(trace['jobs'], 'job')} ({trace['format']}) "
        f"on {counted(trace['nodes'], 'node')}, under {names}; "
        f"seed {options['seed']}, a cycle every {options['period']:g} s."
    )


def _queues_text(summary: Summary) -> str:
    n = len(summary["configurations"][0]["queues"])
    some = f" The {N_QUEUES} largest of {n} queues are drawn." if n > N_QUEUES else ""
    return (
        "What each queue holds against what it deserves: as stated, or else its part by weight "
        f"among the queues that ask.{some}"
    )


def _waits_text(summary: Summary) -> str:
    period = summary["options"]["period"]
    return f"A cycle runs every {period:g} s, so each wait ends at such a moment."


def _gangs_text(summary: Summary) -> str:
    n = summary["configurations"][0]["jobs"]
    some = f"{N_BARS} of {n:,} jobs, from when most waited" if n > N_BARS else "All jobs"
    return (
        f"{some}, in the order of their arrival: a thin line while they wait, a bar in the colour "
        "of their queue while they run, a diamond where a gang starts. The number after a name is "
        "that of its pods."
    )
