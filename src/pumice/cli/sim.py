"""`pumice sim`: run a workload to its end under one or more configurations, and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.cli.inputs import warn_of_conf
from pumice.cli.options import FILE, PluginSources, plugin_option
from pumice.cli.printing import echo, print_data, print_rows
from pumice.cli.sim_options import (
    Output,
    as_options,
    output_options,
    prepare_folder,
    seed_option,
    simulation_options,
    stoppable,
)
from pumice.sim.options import SimulationOptions

if TYPE_CHECKING:
    from pumice.api.conf import SchedulerConf
    from pumice.sim.inputs import SimulationInput
    from pumice.sim.job_run import Outcome
    from pumice.sim.measure import Measures, Summary


BUILT_IN = "built-in"
Named = dict[str, "tuple[Path | None, SchedulerConf]"]
"""Configurations and their files, by their names."""


@click.command()
@click.option(
    "--trace",
    metavar="FILE",
    required=True,
    type=FILE,
    help="The workload: a trace, a table of jobs, manifests or a synthetic description.",
)
@click.option(
    "--conf",
    "confs",
    metavar="FILE",
    multiple=True,
    type=FILE,
    help="A scheduler configuration; give several to compare them.  [default: the built-in one]",
)
@seed_option
@simulation_options
@output_options
@plugin_option
def sim(
    *,
    trace: Path,
    nodes: Path | None,
    confs: tuple[Path, ...],
    output: Output,
    folder: Path | None,
    trace_format: str | None,
    seed: int,
    parquet: bool,
    plugins: PluginSources,
    **chosen: Any,
) -> None:
    """Run a workload to its end on a virtual clock, and write a report.

    Several configurations are compared with the first.
    """
    from pumice.sim import output as files
    from pumice.sim.inputs import load
    from pumice.sim.output import REPORT, ResultFiles

    options, folder = as_options(chosen), folder or output.folder
    with stoppable("the simulation had not ended, nothing was written"):
        named = _configurations(confs)
        setup = load(
            trace,
            nodes=nodes,
            trace_format=trace_format or "",
            seed=seed,
            limit=options.limit,
            speed=options.speed,
            late_pods=options.late_pods,
        )
        for name, (file, conf) in named.items():
            warn_of_conf(conf, str(file or name), plugins)
        tables = ResultFiles(list(named), ".parquet" if parquet else ".csv")
        if folder is not None:
            prepare_folder(folder, tables.all_files(), parquet=parquet)
        outcomes = _run_all(setup, named, options, seed, plugins)
        measured = _measure(outcomes)
        summary = files.summary(setup, measured, files.options_data(setup, options, seed))
        if folder is not None:
            tables.write(folder, measured, summary)
        _print(summary, files.timings(measured), output.form)
    if folder is not None:
        echo(f"wrote {folder / REPORT}", err=output.form != "table")
    _end_if_plugins_failed(outcomes)


def _configurations(paths: Sequence[Path]) -> Named:
    """Read configurations; each is named after its file, numbered if two have one name."""
    from pumice.api.conf import DEFAULT_CONF, parse_conf, read_conf
    from pumice.api.named_files import read_conf_file

    if not paths:
        return {BUILT_IN: (None, parse_conf(DEFAULT_CONF))}
    named: Named = {}
    for path in paths:
        name, n = path.stem, 2
        while name in named:
            name, n = f"{path.stem}-{n}", n + 1
        named[name] = path, read_conf(read_conf_file(path)[0])  # all errors are reported later
    return named


def _run_all(
    setup: SimulationInput,
    named: Named,
    options: SimulationOptions,
    seed: int,
    plugins: PluginSources,
) -> dict[str, Outcome]:
    """Run the workload under each configuration."""
    from pumice.cli.progress import progress
    from pumice.sim.inputs import simulate

    outcomes = {}
    for name, (_, conf) in named.items():
        with progress(name, len(setup.workload.jobs), "jobs") as report:
            outcomes[name] = simulate(
                setup, conf, options, seed=seed, progress=report, plugins=plugins
            )
    return outcomes


def _measure(outcomes: dict[str, Outcome]) -> list[Measures]:
    """Measure all runs, with charts on one time axis."""
    from pumice.sim.measure import Measures

    end = max(outcome.end for outcome in outcomes.values())
    return [Measures(name, outcome, end) for name, outcome in outcomes.items()]


def _print(summary: dict[str, Any], timings: dict[str, dict[str, float]], form: str) -> None:
    """Print the summary; problems of the runs go to stderr."""
    if form == "table":
        _print_table(summary, timings)
        for note in summary["trace"]["notes"]:
            echo(f"note: {note}", err=True)
    else:
        print_data(summary, form)
    for each in summary["configurations"]:
        if each["storm"]:
            text = each["storm"]["text"]
            echo(f"warning: {each['configuration']}: {text}", err=True)


def _print_table(summary: dict[str, Any], timings: dict[str, dict[str, float]]) -> None:
    """Print one row a figure, one column a configuration."""
    from pumice.sim.report.page import summary_rows, unfinished_notes

    names = [each["configuration"] for each in summary["configurations"]]
    costs = [_costs(each, timings[each["configuration"]]) for each in summary["configurations"]]
    labels = ("simulated in", "events a second", "cost of a decision")
    rows = [[label, *cells] for label, *cells in zip(labels, *costs, strict=True)]
    print_rows(("", *names), [*summary_rows(summary), *rows])
    for name, text in unfinished_notes(summary):
        echo(f"{name}: {text}")
    for each in summary["configurations"]:
        for job in each["unfinished"][:5]:
            what = "did not finish" if job["started"] else "never ran"
            echo(f"{each['configuration']}: {job['job']} {what}: {job['reason']}")
        more = len(each["unfinished"]) - 5
        if more > 0:
            echo(f"{each['configuration']}: … and {more} more")


def _costs(found: Summary, timing: Mapping[str, float]) -> tuple[str, str, str]:
    """Write what a simulation cost; without decisions there are no rates."""
    from pumice.sim.measure import NOTHING, duration

    seconds = duration(timing["seconds"])
    if not found["decisions"]:
        return seconds, NOTHING, NOTHING
    return (
        seconds,
        f"{timing['events_per_second']:,.0f}",
        f"{timing['milliseconds_per_decision']:.3g} ms",
    )


def _end_if_plugins_failed(outcomes: dict[str, Outcome]) -> None:
    failures = [(name, line) for name, outcome in outcomes.items() for line in outcome.failures]
    for name, line in failures:
        echo(f"error: {name}: {line}", err=True)
    if failures:
        raise SystemExit(1)
