"""How answers are printed: tables for people, JSON or YAML for programs, whatever they hold.

Printing is separate from fetching: nothing here reads files or runs a scheduler.  All text that
commands print goes through ``echo``: it may come from a file, a cluster or a service, so control
characters and marks that do not show are escaped.  A line is one line: line breaks are escaped too.
"""

import json
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from pumice.api.shown_text import has_marks, shown, shown_json, shown_lines
from pumice.api.wording import span
from pumice.errors import bounded

_CLEAR_LINE = "\r\033[2K"


def echo(line: str = "", *, err: bool = False, **style: Any) -> None:
    """Print one line, in a style of click if one is named; a message is cut if it is very long."""
    text = shown(bounded(line) if err else line)
    click.echo(click.style(text, **style) if style else text, err=err)  # noqa: TID251


def echo_lines(text: str, *, err: bool = False) -> None:
    """Print a text as it is laid out, without adding a line break at its end."""
    click.echo(shown_lines(text), nl=False, err=err)  # noqa: TID251


_MOST_FINDINGS: Final = 200


def print_findings(lines: Iterable[str], *, err: bool = False) -> None:
    """Print what is wrong with a file, a line each; of thousands the first, and their number."""
    left = 0
    for number, line in enumerate(lines):
        if number < _MOST_FINDINGS:
            echo(bounded(line), err=err)
        else:
            left += 1
    if left:
        echo(f"… and {left:,} more", err=err)


def echo_over(line: str) -> None:
    """Print a line in the place of the last one, without ending it."""
    click.echo(_CLEAR_LINE + shown(line), nl=False)  # noqa: TID251


def print_text(text: str, *, indent: str = "", first: str | None = None, **style: Any) -> None:
    """Print a paragraph, wrapped to the terminal if there is one."""
    text = shown(text)
    lines = [text]
    if sys.stdout.isatty():
        room = max(get_terminal_size().columns - len(indent), 40)
        lines = textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False) or [""]
    for number, line in enumerate(lines):
        head = (indent if first is None else first) if number == 0 else indent
        click.echo(shown(head) + (click.style(line, **style) if style else line))  # noqa: TID251


def print_heading(text: str) -> None:
    """Print the title of a part."""
    echo()
    echo(text, bold=True)


def sentence(text: str) -> str:
    """Add a capital letter to a text, unless it starts with a name, and a full stop."""
    first = text.partition(" ")[0]
    head = text[:1] if "/" in first else text[:1].upper()
    end = "" if text.endswith("?") else "."
    return f"{head}{text[1:].rstrip('.')}{end}" if text else ""


if TYPE_CHECKING:
    from pumice.api.decisions import Decisions, PodGroupState


class Row(NamedTuple):
    """One line of a summary."""

    cells: Sequence[str]
    is_bad: bool


def print_summary(rows: Iterable[Row]) -> None:
    """Print one line for each folder: passed, failed, errors, seconds."""
    table = _Table("folder", passed="right", failed="right", errors="right", time="right")
    for row in rows:
        table.add(*row.cells, style="red" if row.is_bad else "")
    table.print()


