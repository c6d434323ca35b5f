"""A record under another configuration: first how well the old one is reproduced, then both."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pumice.api.conf import SchedulerConf, parse_conf
from pumice.errors import InputError, Words
from pumice.record.history import History
from pumice.replay.recorded_workload import RecordedWorkload, recorded_workload
from pumice.sim.inputs import SimulationInput, simulate
from pumice.sim.job_run import Outcome
from pumice.sim.measure import Measures
from pumice.sim.options import SimulationOptions
from pumice.sim.statistics import paired

ENOUGH: Final = 0.8
"""Part of the jobs that must start about when they did, for an answer to be trusted."""
_NEAR_S, _NEAR = 10.0, 0.1
_NAMED: Final = 5
"""Jobs that gain or lose most, which are named."""


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """The old configuration simulated, against what really happened."""

    jobs: int
    near: int
    """Jobs that start within ten seconds or a tenth of their wait of when they did."""
    mean_error_s: float
    unknown: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The part of the jobs that start about when they did."""
        return self.near / self.jobs if self.jobs else 1.0

    @property
    def is_trusted(self) -> bool:
        """Whether enough of them do."""
        return self.share >= ENOUGH


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Old against new, on the jobs of a record."""

    fidelity: Reproduced
    old: dict[str, Any]
    new: dict[str, Any]
    wait_difference: dict[str, float]
    """Mean seconds that a job waits longer under the new one, and its interval of 95 %."""
    earlier: int
    later: int
    same: int
    winners: dict[str, float]
    """Jobs that start earliest by comparison, with the seconds."""
    losers: dict[str, float]


def compare(
    history: History,
    new: SchedulerConf,
    since: float | None = None,
    until: float | None = None,
    *,
    old: SchedulerConf | None = None,
    seed: int = 0,
) -> Comparison:
    """Simulate the jobs of a record under the recorded configuration and under another.

    Raises:
        InputError: the record has no jobs, or no configuration and none is named.
    """
    recorded = recorded_workload(history, since, until)
    if old is None:
        old = _recorded_conf(history, until)
    before, after = (_simulated(recorded, conf, seed) for conf in (old, new))
    pair = paired(Measures("old", before), Measures("new", after))
    changes = _changes(before, after)
    ordered = sorted(changes.items(), key=lambda each: each[1])
    return Comparison(
        fidelity=_reproduced(recorded, before),
        old=_figures("old", before),
        new=_figures("new", after),
        wait_difference={"mean": pair.wait.mean, "low": pair.wait.low, "high": pair.wait.high},
        earlier=pair.earlier,
        later=pair.later,
        same=pair.same,
        winners={key: seconds for key, seconds in ordered[:_NAMED] if seconds < 0},
        losers={key: seconds for key, seconds in ordered[::-1][:_NAMED] if seconds > 0},
    )


def _recorded_conf(history: History, until: float | None) -> SchedulerConf:
    conf = history.at(until).conf
    if conf is None:
        raise InputError(
            wanted="the configuration of the scheduler in the record",
            found=Words("none"),
            file=str(history.folder),
            hint="name it with --old-conf",
        )
    return parse_conf(conf.text, source=conf.source)


def _simulated(recorded: RecordedWorkload, conf: SchedulerConf, seed: int) -> Outcome:
    setup = SimulationInput(recorded.workload, recorded.cluster)
    return simulate(setup, conf, SimulationOptions(), seed=seed)


def _waits(outcome: Outcome) -> dict[str, float]:
    return {
        run.key: run.started - run.spec.arrival for run in outcome.runs if not np.isnan(run.started)
    }


def _changes(before: Outcome, after: Outcome) -> dict[str, float]:
    old, new = _waits(before), _waits(after)
    return {key: new[key] - old[key] for key in old.keys() & new.keys()}


def _figures(name: str, outcome: Outcome) -> dict[str, Any]:
    found = np.array([*_waits(outcome).values()] or [0.0])
    return {
        "mean_wait": float(found.mean()),
        **{f"p{n}_wait": float(np.percentile(found, n)) for n in (50, 90, 99)},
        "started": len(_waits(outcome)),
        "jobs": len(outcome.runs),
        "evictions": sum(run.evictions for run in outcome.runs),
        "end": outcome.end,
        "name": name,
    }


def _reproduced(recorded: RecordedWorkload, outcome: Outcome) -> Reproduced:
    simulated = _waits(outcome)
    pairs = [(wait, simulated[key]) for key, wait in recorded.waits.items() if key in simulated]
    errors = [abs(there - here) for there, here in pairs]
    near = sum(
        error <= max(_NEAR_S, _NEAR * there)
        for (there, _), error in zip(pairs, errors, strict=True)
    )
    mean = sum(errors) / len(errors) if errors else 0.0
    return Reproduced(
        jobs=len(recorded.waits), near=near, mean_error_s=mean, unknown=recorded.unknown
    )
