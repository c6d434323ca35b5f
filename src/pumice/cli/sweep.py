"""`pumice sweep`: many simulations, in processes here or on a Dask cluster, in one table."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import click

from pumice.api.conf import SchedulerConf
from pumice.api.meta import KubeObject
from pumice.api.wording import counted
from pumice.cli.command_lines.plugin_option import PluginSources
from pumice.cli.command_lines.simulation_options import Output
from pumice.cli.conf_problems import warn_of_conf
from pumice.cli.printing import print_data
from pumice.cli.progress import progress
from pumice.cli.sim_options import as_options, prepare_folder, stoppable
from pumice.cli.tables import print_rows
from pumice.cli.terminal import echo
from pumice.errors import InputError
from pumice.sim.inputs import load, read_configuration
from pumice.sim.measure import NOTHING
from pumice.sim.sweep import (
    GridPoint,
    Rows,
    Simulation,
    SweepRow,
    gather,
    grid,
    records,
    summary_files,
    sweep_dask,
    sweep_local,
    write_summary,
)
from pumice.sim.workload import Workload

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
    """Simulate a grid and put all runs into one table."""
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
        simulate = Simulation(load_point, plugins)
        coming = (
            sweep_dask(points, simulate, address)
            if address
            else sweep_local(points, simulate, jobs=jobs)
        )
        rows = _with_progress(coming, len(points))
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
    for path in confs:
        with suppress(InputError):
            yield str(path), read_configuration(path)


def _with_progress(coming: Rows, total: int) -> list[SweepRow]:
    """Gather the rows, and show the progress."""
    done = count(1)
    with progress("simulating", total, "runs") as report, closing(coming):  # Ctrl-C ends workers
        return gather(coming, lambda _: report(next(done)))


def _print(rows: Sequence[SweepRow], form: str) -> None:
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
    return "" if record["error"] else NOTHING


def _compared(record: dict[str, Any], name: str, digits: int) -> str:
    """Write a figure and its difference from that of the first configuration, if it shows."""
    change = round((record["differences"] or {}).get(name) or 0.0, digits)
    return _figure(record, name, digits) + (f" ({change:+.{digits}f})" if change else "")
