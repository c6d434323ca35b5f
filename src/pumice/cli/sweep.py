"""`pumice sweep`: many simulations, in processes here or on a Dask cluster, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.api.wording import counted
from pumice.cli.inputs import warn_of_conf
from pumice.cli.options import FILE, PluginSources, jobs_option, plugin_option
from pumice.cli.printing import echo, print_data, print_rows
from pumice.cli.sim_options import (
    Output,
    as_options,
    output_options,
    prepare_folder,
    simulation_options,
    stoppable,
)
from pumice.errors import InputError

if TYPE_CHECKING:
    from pumice.api.conf import SchedulerConf
    from pumice.api.meta import KubeObject
    from pumice.sim.sweep import GridPoint, SweepRow
    from pumice.sim.workload import Workload

_MOST_SEEDS = 100_000


_COLUMNS = (
    *("configuration", "trace", "seed", "finished", "makespan (s)", "mean wait (s)"),
    *("p50 (s)", "p90 (s)", "p99 (s)", "slowdown", "used", "evictions", "fairness"),
    *("wall (s)", "cpu (s)", "error"),
)
_SECONDS = ("makespan", "wait_mean", "wait_p50", "wait_p90", "wait_p99")
_LEFT_OUT = (
    "not all jobs finished: waits count only jobs that started, makespan and slowdown only those "
    "that finished; runs that finished other numbers of jobs are not compared"
)


def _seeds(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[int, ...]:
    """Read seeds as people write them: ``7``, ``1,2,5`` or ``0-9``."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _is_seed(first) or (dash and not _is_seed(last)):
            raise click.BadParameter(f"expected numbers such as 7, 1,2,5 or 0-9, got {text!r}")
        several = range(int(first), int(last if dash else first) + 1)
        if len(found) + len(several) > _MOST_SEEDS:
            raise click.BadParameter(f"expected at most {_MOST_SEEDS:,} seeds, got {text!r}")
        found += several
    if not found:
        raise click.BadParameter(f"expected at least one seed, got {text!r}")
    return tuple(found)


def _is_seed(text: str) -> bool:
    return text.isdecimal() and len(text) <= 15


@click.command()
@click.option(
    "--conf",
    "confs",
    metavar="FILE",
    multiple=True,
    type=FILE,
    help="A scheduler configuration; may be given several times.  [default: the built-in one]",
)
@click.option(
    "--trace",
    "traces",
    metavar="FILE",
    multiple=True,
    required=True,
    type=FILE,
    help="A workload, as for 'pumice sim'; may be given several times.",
)
@click.option(
    "--seeds",
    "--seed",
    default="0",
    show_default=True,
    callback=_seeds,
    help="Numbers and ranges, such as 7, 1,2,5 or 0-9.",
)
@jobs_option
@click.option(
    "--dask",
    "address",
    metavar="ADDRESS",
    help="Run on this Dask cluster, such as tcp://host:8786, instead of in processes here.",
)
@simulation_options
@output_options
@plugin_option
@click.pass_context
def sweep(
    ctx: click.Context,
    /,
    *,
    confs: tuple[Path, ...],
    traces: tuple[Path, ...],
    seeds: tuple[int, ...],
    nodes: Path | None,
    trace_format: str | None,
    jobs: int | None,
    address: str | None,
    output: Output,
    folder: Path | None,
    parquet: bool,
    plugins: PluginSources,
    **chosen: Any,
) -> None:
    """Simulate every configuration on every trace with every seed.

    Each configuration is compared with the first, on the same trace with the same seed.
    """
    from pumice.sim.sweep import grid, summary_files, write_summary

    if address and jobs:
        raise click.UsageError("--jobs counts processes here; a Dask cluster has its own workers")
    points = grid(
        [str(conf) for conf in confs],
        [str(trace) for trace in traces],
        seeds,
        nodes=str(nodes) if nodes else "",
        trace_format=trace_format or "",
        options=as_options(chosen),
        folder=str(Path.cwd()) if address else "",
    )
    folder = folder or output.folder
    with stoppable("the unfinished runs are lost"):
        for source, conf in _readable(confs):
            warn_of_conf(conf, source, plugins)
        if folder is not None:
            prepare_folder(folder, summary_files(parquet=parquet), parquet=parquet)
        rows = _simulated(points, plugins, jobs, address)
        written: Sequence[Path] = ()
        if folder is not None:
            written = write_summary(rows, folder, parquet=parquet)
    _print(rows, output.form)
    to_stderr = output.form != "table"
    for path in written:
        echo(f"written: {path}", err=to_stderr)
    failed = sum(bool(row.error) for row in rows)
    done = counted(len(rows) - failed, "run")
    echo(f"{done} done, {failed} failed", err=to_stderr)
    ctx.exit(1 if failed else 0)


