"""The report as one HTML page: a template that escapes all input, and charts inside it."""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pumice.api.wording import counted
from pumice.sim.comparing import Summary
from pumice.sim.measure import Measures
from pumice.sim.report.data import N_BARS, N_COLOURS, N_QUEUES, chart_data
from pumice.sim.report.tables import queue_table, summary_table, unfinished_notes

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
        chapters: The first parts: each with a title, a text and lines.
    """
    data = charts or chart_data(measured)
    confs = data["configurations"]
    script = f'"use strict";\n{_file(f"vendor/{UPLOT}/uPlot.iife.min.js")}\n{_file("charts.js")}'
    return _ENVIRONMENT.from_string(_file("report.html")).render(
        title=title or f"Simulation of {summary['trace']['name']}",
        introduction=introduction or _introduction(summary),
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
