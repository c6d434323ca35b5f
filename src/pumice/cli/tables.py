"""Rendering for the command line: tables of results and decisions.

Printing is separate from fetching: nothing here reads files or runs a scheduler.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pumice.api.decisions import Decisions, PodGroupState
from pumice.api.shown_text import shown
from pumice.cli.terminal import echo_lines

_PIPE_WIDTH = 1_000_000  # columns when the output is no terminal: lines stay whole


class Row(NamedTuple):
    """One line of a summary."""

    cells: Sequence[str]
    is_bad: bool


def print_summary(rows: Iterable[Row]) -> None:
    """Print one line for each folder: passed, failed, errors, seconds."""
    table = _table("folder", passed="right", failed="right", errors="right", time="right")
    for row in rows:
        _add(table, *row.cells, style="red" if row.is_bad else "")
    _print(table)


def print_decisions(cycles: Sequence[Decisions]) -> None:
    """Print what each cycle decided: pod groups first, then where pods go."""
    for number, decisions in enumerate(cycles, start=1):
        if len(cycles) > 1:
            _print(f"cycle {number}")
        groups = _table("pod group", phase="left", why="left")
        for name, state in sorted(decisions.pod_groups.items()):
            _add(groups, name, state.phase, _why(name, state, decisions))
        _print(groups)
        placements = _table("pod", decision="left", node="left")
        for pod, node in decisions.binds.items():
            _add(placements, pod, "bound", node)
        for pod in decisions.evictions:
            _add(placements, pod, "evicted", "")
        for pod, node in decisions.pipelined.items():
            _add(placements, pod, "pipelined", node)
        _print(placements if placements.row_count else "nothing bound, evicted or pipelined")


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a plain table of texts."""
    table = _table(columns[0], **dict.fromkeys(columns[1:], "left"))
    for row in rows:
        _add(table, *row)
    _print(table)


def _why(name: str, state: PodGroupState, decisions: Decisions) -> str:
    """Return the short reason for a phase: the explanation, else the last condition."""
    if name in decisions.explanations:
        return decisions.explanations[name]
    return state.conditions[-1].reason if state.conditions else ""


def _table(first: str, **columns: Any) -> Any:
    from rich import box  # noqa: PLC0415  (loading rich takes longer than most commands)
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(shown(first), overflow="fold")
    for name, justify in columns.items():
        table.add_column(shown(name), justify=justify, overflow="fold")
    return table


def _add(table: Any, *cells: str, style: str = "") -> None:
    table.add_row(*map(shown, cells), style=style)


def _print(what: Any) -> None:
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        console.print(what)
        return
    console.width = _PIPE_WIDTH
    with console.capture() as caught:
        console.print(what)
    echo_lines("".join(f"{line.rstrip()}\n" for line in caught.get().splitlines()))
