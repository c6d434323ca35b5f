"""What a search found, for people and programs: a configuration with its evidence, and a page."""

import math
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from pumice.api.conditions import figure_words
from pumice.api.output_files import make_folder, write_file
from pumice.api.wording import counted, signed_span
from pumice.tuning.search import Evidence, Trial, Tuned

_WIDTH, _HEIGHT, _EDGE = 640.0, 320.0, 50.0
_SHOWN: Final = 20
"""Trials in the table of the page."""


def evidence_lines(found: Tuned) -> Iterator[str]:
    """Yield why a configuration was chosen, and what it costs whom."""
    aims = [name for name, _ in found.space.objectives]
    days = counted(found.best.days, "day")
    yield f"found by pumice tune in {counted(len(found.trials), 'trial')}"
    for at, value in found.best.values.items():
        yield f"{at}: {value}"
    for name in aims:
        now, before = (figure_words(name, side[name]) for side in (found.best.figures, found.base))
        yield f"{name} on {days} of the search: {now}, before {before}"
    held = found.evidence
    if held is None:
        yield "no days were held out: the result may fit these days only"
    else:
        yield from _held_lines(held, aims)


def _held_lines(held: Evidence, aims: Iterable[str]) -> Iterator[str]:
    days = f"{counted(len(held.days), 'day')} that the search has not seen"
    for name in aims:
        yield f"{name} on {days}: {figure_words(name, held.new[name])}, before " + figure_words(
            name, held.old[name]
        )
    yield (
        f"there a job waits {signed_span(held.wait.mean)} (95 %: {signed_span(held.wait.low)} to "
        f"{signed_span(held.wait.high)}); {held.earlier} start earlier, {held.later} later"
    )
    for each in held.queues:
        yield f"queue {each.name}: {signed_span(each.change.mean)} for {counted(each.jobs, 'job')}"
    if held.losers:
        named = ", ".join(f"{job} {signed_span(seconds)}" for job, seconds in held.losers.items())
        yield f"most later: {named}"
    for text in held.broken:
        yield f"NOT met on those days: {text}"


def configuration(found: Tuned) -> str:
    """Return the best configuration, with its evidence as comments."""
    lines = "\n".join(f"# {line}" for line in evidence_lines(found))
    return f"{lines}\n{found.conf}"


def to_dict(found: Tuned) -> dict[str, Any]:
    """Return all as plain data."""
    held = found.evidence
    return {
        "base": _plain(found.base),
        "best": _trial(found.best),
        "front": [_trial(each) for each in found.front],
        "trials": [_trial(each) for each in found.trials],
        "configuration": found.conf,
        "held": None
        if held is None
        else {
            "days": held.days,
            "old": _plain(held.old),
            "new": _plain(held.new),
            "wait": {"mean": held.wait.mean, "low": held.wait.low, "high": held.wait.high},
            "earlier": held.earlier,
            "later": held.later,
            "queues": {each.name: each.change.mean for each in held.queues},
            "losers": held.losers,
            "broken": held.broken,
        },
    }


def _plain(figures: dict[str, float]) -> dict[str, float | None]:
    return {
        name: value if math.isfinite(value) else None
        for name, value in figures.items()
        if "#" not in name
    }


def _trial(each: Trial) -> dict[str, Any]:
    return {
        "number": each.number,
        "values": each.values,
        "figures": _plain(each.figures),
        "days": each.days,
        "feasible": each.is_feasible,
        "error": each.error,
    }


def write_page(found: Tuned, path: Path) -> None:
    """Write one page: the evidence, the front as a chart, the best trials."""
    aims = [name for name, _ in found.space.objectives]
    front = found.front
    good = [each for each in found.trials if each.is_feasible]
    dots = [(each, *_place(each, aims)) for each in good]
    text = resources.files(__package__).joinpath("result.html").read_text(encoding="utf-8")
    page = Environment(autoescape=True, undefined=StrictUndefined).from_string(text)
    content = page.render(
        lines=[*evidence_lines(found)],
        conf=found.conf,
        aims=aims,
        axes=(aims[0], aims[1]) if len(aims) > 1 else ("trial", aims[0]),
        dots=[
            {"x": x, "y": y, "front": each in front, "title": _title(each, aims)}
            for each, x, y in _scaled(dots)
        ],
        rows=[(str(each.number), *(f"{each.figures[name]:.6g}" for name in aims), str(each.values))
              for each in (*front, *(e for e in good if e not in front))][:_SHOWN],
        width=_WIDTH,
        height=_HEIGHT,
    )  # fmt: skip
    make_folder(path.parent)
    write_file(path, content)


def _place(each: Trial, aims: list[str]) -> tuple[float, float]:
    if len(aims) > 1:
        return each.figures[aims[0]], each.figures[aims[1]]
    return float(each.number), each.figures[aims[0]]


def _scaled(dots: list[tuple[Trial, float, float]]) -> Iterator[tuple[Trial, float, float]]:
    """Place values within the chart."""
    xs, ys = [x for _, x, _ in dots], [y for _, _, y in dots]
    for each, x, y in dots:
        across, up = _part(x, xs), _part(y, ys)
        yield (
            each,
            round(_EDGE + across * (_WIDTH - 2 * _EDGE), 1),
            round(_HEIGHT - _EDGE - up * (_HEIGHT - 2 * _EDGE), 1),
        )


def _part(value: float, values: list[float]) -> float:
    low, high = min(values), max(values)
    return (value - low) / (high - low) if high > low else 0.5


def _title(each: Trial, aims: list[str]) -> str:
    return f"trial {each.number}: " + ", ".join(f"{name} {each.figures[name]:.6g}" for name in aims)
