"""Progress of a long command: a bar on a terminal, else one line now and then, on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from pumice.api.shown_text import shown
from pumice.cli.printing import echo

_BETWEEN_LINES = 30.0
"""Seconds between two lines where there is no terminal."""
Report = Callable[[int], None]
"""Receives how many are done."""


class _Rate(ProgressColumn):
    """How many a second."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """Write the rate of the last seconds, or of all of them once they are over."""
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else rate_text(rate, self._unit))


def rate_text(rate: float, unit: str) -> str:
    """Write a rate, slow ones by the minute."""
    return f"{rate:,.0f} {unit}/s" if rate >= 1 else f"{60 * rate:,.1f} {unit}/min"


@contextmanager
def progress(name: str, total: int, unit: str) -> Iterator[Report]:
    """Show how many of a total are done, at which rate, and the time left."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(name, total, unit)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        _Rate(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, speed_estimate_period=60.0) as bar:
        task = bar.add_task(shown(name), total=total)
        yield lambda done: bar.update(task, completed=done)


def _lines(name: str, total: int, unit: str, clock: Callable[[], float] = monotonic) -> Report:
    """Print a line if some time has passed since the last one; nothing for short work."""
    start = clock()
    last = [start]

    def report(done: int) -> None:
        now = clock()
        if now - last[0] < _BETWEEN_LINES:
            return
        last[0] = now
        rate = done / (now - start)
        left = f", about {(total - done) / rate:,.0f} s left" if rate else ""
        echo(f"{name}: {done:,} of {total:,} {unit}, {rate_text(rate, unit)}{left}", err=True)

    return report
