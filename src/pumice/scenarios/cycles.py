"""Play the cycles of a scenario: decide, let the cluster become what was decided, decide again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

from pumice.api.annotations import EXPECTED
from pumice.api.conf import SchedulerConf, parse_conf
from pumice.api.cycle_facts import CycleFacts
from pumice.api.decisions import Decisions
from pumice.api.kinds import KUBE_POD_GROUP, Manifest, is_bare, kind_of
from pumice.cluster.embedded.claim_changes import with_made_claims
from pumice.errors import ConfError, ManifestError
from pumice.scenarios.objects import advance, is_job, key_of
from pumice.scenarios.scenario import Scenario
from pumice.scenarios.steps import applied

_parsed = lru_cache(maxsize=16)(parse_conf)  # the cases of a folder mostly share theirs


class CycleScheduler(Protocol):
    """The runner's interface to a scheduler; it may keep state between cycles.

    For invariants ``cycle`` is also given an ``observer``, as that of Pumice's own is.
    """

    def cycle(
        self,
        objects: Sequence[Mapping[str, Any]],
        now: float,
        node_usage: Mapping[str, Mapping[str, float]],
    ) -> Decisions:
        """Decide one cycle on the given world."""


SchedulerFactory = Callable[[SchedulerConf, int], CycleScheduler]
"""Make a scheduler for a configuration and a seed; must be picklable for several processes."""


@dataclass(frozen=True)
class PlayedCycle:
    """One cycle: the cluster it started with and its decisions."""

    objects: list[Manifest]
    decisions: Decisions
    refused: Mapping[str, str] = field(default_factory=dict)
    """Pods that are not among the objects because an API server refuses them, to its words."""
    now: float = 0.0
    usage: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    facts: CycleFacts = field(default_factory=CycleFacts)
    """What it did; only the number and what follows from the decisions, if nobody asked."""
    steps_left: bool = False
    """Whether something is still to change from outside."""

    @property
    def may_be_last(self) -> bool:
        """Whether nothing changes any more, by what is decided and from outside."""
        return self.facts.is_quiet and not self.steps_left


def scheduler_of(scenario: Scenario, make_scheduler: SchedulerFactory) -> CycleScheduler:
    """Make the scheduler of a scenario.

    Raises:
        ConfError: The configuration of the scenario cannot be used.
    """
    try:
        conf = replace(_parsed(scenario.conf, source=""), queue_gates=scenario.queue_gates)
        return make_scheduler(conf, scenario.seed)
    except ConfError as error:  # it knows the text and the plugins, but not where the text is from
        error.file = error.file or scenario.conf_source
        raise


def play(scenario: Scenario, make_scheduler: SchedulerFactory) -> list[PlayedCycle]:
    """Run all cycles of a scenario; the clock advances by its interval for each.

    One that states no number of cycles ends once nothing changes any more.

    Raises:
        ConfError: The configuration of the scenario cannot be used.
        ManifestError: An object cannot be used; names its file and line.
    """
    played = []
    for cycle in played_cycles(scenario, scheduler_of(scenario, make_scheduler)):
        played.append(cycle)
        if scenario.until_quiet and cycle.may_be_last:
            break
    return played


def played_cycles(
    scenario: Scenario, scheduler: CycleScheduler, *, observed: bool = False
) -> Iterator[PlayedCycle]:
    """Yield the cycles of a scenario as they are decided; ``observed`` ones with all their facts.

    Raises:
        ManifestError: An object cannot be used; names its file and line.
    """
    objects, refused = _first_objects(scenario)
    evicted, phases = 0, _phases(objects)
    steps, changed, changed_at = list(scenario.steps), 0, scenario.now
    for number in range(1, scenario.cycles + 1):
        now = scenario.now + (number - 1) * scenario.interval
        due = [step for step in steps if step.is_due(number, now - scenario.now)]
        for step in due:
            objects = applied(step, objects, now, scenario.path)
            steps.remove(step)
        if due:
            changed, changed_at = number - 1, now
        usage = {name: {"metricsTime": now, **one} for name, one in scenario.node_usage.items()}
        try:
            decisions, facts = _decide(scheduler, objects, now, usage, observed=observed)
        except ManifestError as error:
            raise scenario.placed(error) from error
        after = phases | {job: state.phase for job, state in decisions.pod_groups.items()}
        quiet = not (decisions.binds or decisions.evictions or decisions.opened_gates)
        facts = replace(
            facts,
            number=number,
            now=now,
            objects=objects,
            decisions=decisions,
            evicted_before=evicted,
            since_change=number - changed,
            seconds_since_change=now - changed_at,
            is_quiet=quiet and after == phases,
        )
        yield PlayedCycle(objects, decisions, refused, now, usage, facts, bool(steps))
        evicted, phases = evicted + len(decisions.evictions), after
        objects = advance(objects, decisions, requeues=scenario.requeues)


def _decide(
    scheduler: CycleScheduler,
    objects: list[Manifest],
    now: float,
    usage: Mapping[str, Mapping[str, float]],
    *,
    observed: bool,
) -> tuple[Decisions, CycleFacts]:
    if not observed:
        return scheduler.cycle(objects, now, usage), CycleFacts()
    from pumice.examine.cycle_facts import FactsObserver  # noqa: PLC0415  (loads NumPy)

    observer = FactsObserver()
    cycle: Any = scheduler.cycle
    return cycle(objects, now, usage, observer=observer), observer.facts


def _phases(objects: Sequence[Manifest]) -> dict[str, str]:
    groups = (one for one in objects if one["kind"] == "PodGroup")
    return {key_of(one): (one.get("status") or {}).get("phase") or "" for one in groups}


def _first_objects(scenario: Scenario) -> tuple[list[Manifest], dict[str, str]]:
    """Return the objects of the first cycle, and the pods that resource quotas refuse, with why.

    Raises:
        ManifestError: A job cannot be used; names its file and line.
    """
    if not any(is_job(one) or _is_expected(one) for one in scenario.objects):
        return with_made_claims(scenario.objects), {}
    from pumice.scenarios.made_objects import with_made_objects  # noqa: PLC0415  (loads controllers)

    return with_made_objects(scenario)


def _is_expected(one: Manifest) -> bool:
    """Return whether a controller has still to make an object, or a group that follows it."""
    if one["kind"] == "PodGroup":
        return kind_of(one) == KUBE_POD_GROUP
    marked = EXPECTED in (one["metadata"].get("annotations") or ())
    return one["kind"] == "Pod" and (marked or is_bare(one))
