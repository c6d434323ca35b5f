"""`pumice replay`: a recorded cluster decided again, as it was or under another configuration."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.api.wording import counted, value_of
from pumice.cli.options import FILE, output_option
from pumice.cli.printing import print_data, print_rows
from pumice.cli.terminal import echo, print_heading

_Window = tuple[float | None, float | None]

if TYPE_CHECKING:
    from pumice.record.history import History
    from pumice.replay.compare import Comparison
    from pumice.replay.exact import Difference, Fidelity


@click.command()
@click.argument(
    "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--from", "since", metavar="TIME", help="From when on: 03:10, -2h, RFC 3339.")
@click.option("--to", "until", metavar="TIME", help="Until when.")
@click.option("--conf", metavar="FILE", type=FILE, help="Try this configuration on its jobs.")
@click.option(
    "--old-conf", metavar="FILE", type=FILE, help="The one to compare with.  [default: recorded]"
)
@output_option
@click.pass_context
def replay(
    ctx: click.Context,
    *,
    folder: Path,
    since: str | None,
    until: str | None,
    conf: Path | None,
    old_conf: Path | None,
    output: str,
) -> None:
    """Decide every recorded cycle of a Pumice scheduler again, and compare.

    With --conf, simulate the recorded jobs under the old configuration and the new one; how well
    the old one reproduces what happened comes first.  Exits with 1 if a decision differs, or if
    the answer cannot be trusted.
    """
    from pumice.record.history import History

    history = History(folder)
    window = _time(history, since, "--from"), _time(history, until, "--to")
    if conf is None:
        is_good = _exactly(history, window, output)
    else:
        is_good = _compared(history, window, conf, old_conf, output)
    for problem in history.problems:
        echo(f"note: {problem}", err=True)
    ctx.exit(0 if is_good else 1)


def _exactly(history: History, window: _Window, output: str) -> bool:
    from pumice.replay.exact import replay_exactly

    found = replay_exactly(history, *window)
    if output == "table":
        _print(found)
    else:
        print_data({**asdict(found), "exact": found.is_exact, "share": found.share}, output)
    return found.is_exact


def _compared(
    history: History, window: _Window, conf: Path, old_conf: Path | None, output: str
) -> bool:
    from pumice.replay.compare import compare
    from pumice.sim.inputs import read_configuration

    old = None if old_conf is None else read_configuration(old_conf)
    found = compare(history, read_configuration(conf), *window, old=old)
    trusted = found.fidelity.is_trusted
    if output == "table":
        _print_comparison(found)
    else:
        print_data({**asdict(found), "trusted": trusted}, output)
    return trusted


def _print_comparison(found: Comparison) -> None:
    fidelity = found.fidelity
    echo(
        f"old configuration, simulated: {fidelity.near} of {fidelity.jobs} of the jobs start about "
        f"when they did, {fidelity.mean_error_s:.1f} s off on average"
    )
    for each in fidelity.unknown:
        echo(f"not known: {each}")
    if not fidelity.is_trusted:
        echo("too few jobs start when they did: what follows cannot be trusted", fg="red")
    rows = [
        ("mean wait", "mean_wait", " s"),
        ("median wait", "p50_wait", " s"),
        ("90 % wait at most", "p90_wait", " s"),
        ("99 % wait at most", "p99_wait", " s"),
        ("jobs started", "started", ""),
        ("evictions", "evictions", ""),
        ("all done after", "end", " s"),
    ]
    print_heading("Old against new")
    print_rows(
        ("", "old", "new"),
        [(name, *(f"{side[key]:.6g}{unit}" for side in (found.old, found.new)))
         for name, key, unit in rows],
    )  # fmt: skip
    gap = found.wait_difference
    echo(
        f"a job waits {gap['mean']:+.1f} s under the new one "
        f"(95 %: {gap['low']:+.1f} to {gap['high']:+.1f} s); {found.earlier} start earlier, "
        f"{found.later} later, {found.same} at the same time"
    )
    for title, jobs in (("most earlier", found.winners), ("most later", found.losers)):
        if jobs:
            named = ", ".join(f"{job} {seconds:+.0f} s" for job, seconds in jobs.items())
            echo(f"{title}: {named}")


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
