"""The search: Optuna proposes, the simulator measures day by day, bad proposals stop early.

Every proposal of a batch is measured on the first day, the better part of them on the second, and
so on; processes here or a Dask cluster measure.  Days that are held out are measured at the end.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from pumice.actions import ACTIONS
from pumice.api.conf import parse_conf
from pumice.api.text_files import read_text
from pumice.api.wording import extra_hint
from pumice.errors import InputError, PumiceError, ServiceError, Words
from pumice.framework.arguments import UNKNOWN
from pumice.framework.conf_check import check_conf
from pumice.framework.registry import PluginSource, load_plugins
from pumice.plugins import builtin_plugins
from pumice.records.history import History
from pumice.replay.compare import GroupChange, both_waits, by_group
from pumice.sim.figures import figures_of
from pumice.sim.job_run import JobRun
from pumice.sim.statistics import Interval, interval
from pumice.sim.sweep import GridPoint, SweepRow, gather, sweep_dask, sweep_local
from pumice.tuning.days import Run, Source
from pumice.tuning.space import Dimension, Space, Template, numbers, read_space, space_of

_WARM_UP: Final = 5
"""Proposals that are measured to the end before others are stopped early."""
_NAMED: Final = 5
Figures = dict[str, float]


@dataclass(kw_only=True)
class Trial:
    """One configuration that was tried."""

    number: int
    values: dict[str, Any]
    figures: Figures = field(default_factory=dict)
    """Means over the days of the search."""
    days: int = 0
    """How many days it was measured on: fewer than all if it was stopped."""
    is_feasible: bool = False
    """Whether it was measured to the end and meets all conditions."""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A result against the base, on days that the search has not seen."""

    days: list[int]
    old: Figures
    new: Figures
    wait: Interval
    """Seconds that a job waits longer."""
    earlier: int
    later: int
    queues: list[GroupChange]
    losers: dict[str, float]
    """Jobs that wait longest by comparison, with the seconds."""
    broken: list[str]
    """Conditions that are not met on these days."""


@dataclass(kw_only=True)
class Tuned:
    """What a search found."""

    space: Space
    base: Figures
    """Of the configuration that the search began with, on its days."""
    trials: list[Trial]
    best: Trial
    conf: str
    """The best configuration."""
    evidence: Evidence | None
    """None if no days are held out."""

    @property
    def front(self) -> list[Trial]:
        """The trials that no other one beats in every objective, by the first objective."""
        good = [each for each in self.trials if each.is_feasible]
        aims = self.space.objectives
        found = [each for each in good if not any(_beats(other, each, aims) for other in good)]
        return sorted(found, key=lambda each: _scores(each.figures, aims))


def _scores(figures: Mapping[str, float], aims: Iterable[tuple[str, int]]) -> tuple[float, ...]:
    """Return the objectives as numbers of which less is better."""
    found = []
    for name, sign in aims:
        if name not in figures:
            raise InputError(wanted="a figure of these days", found=name)
        found.append(sign * figures[name])
    return tuple(found)


def _beats(one: Trial, other: Trial, aims: Sequence[tuple[str, int]]) -> bool:
    left, right = _scores(one.figures, aims), _scores(other.figures, aims)
    return all(a <= b for a, b in zip(left, right, strict=True)) and left != right


def optuna_module() -> Any:
    """Import Optuna, an optional extra.

    Raises:
        ServiceError: it is not installed.
    """
    try:
        import optuna  # noqa: PLC0415  (an optional extra)
    except ImportError as error:
        raise ServiceError("optuna", f"it is not installed here ({extra_hint('tune')})") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def tune(
    given: Path | Mapping[str, Any],
    *,
    trials: int | None = None,
    jobs: int | None = 1,
    dask: str = "",
    seed: int = 0,
    plugins: Sequence[PluginSource] = (),
    progress: Callable[[int], None] | None = None,
) -> Tuned:
    """Search for the best configuration of a space: that of a file, or a description.

    Files that a file names are beside it, those that a description names in the working directory.

    Raises:
        InputError: the description cannot be used, or nothing meets its conditions.
        ServiceError: Optuna is not installed, or no Dask scheduler answers.
    """
    if isinstance(given, Path):
        space, folder = read_space(given, read_text(given)), given.parent
    else:
        space, folder = space_of(given), Path()
    _check_arguments(space, plugins)
    found = Search(space, folder, jobs=jobs, dask=dask, seed=seed, plugins=plugins)
    return found.run(space.trials if trials is None else trials, progress)


