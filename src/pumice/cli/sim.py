"""`pumice sim`: run a workload to its end under one or more configurations, and report."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.text_files import read_text
from pumice.cli.plugin_option import PluginSources, plugin_option
from pumice.cli.tables import print_rows
from pumice.sim import output as files
from pumice.sim.inputs import SimulationInput, load, simulate
from pumice.sim.measure import Measures
from pumice.sim.report.page import render
from pumice.sim.report.tables import duration, summary_rows

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--trace",
    metavar="FILE",
    required=True,
    type=_FILE,
    help="The workload: openb, Philly or SWF trace, manifests, or a synthetic description.",
)
@click.option(
    "--nodes",
    metavar="FILE",
    type=_FILE,
    help="The cluster: manifests, or openb nodes.  [default: sized for the trace]",
)
@click.option(
    "--conf",
    "confs",
    metavar="FILE",
    multiple=True,
    type=_FILE,
    help="A scheduler configuration; give several to compare them.  [default: the built-in one]",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where report.html, summary.json and the tables go.",
)
@click.option(
    "--format",
    "trace_format",
    type=click.Choice(["manifests", "openb", "philly", "swf", "synthetic"]),
    help="The kind of trace.  [default: recognised by its content]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="For all that is random.")
@click.option(
    "--period",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Simulated seconds between two cycles, at least.",
)
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N jobs.")
@click.option(
    "--speed",
    metavar="TIMES",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Let jobs come so many times as fast as in the trace.",
)
@click.option(
    "--late-pods",
    is_flag=True,
    help="Make pods only once their job is admitted, as for Volcano's own jobs.",
)
@click.option(
    "--evicted",
    type=click.Choice(["requeue", "restart", "lose"]),
    default="requeue",
    show_default=True,
    help="An evicted pod waits again, its broken gang starts anew, or it is gone.",
)
@click.option("--parquet", is_flag=True, help="Write the tables as Parquet; needs pyarrow.")
@plugin_option
def sim(
    *,
    trace: Path,
    nodes: Path | None,
    confs: tuple[Path, ...],
    output: Path,
    trace_format: str | None,
    seed: int,
    period: float,
    limit: int | None,
    speed: float,
    late_pods: bool,
    evicted: Any,
    parquet: bool,
    plugins: PluginSources,
) -> None:
    """Run a workload to its end on a virtual clock, and write a report."""
    named = _configurations(confs)
    setup = load(
        trace,
        nodes=nodes,
        trace_format=trace_format or "",
        seed=seed,
        limit=limit,
        speed=speed,
        late_pods=late_pods,
    )
    run = partial(simulate, setup, seed=seed, period=period, evicted=evicted, plugins=plugins)
    outcomes = []
    for name, conf in named.items():
        with _progress(name, len(setup.workload.jobs)) as progress:
            outcomes.append(run(conf=conf, progress=progress))
    options = {
        "seed": seed,
        "period": period,
        "evicted": evicted,
        "limit": limit,
        "speed": speed,
        "late_pods": late_pods,
    }
    end = max(outcome.end for outcome in outcomes)
    measured = [Measures(name, outcome, end) for name, outcome in zip(named, outcomes, strict=True)]
    _write(output, setup, measured, options, ".parquet" if parquet else ".csv")
    failures = [
        (name, line) for name, out in zip(named, outcomes, strict=True) for line in out.failures
    ]
    for name, line in failures:
        click.echo(f"error: {name}: {line}", err=True)
    if failures:
        raise SystemExit(1)


def _configurations(files: Sequence[Path]) -> dict[str, SchedulerConf]:
    """Read configurations; each is named after its file, numbered if two have one name."""
    if not files:
        return {"built-in": parse_conf(DEFAULT_CONF)}
    named: dict[str, SchedulerConf] = {}
    for file in files:
        name, n = file.stem, 2
        while name in named:
            name, n = f"{file.stem}-{n}", n + 1
        named[name] = parse_conf(read_text(file), source=str(file))
    return named


def _write(
    folder: Path,
    setup: SimulationInput,
    measured: Sequence[Measures],
    options: dict[str, Any],
    suffix: str,
) -> None:
    """Write all files and print the summary."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = []
    for each in measured:
        tail = "" if len(measured) == 1 else f"-{each.name}"
        for stem, columns, rows in (
            ("decisions", files.DECISION_COLUMNS, files.decisions(each)),
            ("jobs", files.JOB_COLUMNS, files.jobs(each)),
        ):
            path = files.write_table(folder / f"{stem}{tail}{suffix}", columns, rows)
            tables.append(path.name)
    summary = files.summary(setup, measured, options)
    timings = files.timings(measured)
    files.write_json(folder / "summary.json", summary)
    files.write_json(folder / "timing.json", timings)
    page = folder / "report.html"
    page.write_text(render(summary, measured, ["summary.json", *tables]), encoding="utf-8")
    _print_summary(summary, timings)
    click.echo(f"wrote {page}")


def _print_summary(summary: dict[str, Any], timings: dict[str, dict[str, float]]) -> None:
    """Print one row a figure, one column a configuration."""
    names = [each["configuration"] for each in summary["configurations"]]
    rows = [
        *summary_rows(summary),
        ["simulated in", *(duration(timings[name]["seconds"]) for name in names)],
        ["events a second", *(f"{timings[name]['events_per_second']:,.0f}" for name in names)],
        [
            "cost of a decision",
            *(f"{timings[name]['milliseconds_per_decision']:.3g} ms" for name in names),
        ],
    ]
    print_rows(("", *names), rows)
    for each in summary["configurations"]:
        for job in each["unfinished"][:5]:
            click.echo(f"{each['configuration']}: {job['job']} never ran: {job['reason']}")
        more = len(each["unfinished"]) - 5
        if more > 0:
            click.echo(f"{each['configuration']}: … and {more} more")


@contextmanager
def _progress(name: str, jobs: int) -> Iterator[Callable[[int], None]]:
    """Show how many jobs are over, on a terminal only."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("jobs"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(name, total=jobs)
        yield lambda over: bar.update(task, completed=over)
