"""`pumice trace`: what is in a trace, a trace in another form, part of a trace."""

import math
from pathlib import Path
from typing import Any

import click

from pumice.api.wording import counted
from pumice.cli.printing import print_data
from pumice.cli.tables import print_rows
from pumice.cli.terminal import echo, print_text
from pumice.sim.inputs import SimulationInput, prepare, read_workload
from pumice.sim.measure import duration
from pumice.sim.traces.parts import IN_GIB, summarise, window
from pumice.sim.traces.parts import sample as draw
from pumice.sim.traces.trace_files import form_of, write_trace
from pumice.sim.workload import Workload

_SHOWN = 8
"""Queues that are named before the rest is only counted."""
_HOUR = 3600.0


def describe(*, source: Path, trace_format: str | None, seed: int, output: str) -> None:
    """Print what is in a trace."""
    found = summarise(_with_nodes(_read(source, trace_format, seed)))
    if output != "table":
        print_data(found, output)
        return
    print_rows(("", found["trace"]), _lines(found))
    for note in found["notes"]:
        print_text(f"note: {note}")


def _read(source: Path, trace_format: str | None, seed: int) -> Workload:
    return read_workload(source, trace_format=trace_format or "", seed=seed)


def _with_nodes(workload: Workload) -> SimulationInput:
    """Add the nodes that a simulation would make, if the trace tells what they are like."""
    if workload.node_hint is None:
        return SimulationInput(workload, workload.objects, workload.notes)
    return prepare(workload)


def convert(
    *, source: Path, target: Path, trace_format: str | None, form: str | None, seed: int
) -> None:
    """Write a trace in another form."""
    form_of(target, form or "")
    _write(_read(source, trace_format, seed), target, form)


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
    """Write part of a trace."""
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


def _write(workload: Workload, target: Path, form: str | None) -> None:
    for loss in write_trace(workload, target, form or ""):
        echo(f"warning: not written: {loss}", err=True)
    echo(f"wrote {target}: {counted(len(workload.jobs), 'job')}")


def _lines(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Put figures in words, one line each."""
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
