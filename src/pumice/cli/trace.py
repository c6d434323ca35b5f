"""`pumice trace`: what is in a trace, a trace in another form, part of a trace."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.api.wording import counted
from pumice.cli.options import FILE, output_option
from pumice.cli.printing import echo, print_data, print_rows, print_text
from pumice.cli.sim_options import format_option, seed_option
from pumice.sim.options import WRITTEN

if TYPE_CHECKING:
    from pumice.sim.inputs import SimulationInput
    from pumice.sim.workload import Workload

_SOURCE = click.argument("source", metavar="FROM", type=FILE)
_TARGET = click.argument(
    "target", metavar="TO", type=click.Path(dir_okay=False, writable=True, path_type=Path)
)
_AS = click.option(
    "--as",
    "form",
    type=click.Choice(WRITTEN),
    help="What to write: a table of jobs, SWF, manifests.  [default: by the end of TO's name]",
)


_SHOWN = 8
"""Queues that are named before the rest is only counted."""
_HOUR = 3600.0


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
        wanted = (
            'expected a duration such as "90s", "36h" or "1h30m", days such as "2d", or seconds'
        )
        raise click.BadParameter(f"{wanted}, got {text!r}", param=param) from None


@click.group()
def trace() -> None:
    """Describe, convert and sample traces of workloads."""


@trace.command("describe")
@click.argument("source", metavar="FILE", type=FILE)
@format_option
@seed_option
@output_option
def describe(*, source: Path, trace_format: str | None, seed: int, output: str) -> None:
    """Print what is in a trace.

    Jobs, widths, run times, arrivals, users and queues.
    """
    from pumice.sim.traces.parts import summarise

    found = summarise(_with_nodes(_read(source, trace_format, seed)))
    if output != "table":
        print_data(found, output)
        return
    print_rows(("", found["trace"]), _lines(found))
    for note in found["notes"]:
        print_text(f"note: {note}")


@trace.command("convert")
@_SOURCE
@_TARGET
@format_option
@_AS
@seed_option
def convert(
    *, source: Path, target: Path, trace_format: str | None, form: str | None, seed: int
) -> None:
    """Write a trace in another form.

    TO ends in .csv or .parquet for a table of jobs, in .swf for the Standard Workload Format, in
    .yaml or .json for manifests; .gz behind it packs the file.
    """
    from pumice.sim.traces.trace_files import form_of

    form_of(target, form or "")
    _write(_read(source, trace_format, seed), target, form)


@trace.command("sample")
@_SOURCE
@_TARGET
@click.option("--jobs", metavar="N", type=click.IntRange(min=1), help="How many jobs to draw.")
@click.option("--from", "since", metavar="TIME", callback=_seconds, help="Only jobs from here on.")
@click.option("--until", metavar="TIME", callback=_seconds, help="Only jobs before.")
@format_option
@_AS
@seed_option
def sample(
    *,
    source: Path,
    target: Path,
    jobs: int | None,
    since: float | None,
    until: float | None,
    trace_format: str | None,
    form: str | None,
    seed: int,
) -> None:
    """Write part of a trace.

    A window of time, some jobs of it, or both.

    Jobs are drawn so that queues, widths and run times are as frequent as before.  TIME counts from
    the first arrival: seconds, or with a unit, such as 36h or 2d.
    """
    from pumice.sim.traces.parts import sample as draw
    from pumice.sim.traces.parts import window
    from pumice.sim.traces.trace_files import form_of

    if jobs is None and since is None and until is None:
        raise click.UsageError("nothing is chosen; give --jobs, --from or --until")
    form_of(target, form or "")
    workload = _read(source, trace_format, seed)
    if since is not None or until is not None:
        workload = window(workload, since or 0.0, math.inf if until is None else until)
    before = len(workload.jobs)
    if jobs is not None:
        workload = draw(workload, jobs, seed)
    _write(workload, target, form)
    if jobs is not None and jobs < before:
        times = before / jobs
        print_text(
            f"one job in {times:.3g} is left, in the same time: "
            f"sim --speed {times:.6g} makes up for it"
        )


def _read(source: Path, trace_format: str | None, seed: int) -> Workload:
    from pumice.sim.inputs import read_workload

    return read_workload(source, trace_format=trace_format or "", seed=seed)


def _with_nodes(workload: Workload) -> SimulationInput:
    """Add the nodes that a simulation would make, if the trace tells what they are like."""
    from pumice.sim.inputs import SimulationInput, prepare

    if workload.node_hint is None:
        return SimulationInput(workload, workload.objects, workload.notes)
    return prepare(workload)


def _write(workload: Workload, target: Path, form: str | None) -> None:
    from pumice.sim.traces.trace_files import write_trace

    for loss in write_trace(workload, target, form or ""):
        echo(f"warning: not written: {loss}", err=True)
    echo(f"wrote {target}: {counted(len(workload.jobs), 'job')}")


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Put figures in words, one line each."""
    from pumice.sim.measure import duration
    from pumice.sim.traces.parts import IN_GIB

    arrivals, walltime = found["arrivals"], found["walltime"]
    queues = list(found["queues"].items())
    named = ", ".join(f"{name} {count:,}" for name, count in queues[:_SHOWN])
    more = f", … and {len(queues) - _SHOWN} more" if len(queues) > _SHOWN else ""
    is_long = found["span_seconds"] >= _HOUR  # in less, a full hour says nothing
    most = f", at most {arrivals['busiest_hour']:,}" if is_long else ""
    stated = "not stated"
    if walltime["stated"]:
        stated = f"stated by {counted(walltime['stated'], 'job')}"
        stated += f"; in the median {100 * walltime['used_median']:.3g} % of it is used"
    return [
        ("format", found["format"]),
        ("jobs", f"{found['jobs']:,}"),
        ("pods", f"{found['pods']:,}"),
        ("users", f"{found['users']:,}" if found["users"] else "not stated"),
        ("queues", f"{named}{more}"),
        ("first job", found["start"] or "time not stated"),
        ("jobs arrive for", duration(found["span_seconds"])),
        ("jobs an hour", f"{arrivals['per_hour']:,.3g}{most}"),
        (
            "between two jobs",
            f"{duration(arrivals['gap_seconds'])}, variation {arrivals['gap_variation']:.3g}",
        ),
        ("pods of a job", _spread(found["pods_per_job"], "{:,.3g}".format)),
        ("run time", _spread(found["run_seconds"], duration)),
        ("requested time", stated),
        *(
            (f"{name} {'GiB ' * (name in IN_GIB)}hours", f"{hours:,.{_places(hours)}f}")
            for name, hours in found["work_hours"].items()
        ),
    ]


def _places(number: float) -> int:
    """Return how many decimal places make four digits of a number, where that takes any."""
    return max(3 - int(math.log10(number)), 0) if number > 1 else 3


def _spread(figures: dict[str, float], write: Any) -> str:
    return ", ".join(f"{name} {write(value)}" for name, value in figures.items())