def _check_arguments(space: Space, plugins: Sequence[PluginSource]) -> None:
    """Refuse arguments that nothing reads: their search would find nothing."""
    known = {**builtin_plugins(), **load_plugins(plugins)}
    for each in space.search:
        owner, _, key = each.at.partition(".arguments.")
        if not key:
            continue
        bare = Template('{actions: "allocate", tiers: [{plugins: [{name: gang}]}]}')
        value = (each.choice or each.whole or each.real or [None])[0]
        with_owner = {owner: True} if owner.startswith("plugins.") else {}
        conf = parse_conf(bare.filled({**with_owner, each.at: value}), source="<search>")
        for problem in check_conf(conf, known, ACTIONS):
            if problem.wanted == UNKNOWN:
                wanted = "the place of an argument"
                raise InputError(wanted=wanted, found=each.at, field="at", hint=problem.hint)


class Search:
    """One search over one space."""

    def __init__(
        self,
        space: Space,
        folder: Path,
        *,
        jobs: int | None = 1,
        dask: str = "",
        seed: int = 0,
        plugins: Sequence[PluginSource] = (),
    ) -> None:
        self.space = space
        self._source = Source(space.workload, str(folder.resolve()))
        self._simulate = Run(self._source, tuple(plugins))
        self._jobs, self._dask = jobs, dask
        self._template = self._base_template(folder)
        self._train = numbers(space.workload.train)
        self._base: list[Figures] = []
        """Figures of the base, day by day."""
        self._optuna = optuna_module()
        self._study = self._new_study(seed)
        self._done: list[Trial] = []

    def _base_template(self, folder: Path) -> Template:
        if self.space.base or not self.space.workload.record:
            return Template.of(folder / self.space.base if self.space.base else None)
        conf = History(self._source.path(self.space.workload.record)).at().conf
        return Template.of(None) if conf is None else Template(conf.text)

    def _new_study(self, seed: int) -> Any:
        optuna, aims = self._optuna, self.space.objectives
        sampler = optuna.samplers.TPESampler(
            seed=seed,
            multivariate=True,
            constant_liar=True,
        )
        study = optuna.create_study(directions=["minimize"] * len(aims), sampler=sampler)
        known = {each.at: (each, self._template.value(each.at)) for each in self.space.search}
        if all(each.has(value) for each, value in known.values()):  # the base is the first trial
            study.enqueue_trial(
                {at: one.choice.index(v) if one.choice else v for at, (one, v) in known.items()}
            )
        return study

    def run(self, trials: int, progress: Callable[[int], None] | None = None) -> Tuned:
        """Search, and judge the result on the days that are held out."""
        base = Trial(number=-1, values={})
        for day in self._train:
            self._measure([(base, self._template.filled({}))], day)
        if base.error:
            raise InputError(wanted="a base that can be simulated", found=Words(base.error))
        batch = max(1, self._jobs or 1) if not self._dask else 2 * _WARM_UP
        while len(self._done) < trials:
            self._run_batch(min(batch, trials - len(self._done)))
            if progress is not None:
                progress(len(self._done))
        aims = self.space.objectives
        good = [each for each in self._done if each.is_feasible]
        if not good:
            raise InputError(
                wanted="a configuration that meets the conditions",
                found=f"none in {trials} trials",
                hint=next((each.error for each in self._done if each.error), "state weaker ones"),
            )
        best = min(good, key=lambda each: _scores(each.figures, aims))
        conf = self._template.filled(best.values)
        return Tuned(
            space=self.space,
            base=base.figures,
            trials=self._done,
            best=best,
            conf=conf,
            evidence=self._evidence(conf),
        )

    def _run_batch(self, size: int) -> None:
        asked = [self._study.ask() for _ in range(size)]
        trials = [self._proposal(each) for each in asked]
        live = [(trial, self._text(trial)) for trial in trials]
        for step, day in enumerate(self._train):
            self._measure([each for each in live if not each[0].error], day)
            live = [each for each in live if not each[0].error]
            if step + 1 < len(self._train):
                live = [each for each in live if self._is_promising(each[0])]
        for own, trial in zip(asked, trials, strict=True):
            self._tell(own, trial)
        self._done += trials

    def _text(self, trial: Trial) -> str:
        try:
            return self._template.filled(trial.values)
        except PumiceError as error:
            trial.error = str(error)
            return ""

    def _proposal(self, own: Any) -> Trial:
        values = {each.at: _suggested(own, each) for each in self.space.search}
        return Trial(number=own.number, values=values)

    def _is_promising(self, trial: Trial) -> bool:
        """Return whether a trial is better than the median of those measured to the end, so far."""
        aims = self.space.objectives
        whole = [each for each in self._done if each.days == len(self._train)]
        if len(aims) > 1 or len(whole) < _WARM_UP:
            return True
        name, sign = aims[0]
        known = [sign * each.figures[f"{name}#{trial.days}"] for each in whole]
        return sign * trial.figures[name] <= float(np.median(known))

    def _measure(self, pairs: Sequence[tuple[Trial, str]], day: int) -> None:
        """Measure some configurations on one more day."""
        points = [GridPoint(text, str(day), seed) for _, text in pairs for seed in self.space.seeds]
        if not points:
            return
        rows = gather(
            sweep_dask(points, self._simulate, self._dask)
            if self._dask
            else sweep_local(points, self._simulate, jobs=self._jobs)
        )
        n = len(self.space.seeds)
        for at, (trial, _) in enumerate(pairs):
            self._take(trial, rows[at * n : (at + 1) * n])

    def _take(self, trial: Trial, rows: Sequence[SweepRow]) -> None:
        failed = next((row.error for row in rows if row.figures is None), "")
        if failed:
            trial.error = failed
            return
        found = [row.figures.by_name for row in rows if row.figures is not None]
        day = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
        if trial.number < 0:
            self._base.append(day)
        trial.days += 1
        for name, value in day.items():
            before = trial.figures.get(name, 0.0)
            trial.figures[name] = (before * (trial.days - 1) + value) / trial.days
        for name, _ in self.space.objectives:
            trial.figures[f"{name}#{trial.days}"] = trial.figures[name]

    def _tell(self, own: Any, trial: Trial) -> None:
        states = self._optuna.trial.TrialState
        if trial.error:
            self._study.tell(own, state=states.FAIL)
            return
        broken = self._violations(trial.figures, self._base[: trial.days])
        for each, violation in zip(self.space.constraints, broken, strict=True):
            own.set_constraint(each.text, violation)
        scores = _scores(trial.figures, self.space.objectives)
        is_whole = trial.days == len(self._train)
        trial.is_feasible = is_whole and all(each <= 0 for each in broken)
        if not is_whole:
            own.report(scores[0], trial.days)
            self._study.tell(own, state=states.PRUNED)
        elif all(map(math.isfinite, scores)):
            self._study.tell(own, list(scores))
        else:
            trial.is_feasible = False
            self._study.tell(own, state=states.FAIL)

    def _violations(self, after: Figures, base: Sequence[Figures]) -> list[float]:
        """Return by how much each condition is broken, relative to its bound; 0 or less if met."""
        before = _mean(base)
        found = []
        for each in self.space.constraints:
            limit = each.limit(before)
            gap = abs(after.get(each.figure, math.inf) - limit) / max(abs(limit), 1e-9)
            found.append(min(gap, 1e9) * (-1 if each.is_met(before, after) else 1) or 0.0)
        return found

    # Days that are held out

    def _evidence(self, conf: str) -> Evidence | None:
        held = numbers(self.space.workload.held)
        if not held:
            return None
        waits: dict[str, tuple[JobRun, float, float]] = {}
        sides: tuple[list[Figures], list[Figures]] = ([], [])
        for day in held:
            for seed in self.space.seeds:
                pair = [
                    self._simulate.measured(GridPoint(text, str(day), seed))
                    for text in (self._template.filled({}), conf)
                ]
                for side, each in zip(sides, pair, strict=True):
                    side.append(figures_of(each))
                found = both_waits(pair[0].outcome, pair[1].outcome)
                waits.update({f"day {day}: {job}": each for job, each in found.items()})
        old, new = (_mean(side) for side in sides)
        changes = {job: later - before for job, (_, before, later) in waits.items()}
        ordered = sorted(changes.items(), key=lambda each: -each[1])
        return Evidence(
            days=held,
            old=old,
            new=new,
            wait=interval([*changes.values()]),
            earlier=sum(each < 0 for each in changes.values()),
            later=sum(each > 0 for each in changes.values()),
            queues=by_group(waits, lambda run: run.spec.queue),
            losers={job: seconds for job, seconds in ordered[:_NAMED] if seconds > 0},
            broken=[each.text for each in self.space.constraints if not each.is_met(old, new)],
        )


def _mean(several: Sequence[Figures]) -> Figures:
    names = set.intersection(*(set(each) for each in several)) if several else set()
    return {name: float(np.mean([each[name] for each in several])) for name in sorted(names)}


def _suggested(own: Any, each: Dimension) -> Any:
    if each.choice:
        return each.choice[own.suggest_categorical(each.at, [*range(len(each.choice))])]
    if each.whole is not None:
        return own.suggest_int(each.at, *each.whole, log=each.log)
    assert each.real is not None  # noqa: S101  # a dimension has one range
    return round(own.suggest_float(each.at, *each.real, log=each.log), 6)
