"""The report as one HTML page: tables and frames written here, charts drawn by uPlot inside it."""

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any, Final

from pumice.sim.measure import Measures
from pumice.sim.report.data import N_BARS, N_COLOURS, N_QUEUES, chart_data
from pumice.sim.report.tables import Summary, queue_table, summary_table

UPLOT: Final = "uplot-1.6.32"
"""The plotting library in the folder ``vendor``."""
_STROKES: Final = ("solid", "dashed", "dotted", "dashed")


def render(
    summary: Summary, measured: Sequence[Measures], files: Iterable[str], opening: str = ""
) -> str:
    """Make the page.

    ``files`` lie beside it and are named as its sources; ``opening`` is HTML that stands first.
    """
    data = chart_data(measured)
    title = f"Simulation of {summary['trace']['name']}"
    script = f'"use strict";\n{_file(f"vendor/{UPLOT}/uPlot.iife.min.js")}\n{_file("charts.js")}'
    return Template(_file("report.html")).substitute(
        title=html.escape(title),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        css=_file(f"vendor/{UPLOT}/uPlot.min.css") + _file("report.css"),
        body="\n".join([_head(title, summary, files), opening, *_sections(summary, data)]),
        data=embedded_json(data),
        script=script,
    )


def embedded_json(data: Mapping[str, Any]) -> str:
    """Write data so that no text in it ends the script element that holds it."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)  # plain ASCII
    return text.replace("<", "\\u003c")


def _file(name: str) -> str:
    return resources.files("pumice.sim.report").joinpath(name).read_text(encoding="utf-8")


def _head(title: str, summary: Summary, files: Iterable[str]) -> str:
    trace, options = summary["trace"], summary["options"]
    names = " and ".join(html.escape(each["configuration"]) for each in summary["configurations"])
    links = ", ".join(f'<a href="{html.escape(f)}">{html.escape(f)}</a>' for f in files)
    return (
        f"<h1>{html.escape(title)}</h1><p>{trace['jobs']:,} jobs "
        f"({html.escape(trace['format'])}) on {trace['nodes']:,} nodes, under {names}; "
        f"seed {options['seed']}, a cycle every {options['period']:g} s. Figures: {links}.</p>"
        "<noscript><p>The charts need JavaScript; the tables do not.</p></noscript>"
    )


def _sections(summary: Summary, data: Mapping[str, Any]) -> list[str]:
    """Write one section a kind of chart; the script finds charts by ``data-chart``."""
    confs, colours = data["configurations"], _colours(data["queues"])
    lines = _key(_configuration_lines(confs)) if len(confs) > 1 else ""
    drag = "Drag over a chart to look closer at a part of the time; double-click for all of it."
    return [
        _section("Summary", "", _tables(summary)),
        _section(
            "Utilisation",
            f"Part of the cluster in use. {drag}",
            _buttons(data) + lines + _group("utilisation", _chart("utilisation")),
        ),
        _section(
            "Queues",
            _queues_text(summary),
            _buttons(data) + _key(_QUEUE_LINES) + _group("queues", _queue_charts(confs)),
        ),
        _section(
            "Waiting jobs",
            "Jobs that have not started, by queue.",
            _key([("all queues", "soft", "dashed"), *((*each, "solid") for each in colours)])
            + _group("lengths", _beside(confs, "waiting")),
        ),
        _section(
            "Wait times",
            "Part of the jobs that waited no longer than a time, from arrival to the moment their "
            "gang was complete.",
            lines + _group("waits", _waits(data)),
        ),
        _section(
            "Fairness",
            "Jain's index over what queues hold of what is due to them by weight and demand: 1 if "
            "all get the same part of their due. Drawn where two queues or more ask for something.",
            lines + _group("fairness", _fairness(confs)),
        ),
        _section("Nodes", _nodes_text(confs[0]), _RAMP + _group("heat", _beside(confs, "heat"))),
        _section(
            "Gangs",
            _gangs_text(summary),
            _key([("waiting", "waiting"), *colours, ("evicted", "bad")])
            + _group("gantt", _beside(confs, "gantt")),
        ),
    ]


def _section(title: str, words: str, content: str) -> str:
    text = f"<p>{html.escape(words)}</p>" if words else ""
    return f"<section><h2>{html.escape(title)}</h2>{text}{content}</section>"


def _tables(summary: Summary) -> str:
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in summary["trace"]["notes"])
    return (
        f'<div class="pair"><div>{summary_table(summary)}</div>'
        f'<div>{queue_table(summary)}</div></div><ul class="notes">{notes}</ul>'
    )


# Charts and what stands beside them


def _group(name: str, content: str) -> str:
    return f'<div id="{name}">{content}</div>'


def _chart(name: str, **of: int) -> str:
    """Write the place of a chart; ``of`` says by number what it shows: configuration, queue."""
    facts = "".join(f' data-{key}="{number}"' for key, number in of.items())
    return f'<div data-chart="{name}"{facts}></div>'


def _beside(confs: Sequence[Mapping[str, Any]], name: str) -> str:
    return _columns(confs, [_chart(name, conf=i) for i in range(len(confs))])


def _columns(confs: Sequence[Mapping[str, Any]], contents: Iterable[str]) -> str:
    """Put what belongs to each configuration side by side, where there is room."""
    cells = "".join(
        f"<div>{_heading(conf['name']) if len(confs) > 1 else ''}{content}</div>"
        for conf, content in zip(confs, contents, strict=True)
    )
    return f'<div class="beside" style="--n: {len(confs)}">{cells}</div>'


def _queue_charts(confs: Sequence[Mapping[str, Any]]) -> str:
    panels = [
        "".join(
            f"<div>{_heading(queue['name'])}{_chart('queue', conf=i, queue=j)}</div>"
            for j, queue in enumerate(conf["queues"])
        )
        for i, conf in enumerate(confs)
    ]
    return _columns(confs, [f'<div class="panels">{each}</div>' for each in panels])


def _heading(text: str) -> str:
    return f"<h3>{html.escape(text)}</h3>"


def _waits(data: Mapping[str, Any]) -> str:
    return _chart("waits") if data["waits"]["parts"] else "<p>No job started.</p>"


def _fairness(confs: Sequence[Mapping[str, Any]]) -> str:
    if any(value is not None for conf in confs for value in conf["fairness"]):
        return _chart("fairness")
    return "<p>At no time do two queues ask for something.</p>"


def _buttons(data: Mapping[str, Any]) -> str:
    """Write a choice of the resource that is drawn, and a way back to the whole time."""
    choices = "".join(
        f'<button type="button" data-resource="{i}" aria-pressed="{str(i == data["main"]).lower()}"'
        f">{html.escape(resource['name'])}</button>"
        for i, resource in enumerate(data["resources"])
    )
    whole = '<button type="button" class="whole" hidden>whole time</button>'
    return f'<div class="tools">{choices}{whole}</div>'


# Legends


def _colours(queues: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, f"c{i % N_COLOURS}") for i, name in enumerate(queues)]


def _configuration_lines(confs: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (conf["name"], f"c{i % N_COLOURS}", _STROKES[i % len(_STROKES)])
        for i, conf in enumerate(confs)
    ]


def _key(entries: Iterable[tuple[str, ...]]) -> str:
    """Write a legend: words, name of the colour and, for a line, how it is stroked."""
    spans = []
    for words, colour, *stroke in entries:
        style = f"--swatch: var(--{colour})" + "".join(f"; --stroke: {each}" for each in stroke)
        kind = ' class="line"' if stroke else ""
        spans.append(f'<span{kind} style="{style}">{html.escape(words)}</span>')
    return f'<div class="legend">{"".join(spans)}</div>'


_QUEUE_LINES: Final = (
    ("held, up to what is deserved", "within"),
    ("held beyond it (borrowed)", "beyond"),
    ("deserved", "ink", "dashed"),
    ("guarantee", "good", "solid"),
    ("capability", "bad", "solid"),
)
_RAMP: Final = '<div class="legend"><b>idle<i class="ramp"></i>full</b></div>'


# Words


def _queues_text(summary: Summary) -> str:
    n = len(summary["configurations"][0]["queues"])
    some = f" The {N_QUEUES} largest of {n} queues are drawn." if n > N_QUEUES else ""
    return (
        "What each queue holds against what it deserves: as stated, or else its part by weight "
        f"among the queues that ask.{some}"
    )


def _nodes_text(conf: Mapping[str, Any]) -> str:
    return (
        "One row a node (or a group of neighbours), time from left to right: how much of its "
        f"{conf['heat']['resource']} is in use."
    )


def _gangs_text(summary: Summary) -> str:
    n = summary["configurations"][0]["jobs"]
    some = f"{N_BARS} of {n:,} jobs, from when most waited" if n > N_BARS else "All jobs"
    return (
        f"{some}, in the order of their arrival: a thin line while they wait, a bar in the colour "
        "of their queue while they run, a diamond where a gang starts. Behind a name stands the "
        "number of its pods."
    )
