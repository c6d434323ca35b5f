"""`pumice sweep`: many simulations, in processes here or on a Dask cluster, in one table."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from pumice.api.meta import KubeObject
from pumice.cli.plugin_option import PluginSources, plugin_option
from pumice.cli.tables import print_rows
from pumice.sim.inputs import load
from pumice.sim.sweep import (
    GridPoint,
    Rows,
    Simulation,
    SweepRow,
    gather,
    grid,
    records,
    sweep_dask,
    sweep_local,
    write_summary,
)
from pumice.sim.workload import Workload

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_COLUMNS = (
    *("configuration", "trace", "seed", "makespan", "wait p50", "p90", "p99", "used"),
    *("evictions", "fairness", "wall", "cpu", "error"),
)


def _seeds(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[int, ...]:
    """Read seeds as people write them: ``7``, ``1,2,5`` or ``0-9``."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise click.BadParameter(f"wanted numbers such as 7, 1,2,5 or 0-9, found {text!r}")
        found += range(int(first), int(last if dash else first) + 1)
    if not found:
        raise click.BadParameter(f"wanted at least one seed, found {text!r}")
    return tuple(found)


@click.command()
@click.option(
    "--conf",
    "confs",
    metavar="FILE",
    multiple=True,
    type=_FILE,
    help="A scheduler configuration; may be given several times.  [default: the built-in one]",
)
@click.option(
    "--trace",
    "traces",
    metavar="FILE",
    multiple=True,
    required=True,
    type=_FILE,
    help="A workload, as for 'pumice sim'; may be given several times.",
)
@click.option(
    "--seeds",
    default="0",
    show_default=True,
    callback=_seeds,
    help="Numbers and ranges, such as 7, 1,2,5 or 0-9.",
)
@click.option("--nodes", metavar="FILE", type=_FILE, help="The nodes, for all traces.")
@click.option(
    "--format",
    "trace_format",
    type=click.Choice(["manifests", "openb", "philly", "swf", "synthetic"]),
    help="The kind of the traces.  [default: recognised by their content]",
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N jobs.")
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of processes.  [default: number of CPUs]",
)
@click.option(
    "--dask",
    "address",
    metavar="ADDRESS",
    help="Run on this Dask cluster, such as tcp://host:8786, instead of in processes here.",
)
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write summary.csv and summary.json here.",
)
@plugin_option
@click.pass_context
def sweep(
    ctx: click.Context,
    *,
    confs: tuple[Path, ...],
    traces: tuple[Path, ...],
    seeds: tuple[int, ...],
    nodes: Path | None,
    trace_format: str | None,
    limit: int | None,
    jobs: int | None,
    address: str | None,
    output: Path | None,
    plugins: PluginSources,
) -> None:
    """Simulate every configuration on every trace with every seed."""
    if address and jobs:
        raise click.UsageError("--jobs counts processes here; a Dask cluster has its own workers")
    name = _full if address else str
    points = grid(
        [name(conf) for conf in confs],
        [name(trace) for trace in traces],
        seeds,
        nodes=name(nodes) if nodes else "",
        trace_format=trace_format or "",
        limit=limit,
    )
    simulate = Simulation(load_point, plugins)
    coming = (
        sweep_dask(points, simulate, address)
        if address
        else sweep_local(points, simulate, jobs=jobs)
    )
    rows = _with_progress(coming, len(points))
    _print_table(rows)
    if output is not None:
        for path in write_summary(rows, output):
            click.echo(f"written: {path}")
    failed = sum(bool(row.error) for row in rows)
    click.echo(f"{len(rows) - failed} runs done, {failed} failed")
    ctx.exit(1 if failed else 0)


def load_point(point: GridPoint) -> tuple[Workload, Iterable[KubeObject]]:
    """Read the jobs of a point and the cluster they run on."""
    setup = load(
        Path(point.trace),
        nodes=Path(point.nodes) if point.nodes else None,
        trace_format=point.format,
        seed=point.seed,
        limit=point.limit,
    )
    return setup.workload, setup.cluster


def _full(path: Path) -> str:
    """Return the whole name: the workers of a cluster stand in folders of their own."""
    return str(path.resolve())


def _with_progress(coming: Rows, total: int) -> list[SweepRow]:
    """Gather the rows under a bar on the error output, if that is a terminal."""
    console = Console(stderr=True)
    shown = Progress(console=console, transient=True, disable=not console.is_terminal)
    with shown as progress, closing(coming):  # so that Ctrl-C ends the workers
        task = progress.add_task("simulating", total=total)
        return gather(coming, lambda _: progress.advance(task))


def _print_table(rows: Sequence[SweepRow]) -> None:
    print_rows(_COLUMNS, [_cells(record) for record in records(rows)])


def _cells(record: dict[str, Any]) -> list[str]:
    used = record["utilisation"] or {}
    busiest = max((name for name in used if name != "pods"), key=used.__getitem__, default=None)
    return [
        record["configuration"],
        record["trace"],
        str(record["seed"]),
        *(_number(record[name], 0) for name in ("makespan", "wait_p50", "wait_p90", "wait_p99")),
        f"{used[busiest]:.0%} {busiest}" if busiest else "",
        _number(record["evictions"], 0),
        _number(record["fairness"], 3),
        *(_number(record[name], 1, " s") for name in ("wall_seconds", "cpu_seconds")),
        record["error"],
    ]


def _number(value: float | None, digits: int, unit: str = "") -> str:
    return "" if value is None else f"{value:.{digits}f}{unit}"
