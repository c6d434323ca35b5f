"""What a scenario states, held against what is decided in each of its cycles."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pumice.api.decisions import Decisions
from pumice.api.kinds import Manifest
from pumice.api.scenario_values import with_line
from pumice.errors import ScenarioError
from pumice.scenarios.compare import CompareOptions, Difference, Explain, differences
from pumice.scenarios.cycles import (
    CycleScheduler,
    PlayedCycle,
    SchedulerFactory,
    played_cycles,
    scheduler_of,
)
from pumice.scenarios.expectations import NO_EXPECTATION, Eventually
from pumice.scenarios.objects import key_of
from pumice.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from pumice.scenarios.invariants import Check
    from pumice.scenarios.reasons import Reasons


def differences_of(
    scenario: Scenario, make_scheduler: SchedulerFactory, options: CompareOptions
) -> list[Difference]:
    """Run a scenario and return what differs from what it states, with the reasons.

    Raises:
        ScenarioError: The scenario expects nothing, so that it could not fail.
    """
    if scenario.expect and not any(scenario.expect):
        error = ScenarioError(
            wanted=NO_EXPECTATION, found={}, field="expect", file=str(scenario.path)
        )
        raise with_line(error, scenario.path)
    if not (scenario.expect or scenario.always or scenario.eventually):
        hint = "'pumice run --write' fills them in"
        raise ScenarioError(
            wanted="expectations", field="expect", file=str(scenario.path), hint=hint
        )
    scheduler = scheduler_of(scenario, make_scheduler)
    return list(_Checking(scenario, scheduler, options).differences())


class _Checking:
    """One run of a scenario."""

    def __init__(
        self, scenario: Scenario, scheduler: CycleScheduler, options: CompareOptions
    ) -> None:
        self._scenario, self._scheduler, self._options = scenario, scheduler, options
        self._given: Mapping[str, Any] | None = getattr(scheduler, "given_plugins", None)
        """Plugins of Pumice's own scheduler; None for another one, which cannot be explained."""
        self.explains = options.explained
        self._checks = self._invariants()
        self._goals = [_Goal(wanted) for wanted in scenario.eventually]

    def _invariants(self) -> "list[Check]":
        scenario, scheduler = self._scenario, self._scheduler
        if not scenario.always:
            return []
        from pumice.scenarios.invariants import checks_of  # noqa: PLC0415  (few state any)

        tiers: Any = getattr(scheduler, "tiers", list)()
        plugins = [type(each.plugin) for tier in tiers for each in tier]
        try:
            return checks_of(
                scenario.path, scenario.always, [*plugins, *(self._given or {}).values()]
            )
        except ScenarioError as error:
            raise with_line(error, scenario.path) from None

    def differences(self) -> Iterator[Difference]:
        """Yield what differs, cycle by cycle."""
        scenario = self._scenario
        cycles = played_cycles(scenario, self._scheduler, observed=bool(self._checks))
        for cycle in cycles:
            reasons = _Lazily(self, cycle)
            found = [*self._in_cycle(cycle, reasons.causes)]
            yield from self._placed(reasons.because(found), cycle)
            for goal in self._goals:
                goal.look(cycle, self._options, reasons.causes)
            if scenario.until_quiet and self._is_done(cycle):
                break
        for goal in self._goals:
            if goal.last is not None:
                missed = _Lazily(self, goal.last).because(goal.missed)
                yield from self._placed(missed, goal.last)

    def _in_cycle(self, cycle: PlayedCycle, explain: Explain) -> Iterator[Difference]:
        expect, number = self._scenario.expect, cycle.facts.number
        failures = map(Difference, cycle.decisions.failures)
        if number <= len(expect):
            record = expect[number - 1]
            yield from differences(cycle.objects, record, cycle.decisions, self._options, explain)
        yield from failures
        broken = []
        for check in self._checks:
            found = list(check(cycle.facts))
            yield from found
            if found:
                broken.append(check)
        # what is broken once is reported once
        self._checks = [check for check in self._checks if check not in broken]

    def _placed(self, found: list[Difference], cycle: PlayedCycle) -> Iterator[Difference]:
        number = cycle.facts.number
        place = f"cycle {number}: " if self._scenario.cycles > 1 else ""
        for each in found:
            yield replace(each, text=f"{place}{each.text}", cycle=number)

    def _is_done(self, cycle: PlayedCycle) -> bool:
        if not cycle.may_be_last or cycle.facts.number < len(self._scenario.expect):
            return False
        return all(goal.is_over(cycle) for goal in self._goals)

    def reasons(self, cycle: PlayedCycle) -> "Reasons | None":
        """Return what can explain a cycle; None for a scheduler that is not Pumice's own."""
        if self._given is None:
            return None
        from pumice.scenarios.reasons import Reasons  # noqa: PLC0415  (only failures need them)

        return Reasons(self._scenario, cycle, self._given)