def load_point(point: GridPoint) -> tuple[Workload, Iterable[KubeObject]]:
    """Read the jobs of a point and the cluster they run on."""
    from pumice.sim.inputs import load

    options = point.options
    setup = load(
        point.path(point.trace),
        nodes=point.path(point.nodes) if point.nodes else None,
        trace_format=point.format,
        seed=point.seed,
        limit=options.limit,
        speed=options.speed,
        late_pods=options.late_pods,
    )
    return setup.workload, setup.cluster


def _readable(confs: Iterable[Path]) -> Iterator[tuple[str, SchedulerConf]]:
    """Read the configurations that can be read; the others are errors of their rows."""
    from pumice.sim.inputs import read_configuration

    for path in confs:
        with suppress(InputError):
            yield str(path), read_configuration(path)


def _simulated(
    points: Sequence[GridPoint], plugins: PluginSources, jobs: int | None, address: str | None
) -> list[SweepRow]:
    """Run all points, and show the progress."""
    from pumice.cli.progress import progress
    from pumice.sim.sweep import Simulation, gather, sweep_dask, sweep_local

    simulate, done = Simulation(load_point, plugins), count(1)
    coming = (
        sweep_dask(points, simulate, address)
        if address
        else sweep_local(points, simulate, jobs=jobs)
    )
    # closing: so that Ctrl-C ends the workers
    with progress("simulating", len(points), "runs") as report, closing(coming):
        return gather(coming, lambda _: report(next(done)))


def _print(rows: Sequence[SweepRow], form: str) -> None:
    from pumice.sim.sweep import records

    plain = records(rows)
    if form == "table":
        print_rows(_COLUMNS, [_cells(record) for record in plain])
        if any(record["differences"] for record in plain):
            echo(f"in brackets: the difference from {plain[0]['configuration']}")
        if any(row.figures and row.figures.finished < row.figures.jobs for row in rows):
            echo(_LEFT_OUT)
    else:
        print_data(plain, form)


def _cells(record: dict[str, Any]) -> list[str]:
    used = record["utilisation"] or {}
    busiest = max((name for name in used if name != "pods"), key=used.__getitem__, default=None)
    return [
        record["configuration"],
        record["trace"],
        str(record["seed"]),
        "" if record["jobs"] is None else f"{record['finished']} of {record['jobs']}",
        *(_compared(record, name, 0) for name in _SECONDS),
        _compared(record, "bounded_slowdown", 2),
        f"{used[busiest]:.0%} {busiest}" if busiest else _nothing(record),
        _compared(record, "evictions", 0),
        _compared(record, "fairness", 3),
        *(_figure(record, name, 1) for name in ("wall_seconds", "cpu_seconds")),
        record["error"],
    ]


def _figure(record: dict[str, Any], name: str, digits: int) -> str:
    value = record[name]
    return _nothing(record) if value is None else f"{value:.{digits}f}"


def _nothing(record: dict[str, Any]) -> str:
    """Mark a figure that could not be measured; a run that failed has none at all."""
    from pumice.sim.measure import NOTHING

    return "" if record["error"] else NOTHING


def _compared(record: dict[str, Any], name: str, digits: int) -> str:
    """Write a figure and its difference from that of the first configuration, if it shows."""
    change = round((record["differences"] or {}).get(name) or 0.0, digits)
    return _figure(record, name, digits) + (f" ({change:+.{digits}f})" if change else "")
