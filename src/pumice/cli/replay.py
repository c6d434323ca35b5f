"""`pumice replay`: a recorded cluster decided again, as it was or under another configuration."""

from __future__ import annotations

from dataclasses import asdict
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pumice.api.wording import counted, fine_span, signed_span, value_of
from pumice.cli.options import FILE, RECORD, output_option
from pumice.cli.printing import echo, print_data, print_heading, print_rows

_Window = tuple[float | None, float | None]

if TYPE_CHECKING:
    from pumice.records.history import History
    from pumice.replay.compare import Comparison, GroupChange, Reproduced
    from pumice.replay.exact import Difference, Fidelity


@click.command()
@click.argument("folder", metavar="DIR", type=RECORD)
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
    from pumice.records.history import History

    history = History(folder)
    window = time_of(history, since, "--from"), time_of(history, until, "--to")
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
    from pumice.replay.compare import play
    from pumice.sim.inputs import read_configuration

    old = None if old_conf is None else read_configuration(old_conf)
    found = play(history, read_configuration(conf), *window, old=old).compared()
    if output == "table":
        print_comparison(found)
    else:
        print_data(found.to_dict(), output)
    return found.fidelity.is_trusted


_ROWS = (
    ("mean wait", "wait.mean"),
    ("median wait", "wait.p50"),
    ("90 % wait at most", "wait.p90"),
    ("99 % wait at most", "wait.p99"),
    ("mean bounded slowdown", "slowdown.mean"),
    ("evictions", "evictions"),
    ("jobs started", "started"),
    ("all done after", "makespan"),
)


def print_comparison(found: Comparison) -> None:
    """Print how far an answer can be trusted, and then the answer."""
    _print_fidelity(found.fidelity)
    used = [name for name in found.old if name.startswith("utilisation.")]
    rows = [*_ROWS, *((f"{name.partition('.')[2]} in use", name) for name in used)]
    print_heading("Old against new")
    print_rows(
        ("", "old", "new"),
        [(words, *(figure_text(name, side[name]) for side in (found.old, found.new)))
         for words, name in rows],
    )  # fmt: skip
    gap, slow = found.wait, found.slowdown
    echo(
        f"a job waits {signed_span(gap.mean)} under the new one (95 %: {signed_span(gap.low)} to "
        f"{signed_span(gap.high)}) and is slowed down by {slow.mean:+.3g} ({slow.low:+.3g} to "
        f"{slow.high:+.3g}); {found.earlier} start earlier, {found.later} later, "
        f"{found.same} at the same time"
    )
    if not found.is_clear:
        echo("the waits do not differ by more than chance and the error of the simulation")
    for title, groups in (("Queues", found.queues), ("Namespaces", found.namespaces)):
        if len(groups) > 1:
            print_heading(title)
            print_rows(("name", "jobs", "old wait", "new wait", "change", "95 %"),
                       [_group_row(each) for each in groups])  # fmt: skip
    for line in found.named():
        echo(line)


def _print_fidelity(found: Reproduced) -> None:
    echo(
        f"old configuration, simulated: {found.near} of {found.jobs} of the jobs start about "
        f"when they did, {found.mean_error_s:.1f} s off on average (95 % at most "
        f"{found.p95_error_s:.1f} s); the mean wait is known to within {found.bound_s:.1f} s"
    )
    echo(
        f"{found.same_nodes} of {found.pods} pods get the node that they had, "
        f"{found.like_nodes} that or an equal one; "
        f"{found.same_evictions} of {found.evictions} evictions happen again, of "
        f"{found.simulated_evictions} in all"
    )
    for each in found.unknown:
        echo(f"not known: {each}")
    if not found.is_trusted:
        echo("too few jobs start when they did: what follows cannot be trusted", fg="red")


def _group_row(each: GroupChange) -> tuple[str, ...]:
    change = each.change
    return (
        each.name,
        str(each.jobs),
        fine_span(each.old_wait_s),
        fine_span(each.new_wait_s),
        signed_span(change.mean),
        "" if change.n < 2 else f"{signed_span(change.low)} to {signed_span(change.high)}",
    )


def figure_text(name: str, value: float) -> str:
    """Write a figure of a simulation."""
    if isinf(value):
        return "some never start"
    if name.startswith("utilisation"):
        return f"{100 * value:.1f} %"
    return fine_span(value) if name.startswith(("wait", "makespan")) else f"{value:.6g}"


def time_of(known: History, text: str | None, option: str) -> float | None:
    """Read a moment of a record."""
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
