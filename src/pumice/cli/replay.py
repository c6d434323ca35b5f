"""`pumice replay`: a recorded cluster decided again, to see that the answer can be trusted."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.api.wording import counted, value_of
from pumice.cli.options import output_option
from pumice.cli.printing import print_data, print_rows
from pumice.cli.terminal import echo, print_heading

if TYPE_CHECKING:
    from pumice.record.history import History
    from pumice.replay.exact import Difference, Fidelity


@click.command()
@click.argument(
    "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--from", "since", metavar="TIME", help="From when on: 03:10, -2h, RFC 3339.")
@click.option("--to", "until", metavar="TIME", help="Until when.")
@output_option
@click.pass_context
def replay(
    ctx: click.Context, *, folder: Path, since: str | None, until: str | None, output: str
) -> None:
    """Decide every recorded cycle of a Pumice scheduler again, and compare.

    The record must be one of 'serve scheduler --record' or 'up --record'.  Exits with 1 if a
    decision differs.
    """
    from pumice.record.history import History
    from pumice.replay.exact import replay_exactly

    history = History(folder)
    start, end = _time(history, since, "--from"), _time(history, until, "--to")
    found = replay_exactly(history, start, end)
    if output == "table":
        _print(found)
    else:
        print_data({**asdict(found), "exact": found.is_exact, "share": found.share}, output)
    for problem in history.problems:
        echo(f"note: {problem}", err=True)
    ctx.exit(0 if found.is_exact else 1)


def _time(known: History, text: str | None, option: str) -> float | None:
    if text is None:
        return None
    with value_of(option):
        return known.time(text)


def _print(found: Fidelity) -> None:
    cycles, same = counted(found.cycles, "cycle"), found.same
    echo(f"{cycles} decided again, {'all' if found.is_exact else same} as recorded")
    echo(f"binds      {found.same_binds} of {found.binds} the same")
    echo(f"evictions  {found.same_evictions} of {found.evictions} the same")
    if found.gaps:
        echo(f"{counted(found.gaps, 'gap')} in the record: the scheduler began again there")
    if found.differences:
        print_heading("The first cycles that differ")
        print_rows(
            ("time", "cycle", "what", "of", "then", "now"),
            [row for each in found.differences for row in _rows(each)],
        )


def _rows(each: Difference) -> list[tuple[str, str, str, str, str, str]]:
    parts = {"bind": each.binds, "eviction": each.evictions, "phase": each.phases}
    rows = [
        (each.at, str(each.cycle), what, key, then or "-", now or "-")
        for what, some in parts.items()
        for key, (then, now) in some.items()
    ]
    return rows or [(each.at, str(each.cycle), "other", "", "", "")]