class _Lazily:
    """The reasons of one cycle, loaded when the first one is asked for."""

    def __init__(self, checking: _Checking, cycle: PlayedCycle) -> None:
        self._checking, self._cycle = checking, cycle
        self._made: Reasons | None = None

    def _reasons(self) -> "Reasons | None":
        self._made = self._made or self._checking.reasons(self._cycle)
        return self._made

    def causes(self, job: str) -> Any:
        """Return the causes for which a job waits."""
        reasons = self._reasons()
        return () if reasons is None else reasons.causes(job)

    def because(self, found: list[Difference]) -> list[Difference]:
        """Return differences with their reasons."""
        reasons = self._reasons() if found and self._checking.explains else None
        return found if reasons is None else reasons.because(found)


class _Goal:
    """What must hold after some cycle: binds and evictions count from the first one on."""

    def __init__(self, wanted: Eventually) -> None:
        self._wanted = wanted
        self._seen: dict[tuple[str, str], Manifest] = {}
        self._so_far = Decisions()
        self._first: float | None = None
        self.last: PlayedCycle | None = None
        """The last cycle that counts."""
        self.missed: list[Difference] = []
        """What is still missing."""
        self._is_met = False

    def look(self, cycle: PlayedCycle, options: CompareOptions, explain: Explain) -> None:
        """Add a cycle."""
        if self._is_met or self._is_late(cycle):
            return
        self.last = cycle
        self._seen |= {(one["kind"], key_of(one)): one for one in cycle.objects}
        got, before = cycle.decisions, self._so_far
        stayed = {pod: node for pod, node in before.binds.items() if pod not in got.evictions}
        self._so_far = _joined(before, got, stayed)
        found = differences(
            [*self._seen.values()], self._wanted.record, self._so_far, options, explain
        )
        within = f"within {self._wanted.within}" if self._wanted.within else "by then"
        self.missed = [replace(one, text=f"not {within}: {one.text}") for one in found]
        self._is_met = not found

    def _is_late(self, cycle: PlayedCycle) -> bool:
        self._first = cycle.now if self._first is None else self._first
        within = self._wanted.within
        return within is not None and within.is_over(cycle.facts.number, cycle.now - self._first)

    def is_over(self, cycle: PlayedCycle) -> bool:
        """Return whether a quiet cycle ends the wait: it is met, late, or nothing will change."""
        return self._is_met or self._wanted.within is None or self._is_late(cycle)


def _joined(before: Decisions, got: Decisions, stayed: dict[str, str]) -> Decisions:
    """Return the decisions so far: of states those of the last cycle count."""
    return Decisions(
        binds={**stayed, **got.binds},
        evictions=[*before.evictions, *got.evictions],
        pipelined=got.pipelined,
        opened_gates=[*before.opened_gates, *got.opened_gates],
        reservations={**before.reservations, **got.reservations},
        volumes={**before.volumes, **got.volumes},
        pod_groups={**before.pod_groups, **got.pod_groups},
        nominated=got.nominated,
        queues=got.queues,
        unschedulable=got.unschedulable,
        task_statuses=got.task_statuses,
    )
