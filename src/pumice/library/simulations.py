"""Simulations for programs: a workload run to its end, as tables, figures and plots."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pumice.api.manifests import pointing_to_fields
from pumice.api.meta import KubeObject
from pumice.api.output_files import make_folder
from pumice.api.times import epoch
from pumice.api.wording import value_of
from pumice.core.resources import Column
from pumice.errors import InputError
from pumice.framework.registry import PluginSource, load_plugins
from pumice.library.arguments import PATHS, check_configuration, check_items, check_kind, check_seed
from pumice.library.plots import Plots
from pumice.library.tables import Table, render
from pumice.library.workloads import (
    Configuration,
    NodesSource,
    log,
    log_warnings,
    read_configuration,
)
from pumice.sim import output, statistics
from pumice.sim.inputs import SimulationInput, prepare, read_cluster, read_workload
from pumice.sim.inputs import simulate as run_to_end
from pumice.sim.measure import Measures
from pumice.sim.options import Evicted, SimulationOptions
from pumice.sim.output import REPORT, ResultFiles
from pumice.sim.report.page import summary_rows
from pumice.sim.statistics import Interval, Paired
from pumice.sim.workload import Workload

_SECONDS = frozenset(
    {"arrival", "start", "end", "wait", "run", "walltime", "seconds", "waited"},
)
"""Columns of times."""


class Results(Mapping[str, "Result"]):
    """Simulations of one workload under several configurations, by name."""

    def __init__(
        self, setup: SimulationInput, measured: Sequence[Measures], options: Mapping[str, Any]
    ) -> None:
        self._setup = setup
        self._options = dict(options)
        self._results = {each.name: Result(setup, each, options) for each in measured}

    def __getitem__(self, name: str) -> "Result":
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @cached_property
    def measured(self) -> list[Measures]:
        """The measurements, on one time axis."""
        return [each.measures for each in self.values()]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All figures, as ``pumice sim -o json`` prints them."""
        return output.summary(self._setup, self.measured, self._options)

    @property
    def plot(self) -> Plots:
        """Plots of all of them; needs the extra ``pumice[plot]``."""
        return Plots(self.measured)

    @cached_property
    def table(self) -> Table:
        """One row for each configuration, with the figures that papers compare."""
        rows = [(name, *each.figures.values()) for name, each in self.items()]
        first = next(iter(self.values()))
        numbers = [name for name in first.figures if name not in ("jobs", "finished", "evictions")]
        return Table(("configuration", *first.figures), rows, numbers)

    def paired(self, before: str, after: str) -> Paired:
        """Compare two configurations job by job, with intervals of 95 %."""
        return statistics.paired(self[before].measures, self[after].measures)

    def save(self, folder: str | Path, *, parquet: bool = False) -> Path:
        """Write the report, the summary and the tables into a folder; return the report's path."""
        check_kind("folder", folder, PATHS, "the name of a folder")
        folder = Path(folder)
        make_folder(folder)
        files = ResultFiles(list(self), ".parquet" if parquet else ".csv")
        files.write(folder, self.measured, self.summary)
        return folder / REPORT

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._setup.workload.name}: {', '.join(self)}>"

    def __str__(self) -> str:
        return str(Table(("", *self), summary_rows(self.summary)))

    def _repr_html_(self) -> str:
        notes = self.summary["trace"]["notes"]
        return render("result.html", names=list(self), rows=summary_rows(self.summary), notes=notes)


class Result:
    """One finished simulation."""

    def __init__(
        self, setup: SimulationInput, measures: Measures, options: Mapping[str, Any]
    ) -> None:
        self._setup = setup
        self._options = dict(options)
        self.measures = measures
        """Everything that can be measured, over time and by queue and node."""

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The figures of this configuration, as in ``summary.json``."""
        return self.measures.summary()

    @cached_property
    def jobs(self) -> Table:
        """One row for each job: when it arrived, started and ended."""
        return _table(output.JOB_COLUMNS, output.jobs(self.measures))

    @cached_property
    def decisions(self) -> Table:
        """One row for each decision of the scheduler."""
        return _table(output.DECISION_COLUMNS, output.decisions(self.measures))

    @property
    def failures(self) -> tuple[str, ...]:
        """Errors of plugins; figures of a run with failures are not those of the policy."""
        return self.measures.outcome.failures

    @cached_property
    def figures(self) -> dict[str, float | None]:
        """The figures that papers compare: waits, slowdowns, makespan, utilisation, fairness."""
        found = self.summary
        return {
            "jobs": found["jobs"],
            "finished": found["finished"],
            "makespan": found["makespan"],
            "mean_wait": found["wait"]["mean"],
            "p95_wait": found["wait"]["p95"],
            "mean_bounded_slowdown": found["bounded_slowdown"]["mean"],
            **{f"{name}_utilisation": part for name, part in found["utilisation"].items()},
            "fairness": found["fairness"]["mean"],
            "evictions": found["evictions"],
        }

    @cached_property
    def by_class(self) -> Table:
        """Waits and slowdowns of finished jobs by their width (pods) and length (run time)."""
        return Table(statistics.CLASS_COLUMNS, [*statistics.by_class(self.measures)])

    @cached_property
    def by_user(self) -> Table:
        """Waits and slowdowns of finished jobs by user."""
        return Table(statistics.USER_COLUMNS, [*statistics.by_user(self.measures)])

    @cached_property
    def user_fairness(self) -> float | None:
        """Jain's index over the mean bounded slowdowns of users; None for fewer than two."""
        return statistics.user_fairness(self.measures)

    @cached_property
    def fragmentation(self) -> Column:
        """Part of the free main resource, over time, on nodes too full for a usual pod."""
        return statistics.fragmentation(self.measures)

    @property
    def bounded_slowdowns(self) -> Column:
        """(wait + run) / run of every finished job, runs counted as ten seconds at least."""
        return self.measures.bounded_slowdowns

    @property
    def plot(self) -> Plots:
        """Plots of it; needs the extra ``pumice[plot]``."""
        return Plots([self.measures])

    def save(self, folder: str | Path, *, parquet: bool = False) -> Path:
        """Write the report, the summary and the tables into a folder; return the report's path."""
        return self._alone.save(folder, parquet=parquet)

    @property
    def _alone(self) -> Results:
        return Results(self._setup, [self.measures], self._options)

    def __repr__(self) -> str:
        found = self.summary
        left = [f"; {one['job']}: {one['reason']}" for one in found["unfinished"][:1]]
        done = f"{found['finished']} of {found['jobs']} jobs finished"
        return f"<Result {self.measures.name}: {done}{''.join(left)}>"

    def __str__(self) -> str:
        return str(self._alone)

    def _repr_html_(self) -> str:
        return self._alone._repr_html_()


