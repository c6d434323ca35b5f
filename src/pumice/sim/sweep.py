"""A grid of simulations: configurations x traces x seeds, here or on a Dask cluster, in one table.

Used by `pumice sweep`.  A failed run is a row with its error and does not stop others; rows come
in the order of the grid, whichever run finishes first.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

import numpy as np

from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.meta import KubeObject
from pumice.api.output_files import make_folder
from pumice.api.wording import crash_text, extra_hint
from pumice.errors import PumiceError, ServiceError
from pumice.processes import worker_processes
from pumice.sim.inputs import SimulationInput, read_configuration, simulate
from pumice.sim.job_run import Outcome
from pumice.sim.measure import Measures, spread
from pumice.sim.options import SimulationOptions
from pumice.sim.output import write_json, write_table
from pumice.sim.workload import Workload

BUILT_IN = "built-in"
"""The name of the configuration that is used when none is given."""
_START: Final = "spawn"
"""Workers start fresh, so that threads of this process (a progress bar) do no harm."""
DIED = "the process died during this run"


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One run of the grid; an empty configuration is the built-in one."""

    conf: str
    trace: str
    seed: int
    nodes: str = ""
    format: str = ""
    options: SimulationOptions = field(default_factory=SimulationOptions)
    folder: str = ""
    """The folder of relative file names; empty: that of the running process."""

    def path(self, name: str) -> Path:
        """Return the path of a file of this run."""
        return Path(self.folder, name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """The figures of one simulation; times in seconds, None where nothing could be measured."""

    jobs: int
    finished: int
    makespan: float | None
    wait_mean: float | None
    wait_p50: float | None
    wait_p90: float | None
    wait_p99: float | None
    bounded_slowdown: float | None
    """The mean over the jobs that finished."""
    utilisation: Mapping[str, float]
    """Part of the nodes' capacity in use, by resource, over the makespan."""
    evictions: int
    fairness: float | None
    by_name: Mapping[str, float] = field(default_factory=dict)
    """More of them, for a search that names its objectives."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepRow:
    """A line of the table: a run and its figures, or its error."""

    point: GridPoint
    figures: Figures | None = None
    error: str = ""
    wall_seconds: float | None = None
    cpu_seconds: float | None = None


Simulate = Callable[[GridPoint], Figures]
"""Runs one point of the grid; must be picklable for several processes."""

NumberedRow = tuple[int, SweepRow]
"""A row and its place in the grid."""
Rows = Generator[NumberedRow, None, None]
"""Rows as they come; closed early, the workers end."""


Load = Callable[[GridPoint], tuple[Workload, Iterable[KubeObject]]]
"""Reads the jobs of a point and the cluster they run on; must be picklable like the run."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """The run of a point: reads its files, runs the engine to the end and measures."""

    load: Load
    plugins: tuple[str, ...] = ()
    """Files or modules of further plugins; loaded in the process that runs."""

    def __call__(self, point: GridPoint) -> Figures:
        """Simulate one point.

        Raises:
            InputError: the configuration or the trace cannot be read or used.
            PumiceError: a plugin failed.
        """
        conf = read_configuration(point.path(point.conf), point.conf) if point.conf else _built_in()
        workload, cluster = self.load(point)
        setup = SimulationInput(workload, tuple(cluster))
        outcome = simulate(setup, conf, point.options, seed=point.seed, plugins=self.plugins)
        if outcome.failures:
            raise PumiceError("; ".join(outcome.failures))
        return measure(outcome)


def _built_in() -> SchedulerConf:
    return parse_conf(DEFAULT_CONF, source=BUILT_IN)


def grid(
    confs: Sequence[str],
    traces: Sequence[str],
    seeds: Sequence[int],
    *,
    nodes: str = "",
    trace_format: str = "",
    options: SimulationOptions | None = None,
    folder: str = "",
) -> list[GridPoint]:
    """List all runs: by configuration, then trace, then seed; repeated names run once."""
    return [
        GridPoint(conf, trace, seed, nodes, trace_format, options or SimulationOptions(), folder)
        for conf in dict.fromkeys(confs or ("",))
        for trace in dict.fromkeys(traces)
        for seed in dict.fromkeys(seeds or (0,))
    ]


def run_point(point: GridPoint, simulate: Simulate) -> SweepRow:
    """Run one point; any failure becomes its row."""
    wall, cpu = perf_counter(), process_time()
    figures, error = None, ""
    try:
        figures = simulate(point)
    except PumiceError as problem:
        error = str(problem)
    except Exception as problem:  # noqa: BLE001  (a crash is the result of this run alone)
        error = crash_text(problem)
    return SweepRow(
        point=point,
        figures=figures,
        error=error,
        wall_seconds=perf_counter() - wall,
        cpu_seconds=process_time() - cpu,
    )


def sweep_local(
    points: Sequence[GridPoint], simulate: Simulate, *, jobs: int | None = None
) -> Rows:
    """Run a grid in processes of this machine and yield rows as they come.

    ``simulate`` is called once for each point, in the process that runs it; of ``jobs`` processes
    None means the number of CPUs, one runs in this process.
    """
    workers = min(jobs or os.cpu_count() or 1, len(points))
    if workers < 2:
        for number, point in enumerate(points):
            yield number, run_point(point, simulate)
        return
    left = dict(enumerate(points))
    with worker_processes(workers, _START) as pool:
        running = {pool.submit(run_point, point, simulate): n for n, point in left.items()}
        for future in as_completed(running):
            row = _row_of(future)
            if row is not None:
                del left[running[future]]
                yield running[future], row
    # A process that dies takes the whole pool along: the rest is run one by one, so that only the
    # one at fault fails.
    for number, point in left.items():
        yield number, _run_alone(point, simulate)


def _row_of(future: "Future[SweepRow]") -> SweepRow | None:
    try:
        return future.result()
    except BrokenProcessPool:
        return None


def _run_alone(point: GridPoint, simulate: Simulate) -> SweepRow:
    with worker_processes(1, _START) as pool:
        row = _row_of(pool.submit(run_point, point, simulate))
    return SweepRow(point=point, error=DIED) if row is None else row


def sweep_dask(
    points: Sequence[GridPoint], simulate: Simulate, address: str, *, patience: float = 10.0
) -> Rows:
    """Run a grid on the workers of a Dask cluster and yield rows as they come.

    Args:
        points: What to run; the workers open the files under the names given here.
        simulate: Called once for each point, on a worker that has Pumice installed.
        address: Of the Dask scheduler, such as ``tcp://10.0.0.5:8786``.
        patience: Seconds to wait for the Dask scheduler to answer.

    Raises:
        ServiceError: Dask is not installed here, or the address does not answer.
    """
    try:
        import distributed  # noqa: PLC0415  (an optional extra)
    except ImportError as error:
        hint = f"dask.distributed is not installed here ({extra_hint('dask')})"
        raise ServiceError(address, hint) from error
    try:
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ServiceError(address, f"no Dask scheduler answers: {error}") from error
    with client:
        # never twice the same task: two runs of one point are two measurements
        futures = client.map(run_point, points, simulate=simulate, pure=False, retries=0)
        numbers = {future.key: number for number, future in enumerate(futures)}
        for future in distributed.as_completed(futures, loop=client.loop):
            number = numbers[future.key]
            yield number, _dask_row(points[number], future)


def _dask_row(point: GridPoint, future: Any) -> SweepRow:
    """Take the row of a Dask task; one whose worker died has none."""
    if future.status == "finished":
        row = future.result()
        return row if isinstance(row, SweepRow) else SweepRow(point=point, error=f"no row: {row!r}")
    error = future.exception() if future.status == "error" else None
    return SweepRow(
        point=point, error=crash_text(error) if error else f"the run was {future.status}"
    )


def gather(
    rows: Iterator[NumberedRow], on_row: Callable[[SweepRow], None] | None = None
) -> list[SweepRow]:
    """Collect rows and put them in the order of the grid; ``on_row`` receives each as it comes."""
    found: dict[int, SweepRow] = {}
    for number, row in rows:
        found[number] = row
        if on_row is not None:
            on_row(row)
    return [found[number] for number in sorted(found)]


def measure(outcome: Outcome) -> Figures:
    """Compute the figures of a row from a finished simulation."""
    measures = Measures("", outcome)
    wait, slowdown = spread(measures.waits()), spread(np.sort(measures.bounded_slowdowns))
    return Figures(
        jobs=len(outcome.runs),
        finished=len(measures.ends),
        makespan=measures.makespan if measures.ends else None,
        wait_mean=wait["mean"],
        wait_p50=wait["p50"],
        wait_p90=wait["p90"],
        wait_p99=wait["p99"],
        bounded_slowdown=slowdown["mean"],
        utilisation={
            name: float(measures.mean_use[i])
            for i, name in enumerate(measures.resources)
            if measures.ends and measures.total[i] > 0
        },
        evictions=measures.evictions,
        fairness=measures.fairness.mean,
    )


_FIGURES = (
    *("jobs", "finished", "makespan", "wait_mean", "wait_p50", "wait_p90", "wait_p99"),
    *("bounded_slowdown", "utilisation", "evictions", "fairness"),
)
_COMPARED = tuple(name for name in _FIGURES if name not in ("jobs", "utilisation"))


def records(rows: Sequence[SweepRow]) -> list[dict[str, Any]]:
    """Return the rows as plain data, each compared with the first configuration."""
    first = {(row.point.trace, row.point.seed): row for row in reversed(rows)}
    found = []
    for row in rows:
        point = row.point
        figures = {} if row.figures is None else asdict(row.figures)
        found.append(
            {
                "configuration": point.conf or BUILT_IN,
                "trace": point.trace,
                "seed": point.seed,
                **{name: figures.get(name) for name in _FIGURES},
                "differences": _differences(first[point.trace, point.seed], row),
                "wall_seconds": row.wall_seconds,
                "cpu_seconds": row.cpu_seconds,
                "error": row.error,
            }
        )
    return found


def _differences(first: SweepRow, row: SweepRow) -> dict[str, float | None] | None:
    """Subtract the figures of the first configuration; None for itself or without figures.

    Figures over different numbers of finished jobs have no difference.
    """
    if row is first or row.figures is None or first.figures is None:
        return None
    before, after = asdict(first.figures), asdict(row.figures)
    is_over_others = before["finished"] != after["finished"]
    return {
        name: None
        if before[name] is None or after[name] is None or (is_over_others and name != "finished")
        else round(after[name] - before[name], 6)
        for name in _COMPARED
    }


def summary_files(*, parquet: bool = False) -> tuple[str, str]:
    """Name the files that a summary is written to."""
    return f"summary.{'parquet' if parquet else 'csv'}", "summary.json"


def write_summary(
    rows: Sequence[SweepRow], folder: Path, *, parquet: bool = False
) -> tuple[Path, Path]:
    """Write a table and JSON; in the table each resource and difference has its own column."""
    make_folder(folder)
    plain = records(rows)
    as_table, as_json = (folder / name for name in summary_files(parquet=parquet))
    write_json(as_json, plain)
    resources = sorted({name for one in plain for name in one["utilisation"] or ()})
    columns = list(_flat(records([_NOTHING])[0], resources))
    flat = (_flat(one, resources) for one in plain)
    write_table(as_table, columns, [[one[name] for name in columns] for one in flat])
    return as_table, as_json


def _flat(record: Mapping[str, Any], resources: Sequence[str]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if name == "utilisation":
            flat |= {f"utilisation_{each}": (value or {}).get(each) for each in resources}
        elif name == "differences":
            flat |= {f"difference_{each}": (value or {}).get(each) for each in _COMPARED}
        else:
            flat[name] = value
    return flat


_NOTHING = SweepRow(point=GridPoint("", "", 0))