def print_decisions(cycles: "Sequence[Decisions]") -> None:
    """Print what each cycle decided: pod groups first, then where pods go."""
    for number, decisions in enumerate(cycles, start=1):
        if len(cycles) > 1:
            echo(f"cycle {number}")
        groups = _Table("pod group", phase="left", why="left")
        for name, state in sorted(decisions.pod_groups.items()):
            groups.add(name, state.phase, _why(name, state, decisions))
        groups.print()
        placements = _Table("pod", decision="left", node="left")
        for pod, node in decisions.binds.items():
            placements.add(pod, "bound", node)
        for pod in decisions.evictions:
            placements.add(pod, "evicted", "")
        for pod, node in decisions.pipelined.items():
            placements.add(pod, "pipelined", node)
        if placements:
            placements.print()
        else:
            echo("nothing bound, evicted or pipelined")


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a plain table of texts."""
    table = _Table(columns[0], **dict.fromkeys(columns[1:], "left"))
    for row in rows:
        table.add(*row)
    table.print()


def start_text(
    reservation: Mapping[str, Any] | None, forecast: Mapping[str, Any] | None = None
) -> str:
    """Write when a job starts, in short: what it is promised before what is foreseen."""
    if reservation:
        return f"in {span(reservation['in_s'])}, reserved"
    if forecast is None:
        return ""
    wait = forecast["in_s"]
    if wait is None:
        return str(forecast["state"])
    return f"in {span(wait)}" if wait else "now"


def _why(name: str, state: "PodGroupState", decisions: "Decisions") -> str:
    """Return the short reason for a phase: the explanation, else the last condition."""
    if name in decisions.explanations:
        return decisions.explanations[name]
    return state.conditions[-1].reason if state.conditions else ""


class _Table:
    """Texts in columns; the first is on the left, others where they are asked to be."""

    def __init__(self, first: str, **columns: str) -> None:
        self._sides = ("left", *columns.values())
        self._rows = [_Line(tuple(map(shown, (first, *columns))), "bold")]

    def __len__(self) -> int:
        return len(self._rows) - 1

    def add(self, *cells: str, style: str = "") -> None:
        """Add a row."""
        self._rows.append(_Line(tuple(map(shown, cells)), style))

    def print(self) -> None:
        """Print it, folded if it is wider than the terminal."""
        columns = zip(*(line.cells for line in self._rows), strict=True)
        widths = [max(map(_width, column)) for column in columns]
        total = sum(widths) + len(_GAP) * (len(widths) - 1)
        room = get_terminal_size().columns
        if sys.stdout.isatty() and total > room:
            longest = widths.index(max(widths))
            if room - (total - widths[longest]) < _LEAST_PROSE < widths[longest] and longest:
                self._print_stacked(longest, widths, room)
            else:
                self._print_folded()
            return
        for number, line in enumerate(self._rows):
            cells = zip(line.cells, widths, self._sides, strict=True)
            echo(_GAP.join(_padded(*cell) for cell in cells).rstrip(), **_STYLES[line.style])
            if number == 0:
                echo("─" * total)

    def _print_folded(self) -> None:
        from rich import box  # loading it takes longer than most commands
        from rich.console import Console
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for name, side in zip(self._rows[0].cells, self._sides, strict=True):
            table.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
        for line in self._rows[1:]:
            table.add_row(*line.cells, style=line.style)
        Console(highlight=False, markup=False, emoji=False).print(table)

    def _print_stacked(self, longest: int, widths: list[int], room: int) -> None:
        """Print the longest cell of a row below the others, which are short."""
        short = [column for column in range(len(widths)) if column != longest]
        fits = sum(widths[column] for column in short) + len(_GAP) * (len(short) - 1) <= room
        for number, line in enumerate(self._rows):
            cells = [
                _padded(line.cells[column], widths[column] if fits else 0, self._sides[column])
                for column in short
            ]
            echo(_GAP.join(cells).rstrip(), **_STYLES[line.style])
            if number == 0:
                echo("─" * room)
            else:
                print_text(line.cells[longest], indent=_GAP)


class _Line(NamedTuple):
    cells: tuple[str, ...]
    style: str


_GAP: Final = " " * 3
_LEAST_PROSE: Final = 30
"""Columns of a terminal that a long text needs beside others."""
_STYLES: Final[dict[str, dict[str, Any]]] = {"": {}, "bold": {"bold": True}, "red": {"fg": "red"}}


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, width: int, side: str) -> str:
    space = " " * (width - _width(text))
    return space + text if side == "right" else text + space


def print_data(data: Any, output: str) -> None:
    """Print plain data for programs; a number that JSON cannot express is null."""
    text = _json(data)
    if output == "json":
        echo_lines(f"{shown_json(_laid_out(text))}\n")
    else:
        echo_lines(_yaml(json.loads(text)))  # tuples become lists


def _yaml(plain: Any) -> str:
    """Write YAML; a text with marks in double quotes, where the terminal's escapes are YAML's."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: Any, value: str) -> yaml.ScalarNode:
        style = '"' if has_marks(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)

    Dumper.add_representer(str, text)
    written = yaml.dump(plain, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
    return str(written)


def _json(data: Any) -> str:
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:  # infinite, or not a number; a manifest may hold .inf
        plain = json.loads(json.dumps(data, ensure_ascii=False), parse_constant=lambda _: None)
        return json.dumps(plain, ensure_ascii=False)


def _laid_out(text: str) -> str:
    """Write JSON by lines, as ``json.dumps`` does; laying it out afterwards is much faster."""
    import msgspec

    try:
        return msgspec.json.format(text, indent=1)
    except (msgspec.DecodeError, UnicodeEncodeError):  # half a character
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