def simulate(
    workload: str | Path | Workload,
    nodes: NodesSource = None,
    conf: Configuration = None,
    *,
    plugins: Sequence[PluginSource] = (),
    seed: int = 0,
    trace_format: str = "",
    period: float = 1.0,
    evicted: Evicted = "requeue",
    limit: int | None = None,
    speed: float = 1.0,
    late_pods: bool = False,
    start: float | str | None = None,
) -> Result:
    """Run a workload to its end on a virtual clock.

    Args:
        workload: A trace, manifests or a synthetic description in a file, or the result of
            :func:`workload`.
        nodes: A file, or the result of :func:`nodes`; by default those of the workload.
        conf: A configuration: a file, or its text; without one, the built-in one.
        plugins: Plugins that the configuration may name: classes, files or modules.
        seed: Seed of everything random.
        trace_format: One of the formats of ``pumice sim``; recognised otherwise.
        period: Seconds between two cycles, at least; 0: a cycle begins with each event.
        evicted: The fate of an evicted pod: "requeue", "restart" or "lose".
        limit: How many jobs, from the first.
        speed: How many times faster than in the trace jobs arrive.
        late_pods: Whether pods are created only once their job is admitted.
        start: When the first job arrives: a time such as "2026-01-15T10:00:19Z", or seconds
            since 1970; by default as the trace states.

    Raises:
        PumiceError: An argument cannot be used.
    """
    check_configuration("conf", conf)
    confs = {_name(conf): conf}
    found = compare(
        workload,
        confs,
        nodes,
        plugins=plugins,
        seed=seed,
        trace_format=trace_format,
        period=period,
        evicted=evicted,
        limit=limit,
        speed=speed,
        late_pods=late_pods,
        start=start,
    )
    return next(iter(found.values()))


@pointing_to_fields()
def compare(
    workload: str | Path | Workload,
    confs: Mapping[str, Configuration] | Sequence[str | Path],
    nodes: NodesSource = None,
    *,
    plugins: Sequence[PluginSource] = (),
    seed: int = 0,
    trace_format: str = "",
    period: float = 1.0,
    evicted: Evicted = "requeue",
    limit: int | None = None,
    speed: float = 1.0,
    late_pods: bool = False,
    start: float | str | None = None,
) -> Results:
    """Run a workload under several configurations: files, or texts by name.

    Further arguments are those of :func:`simulate`.
    """
    chosen = SimulationOptions(
        period=period,
        evicted=evicted,
        limit=limit,
        speed=speed,
        late_pods=late_pods,
        start=_moment(start),
    )
    wanted = "a file, or the result of pumice.workload"
    check_kind("workload", workload, (str, Path, Workload), wanted)
    check_seed(seed)
    named = _named(confs)
    if not isinstance(workload, Workload):
        workload = read_workload(Path(workload), trace_format=trace_format, seed=seed)
    cluster = _cluster(nodes)
    setup = prepare(
        workload, cluster, limit=chosen.limit, speed=chosen.speed, late_pods=chosen.late_pods
    )
    for note in setup.odd:
        log.warning("%s: %s", workload.name, note)
    read = {name: read_configuration(one) for name, one in named.items()}
    for name, found in read.items():
        log_warnings(found.conf, name, load_plugins(plugins))
    outcomes = {
        name: run_to_end(setup, found.conf, chosen, seed=seed, plugins=plugins)
        for name, found in read.items()
    }
    end = max(each.end for each in outcomes.values())
    measured = [Measures(name, each, end) for name, each in outcomes.items()]
    return Results(setup, measured, output.options_data(setup, chosen, seed))


