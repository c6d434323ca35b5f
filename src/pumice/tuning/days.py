"""The days of a trace or a record, each a workload of its own."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace as changed

from pumice.api.conf import parse_conf
from pumice.errors import InputError, PumiceError, Words
from pumice.framework.registry import PluginSource
from pumice.records.history import History
from pumice.records.stores import beside
from pumice.replay.recorded_workload import recorded_workload
from pumice.sim.figures import figures_of
from pumice.sim.inputs import SimulationInput, load, simulate
from pumice.sim.measure import Measures
from pumice.sim.options import SimulationOptions
from pumice.sim.sweep import Figures, GridPoint, measure
from pumice.tuning.space import Days


@dataclass(frozen=True)
class Source:
    """Where the days of a search come from; the same for every process that runs one."""

    days: Days
    folder: str

    def day(self, number: int) -> tuple[SimulationInput, SimulationOptions]:
        """Return a day, and how it is simulated.

        Raises:
            InputError: it has no jobs.
        """
        found = _recorded if self.days.record else _traced
        return found(self, number)

    def path(self, name: str) -> Path:
        """Return the path of a file that the description names."""
        return beside(Path(self.folder), name)

    @property
    def length(self) -> float:
        """Seconds of a day."""
        return self.days.hours * 3600.0


@lru_cache(maxsize=4)
def _whole(source: Source) -> SimulationInput:
    days = source.days
    nodes = source.path(days.nodes) if days.nodes else None
    return load(source.path(days.trace), nodes=nodes, trace_format=days.format, speed=days.speed)


@lru_cache(maxsize=64)
def _traced(source: Source, number: int) -> tuple[SimulationInput, SimulationOptions]:
    whole = _whole(source)
    since = number * source.length
    jobs = [job for job in whole.workload.jobs if since <= job.arrival < since + source.length]
    if not jobs:
        raise InputError(
            wanted="jobs on every day of the search",
            found=Words(f"none on day {number}"),
            file=source.days.trace,
        )
    start = jobs[0].arrival
    shifted = tuple(changed(job, arrival=job.arrival - start) for job in jobs)
    begins = None if whole.workload.start is None else whole.workload.start + start
    workload = replace(whole.workload, jobs=shifted, start=begins, name=f"day {number}")
    return SimulationInput(workload, whole.cluster), SimulationOptions()


@lru_cache(maxsize=64)
def _recorded(source: Source, number: int) -> tuple[SimulationInput, SimulationOptions]:
    history = History(source.path(source.days.record))
    since = history.start + number * source.length
    found = recorded_workload(history, since, since + source.length)
    return found.setup, found.options


@dataclass(frozen=True)
class Run:
    """Simulates a point of a grid whose configuration is a text and whose trace is a day."""

    source: Source
    plugins: tuple[PluginSource, ...] = ()
    """Further plugins; files and modules are loaded in the process that runs."""

    def measured(self, point: GridPoint) -> Measures:
        """Simulate.

        Raises:
            PumiceError: the configuration cannot be used, or a plugin failed.
        """
        setup, options = self.source.day(int(point.trace))
        conf = parse_conf(point.conf)
        outcome = simulate(setup, conf, options, seed=point.seed, plugins=self.plugins)
        if outcome.failures:
            raise PumiceError("; ".join(outcome.failures))
        return Measures("", outcome)

    def __call__(self, point: GridPoint) -> Figures:
        """Simulate, and return the figures."""
        found = self.measured(point)
        return replace(measure(found.outcome), by_name=figures_of(found))
