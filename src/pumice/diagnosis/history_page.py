"""Where the time of jobs went, as one page with a chart: how many waited when, and why."""

from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from pumice.api.times import rfc3339
from pumice.api.wording import span
from pumice.diagnosis.job_history import Span

_BINS: Final = 96
_MOST: Final = 8
"""Groups with a colour of their own; the rest is drawn together."""
_OTHERS: Final = ("others",)
_WIDTH, _HEIGHT = 900.0, 300.0


def page(spans: Sequence[Span], by: tuple[str, ...], title: str) -> str:
    """Return the page: states of jobs over time, stacked by "queue", "cause" or "job"."""
    sums: dict[tuple[str, ...], float] = {}
    for each in spans:
        sums[_group(each, by)] = sums.get(_group(each, by), 0.0) + each.seconds
    ordered = sorted(sums, key=lambda group: (-sums[group], group))
    if len(ordered) > _MOST:
        sums[_OTHERS] = sum(sums[group] for group in ordered[_MOST - 1 :])
        ordered = [*ordered[: _MOST - 1], _OTHERS]
    start = min((each.since for each in spans), default=0.0)
    end = max((each.until for each in spans), default=0.0)
    heights = _heights(spans, by, ordered, start, max((end - start) / _BINS, 1e-3))
    text = resources.files(__package__).joinpath("history.html").read_text(encoding="utf-8")
    made = Environment(autoescape=True, undefined=StrictUndefined).from_string(text)
    total = sum(sums[group] for group in ordered) or 1.0
    return made.render(
        title=title,
        words=", ".join(by),
        top=f"{max(map(sum, heights), default=0.0):.3g}",
        times=[rfc3339(start + part * (end - start)) for part in (0.0, 0.5, 1.0)],
        bars=[*_bars(heights, ordered)],
        rows=[
            (number, " · ".join(group), span(sums[group]), f"{100 * sums[group] / total:.1f} %")
            for number, group in enumerate(ordered)
        ],
        width=_WIDTH,
        height=_HEIGHT,
    )


def _group(each: Span, by: tuple[str, ...]) -> tuple[str, ...]:
    names = {"cause": each.cause or each.state, "queue": each.queue, "job": each.job}
    return tuple(names[name] for name in by)


def _heights(
    spans: Sequence[Span],
    by: tuple[str, ...],
    groups: Sequence[tuple[str, ...]],
    start: float,
    width: float,
) -> list[list[float]]:
    """Return how many jobs there are of each group in each part of the time, on average."""
    found = [[0.0] * len(groups) for _ in range(_BINS)]
    rows = {group: row for row, group in enumerate(groups)}
    for each in spans:
        row = rows.get(_group(each, by), len(groups) - 1)
        first = min(int((each.since - start) / width), _BINS - 1)
        last = min(int((each.until - start) / width), _BINS - 1)
        for number in range(first, last + 1):
            left = start + number * width
            part = min(each.until, left + width) - max(each.since, left)
            found[number][row] += max(part, 0.0) / width
    return found


def _bars(
    heights: Sequence[Sequence[float]], groups: Sequence[tuple[str, ...]]
) -> list[dict[str, Any]]:
    top = max(map(sum, heights), default=0.0) or 1.0
    bars: list[dict[str, Any]] = []
    for number, column in enumerate(heights):
        base = _HEIGHT
        for row, value in enumerate(column):
            tall = value / top * _HEIGHT
            base -= tall
            if tall >= 0.05:
                words = f"{' · '.join(groups[row])}: {value:.3g}"
                x, wide = round(number * _WIDTH / _BINS, 1), round(_WIDTH / _BINS - 0.6, 1)
                bars.append({"x": x, "y": round(base, 1), "tall": round(tall, 1), "wide": wide,
                             "row": row, "title": words})  # fmt: skip
    return bars
