"""The command lines of `pumice trace`."""

from pathlib import Path
from typing import Any

import click

from pumice.cli.command_lines.cluster_options import output_option
from pumice.cli.command_lines.simulation_options import FILE, seed_option
from pumice.sim.options import FORMATS, WRITTEN

_SOURCE = click.argument("source", metavar="FROM", type=FILE)
_TARGET = click.argument(
    "target", metavar="TO", type=click.Path(dir_okay=False, writable=True, path_type=Path)
)
_FORMAT = click.option(
    "--format",
    "trace_format",
    type=click.Choice(FORMATS),
    help="The kind of trace.  [default: recognised by its content]",
)
_AS = click.option(
    "--as",
    "form",
    type=click.Choice(WRITTEN),
    help="What to write: a table of jobs, SWF, manifests.  [default: by the end of TO's name]",
)


def _seconds(_ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Read seconds, days such as 2d, or a duration such as 36h."""
    from pumice.api.duration import parse_duration
    from pumice.errors import InputError

    if text is None:
        return None
    try:
        return 86400 * float(text[:-1]) if text.endswith("d") else float(text)
    except ValueError:
        pass
    try:
        return parse_duration(text)
    except InputError:
        wanted = 'wanted a duration such as "90s", "36h" or "1h30m", days such as "2d", or seconds'
        raise click.BadParameter(f"{wanted}, found {text!r}", param=param) from None


@click.group()
def trace() -> None:
    """Describe, convert and sample traces of workloads."""


@trace.command("describe")
@click.argument("source", metavar="FILE", type=FILE)
@_FORMAT
@seed_option
@output_option
def describe(**given: Any) -> None:
    """Print what is in a trace.

    Jobs, widths, run times, arrivals, users and queues.
    """
    from pumice.cli.trace import describe as perform

    perform(**given)


@trace.command("convert")
@_SOURCE
@_TARGET
@_FORMAT
@_AS
@seed_option
def convert(**given: Any) -> None:
    """Write a trace in another form.

    TO ends in .csv or .parquet for a table of jobs, in .swf for the Standard Workload Format, in
    .yaml or .json for manifests; .gz behind it packs the file.
    """
    from pumice.cli.trace import convert as perform

    perform(**given)


@trace.command("sample")
@_SOURCE
@_TARGET
@click.option("--jobs", metavar="N", type=click.IntRange(min=1), help="How many jobs to draw.")
@click.option("--from", "since", metavar="TIME", callback=_seconds, help="Only jobs from here on.")
@click.option("--until", metavar="TIME", callback=_seconds, help="Only jobs before.")
@_FORMAT
@_AS
@seed_option
def sample(**given: Any) -> None:
    """Write part of a trace.

    A window of time, some jobs of it, or both.

    Jobs are drawn so that queues, widths and run times are as frequent as before.  TIME counts from
    the first arrival: seconds, or with a unit, such as 36h or 2d.
    """
    from pumice.cli.trace import sample as perform

    perform(**given)