class Repeats:
    """The same comparison with several seeds."""

    def __init__(self, runs: Mapping[int, Results]) -> None:
        self.runs = runs
        """The results by seed."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the configurations."""
        return tuple(next(iter(self.runs.values())))

    def figure(self, name: str, configuration: str) -> list[float]:
        """Return a figure of a configuration, one value for each seed."""
        return [_known(found[configuration].figures[name]) for found in self.runs.values()]

    def interval(self, name: str, configuration: str) -> Interval:
        """Return the mean of a figure over the seeds, with an interval of 95 %."""
        return statistics.interval(self.figure(name, configuration))

    def difference(self, name: str, before: str, after: str) -> Interval:
        """Return by how much a figure is larger under a second configuration, seed by seed."""
        pairs = zip(self.figure(name, before), self.figure(name, after), strict=True)
        return statistics.interval([new - old for old, new in pairs])

    @cached_property
    def table(self) -> Table:
        """One row for each configuration and figure: mean, and the interval around it."""
        figures = next(iter(next(iter(self.runs.values())).values())).figures
        rows = []
        for configuration in self.names:
            for name in figures:
                found = self.interval(name, configuration)
                rows.append((configuration, name, found.mean, found.low, found.high, found.n))
        numbers = ("mean", "low", "high")
        return Table(("configuration", "figure", *numbers, "seeds"), rows, numbers)

    def __repr__(self) -> str:
        return f"<Repeats of {', '.join(self.names)} with {len(self.runs)} seeds>"

    def __str__(self) -> str:
        return str(self.table)


def _known(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def repeat(
    workload: str | Path | Callable[[int], Workload],
    confs: Mapping[str, Configuration] | Sequence[str | Path],
    nodes: NodesSource = None,
    *,
    seeds: Iterable[int] = range(5),
    plugins: Sequence[PluginSource] = (),
    trace_format: str = "",
    period: float = 1.0,
    evicted: Evicted = "requeue",
    limit: int | None = None,
    speed: float = 1.0,
    late_pods: bool = False,
    start: float | str | None = None,
) -> Repeats:
    """Compare configurations with several seeds, for intervals around every figure.

    ``workload`` is a description of a synthetic workload, drawn with each seed, or a function that
    returns the workload of a seed.  Further arguments are those of :func:`simulate`.

    Raises:
        PumiceError: An argument cannot be used.
    """
    chosen = [*seeds]
    if not chosen:
        raise InputError(wanted="at least one seed", found=chosen, field="seeds")
    return Repeats(
        {
            seed: compare(
                workload(seed) if callable(workload) else workload,
                confs,
                nodes,
                plugins=plugins,
                seed=seed,
                trace_format=trace_format,
                period=period,
                evicted=evicted,
                limit=limit,
                speed=speed,
                late_pods=late_pods,
                start=start,
            )
            for seed in chosen
        }
    )


def _named(
    confs: Mapping[str, Configuration] | Sequence[str | Path],
) -> Mapping[str, Configuration]:
    """Return configurations by name; files are named after themselves.

    Raises:
        InputError: There is none, something else, or names of which no files can be made.
    """
    if isinstance(confs, Mapping):
        for name, each in confs.items():
            check_configuration("confs", each)
            if "/" in name or not name.isprintable():
                raise InputError(wanted="a name without '/'", found=name, field="confs")
    else:
        wanted = "configurations by name, or a list of files"
        check_items("confs", confs, (*PATHS, type(None)), wanted)
    if not confs:
        raise InputError(wanted="at least one configuration", found=confs, field="confs")
    if isinstance(confs, Mapping):
        return confs
    named = {_name(each): each for each in confs}
    if len(named) < len(confs):
        wanted = "files of different names, or configurations by name"
        raise InputError(wanted=wanted, found=list(map(str, confs)), field="confs")
    return named


def _cluster(nodes: NodesSource) -> Sequence[KubeObject] | None:
    """Return the objects of a cluster, from a file or as a program made them.

    Raises:
        InputError: The file cannot be used, or it is something else.
    """
    if isinstance(nodes, str | Path):
        return read_cluster(Path(nodes))
    if nodes is not None:
        check_items("nodes", nodes, KubeObject, "a file, or the result of pumice.nodes")
    return nodes


def _moment(start: float | str | None) -> float | None:
    """Return a time in seconds since 1970.

    Raises:
        InputError: A text is not a time.
    """
    if not isinstance(start, str):
        return start
    with value_of("start"):
        return epoch(start)


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Make a table whose seconds are all numbers of one type; missing times are None."""
    seconds = [name in _SECONDS for name in columns]
    return Table(
        columns,
        [
            tuple(
                None if value == "" else float(value) if is_time else value
                for value, is_time in zip(row, seconds, strict=True)
            )
            for row in rows
        ],
        _SECONDS,
    )


def _name(conf: Configuration) -> str:
    """Name a configuration after its file."""
    if conf is None:
        return "built-in"
    return "given" if isinstance(conf, str) and "\n" in conf else Path(conf).stem
