"""`pumice canary`: a new configuration judged on a recorded past, for CI and people."""

from __future__ import annotations

from pathlib import Path

import click

from pumice.api.wording import value_of
from pumice.cli.options import FILE, RECORD, output_option
from pumice.cli.printing import echo, print_data, print_heading, print_rows
from pumice.cli.replay import print_comparison, time_of


@click.command()
@click.option(
    "-f",
    "folder",
    metavar="DIR",
    required=True,
    type=RECORD,
    help="The record.",
)
@click.option("--conf", metavar="FILE", type=FILE, required=True, help="The new configuration.")
@click.option(
    "--old-conf", metavar="FILE", type=FILE, help="The one to compare with.  [default: recorded]"
)
@click.option(
    "--since", metavar="AGO", help="The last so long of it, such as 7d or 12h, or from a time on."
)
@click.option("--to", "until", metavar="TIME", help="Until when.")
@click.option(
    "--require",
    "required",
    metavar="CONDITION",
    multiple=True,
    help="Such as 'wait.p99 <= 1.05 * old', 'evictions <= 10', 'wait.p95@research < 1h'.",
)
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Also as JUnit XML.")
@click.option(
    "--report", metavar="FILE", type=click.Path(path_type=Path), help="Also as one HTML page."
)
@output_option
@click.pass_context
def canary(
    ctx: click.Context,
    *,
    folder: Path,
    conf: Path,
    old_conf: Path | None,
    since: str | None,
    until: str | None,
    required: tuple[str, ...],
    junit: Path | None,
    report: Path | None,
    output: str,
) -> None:
    """Simulate a recorded past under the old configuration and a new one, and judge the new one.

    Exits with 1 if a condition is not met, or if the simulation reproduces too little of what
    happened for an answer.
    """
    from pumice.records.history import History
    from pumice.replay.canary import judge, write_page, write_results
    from pumice.sim.inputs import read_configuration

    history = History(folder)
    window = time_of(history, _ago(since), "--since"), time_of(history, until, "--to")
    old = None if old_conf is None else read_configuration(old_conf)
    with value_of("--require"):
        found = judge(history, read_configuration(conf), required, *window, old=old)
        verdicts = found.verdicts
    if output == "table":
        print_comparison(found.comparison)
        print_heading("Conditions")
        print_rows(
            ("condition", "met", ""),
            [(each.condition, "yes" if each.is_met else "NO", each.figures) for each in verdicts],
        )
    else:
        print_data(found.to_dict(), output)
    if junit is not None:
        write_results(found, junit, conf)
    if report is not None:
        write_page(found, report, conf.name)
    for problem in history.problems:
        echo(f"note: {problem}", err=True)
    ctx.exit(0 if found.is_good else 1)


def _ago(text: str | None) -> str | None:
    """Return a duration as a time counted from the end; days, too."""
    if text is None or ":" in text or text.startswith("-"):
        return text
    days = text.removesuffix("d")
    return f"-{24 * int(days)}h" if days != text and days.isdecimal() else f"-{text}"
