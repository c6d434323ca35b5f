"""How answers are printed: tables for people, JSON or YAML for programs, whatever they hold.

Printing is separate from fetching: nothing here reads files or runs a scheduler.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api.shown_text import has_marks, shown, shown_json
from pumice.api.wording import span
from pumice.cli.terminal import echo_lines

if TYPE_CHECKING:
    from pumice.api.decisions import Decisions, PodGroupState

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


def print_decisions(cycles: "Sequence[Decisions]") -> None:
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


def _table(first: str, **columns: Any) -> Any:
    from rich import box  # loading it takes longer than most commands
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(shown(first), overflow="fold")
    for name, justify in columns.items():
        table.add_column(shown(name), justify=justify, overflow="fold")
    return table


def _add(table: Any, *cells: str, style: str = "") -> None:
    table.add_row(*map(shown, cells), style=style)


def _print(what: Any) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        console.print(what)
        return
    console.width = _PIPE_WIDTH
    with console.capture() as caught:
        console.print(what)
    echo_lines("".join(f"{line.rstrip()}\n" for line in caught.get().splitlines()))


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
