"""Find changes that make a waiting job start, each proved by running the cycle on a copy.

Trials are counted, so that an answer about a large cluster does not take forever.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pumice.api.kinds import Manifest
from pumice.diagnosis.changes import Change
from pumice.diagnosis.cluster_state import ClusterState, group_of
from pumice.diagnosis.edits import Edit, Remedy, chain
from pumice.diagnosis.job_outcome import JobOutcome, look
from pumice.diagnosis.remedies import remedies
from pumice.diagnosis.replay import Replay

_MOST, _LEAST, _OBJECTS = 80, 24, 400_000
"""Cycles that a search may run: fewer in a large cluster, where each takes longer."""
WANTED = 6
"""Remedies that are enough."""
_STEPS = 3
"""Changes that are joined at most where one alone does not help."""


@dataclass(frozen=True)
class Way:
    """A change that works, and what then happens."""

    change: Edit | Change
    outcome: JobOutcome

    @property
    def text(self) -> str:
        """Say what to do."""
        return self.change.text


@dataclass
class Search:
    """One search for ways to get a job started."""

    world: ClusterState
    job: str
    replay: Replay
    cycles: int = 1
    left: int = _MOST
    tried: dict[str, JobOutcome] = field(default_factory=dict)
    """What came of each change that was tried."""

    def __post_init__(self) -> None:
        self.left = max(_LEAST, min(_MOST, _OBJECTS // max(1, len(self.world.objects))))

    def starts_without(self, others: Sequence[str]) -> bool:
        """Say whether the job would start if some other jobs asked for nothing."""
        gone = set(others)
        change = Edit(
            "without the jobs before it",
            lambda world: world.edited(
                lambda one: (
                    None
                    if one["kind"] == "Pod" and group_of(one) in gone and not _has_node(one)
                    else one
                )
            ),
        )
        way = self._try(change, [])
        return way is not None and way.outcome.started

    def ways(self, outcome: JobOutcome) -> list[Way]:
        """Find single changes that work; if there is none, up to three changes that do together."""
        prefix: list[Edit | Change] = []
        world = self.world
        for _ in range(_STEPS):
            found = self._single(world, outcome, prefix)
            if found:
                return found
            step = self._best_step(world, outcome, prefix)
            if step is None:
                return []
            prefix = [step.change]
            world, outcome = chain(prefix)(self.world), step.outcome
        return []

    def _single(
        self, world: ClusterState, outcome: JobOutcome, prefix: list[Edit | Change]
    ) -> list[Way]:
        found: list[Way] = []
        done: set[str] = set()
        for remedy in remedies(world, outcome):
            if remedy.group in done or len(found) >= WANTED:
                continue
            way = self._smallest(remedy, prefix)
            if way is not None:
                found.append(way)
                done |= {remedy.group} - {""}
        return found

    def _smallest(self, remedy: Remedy, prefix: list[Edit | Change]) -> Way | None:
        """Find the smallest size that works; None if the largest does not."""
        way = self._try(remedy.make(remedy.largest), prefix)
        if way is None or not _works(way.outcome):
            return None
        return self._shrink(remedy, way, prefix, _works)

    def _shrink(
        self,
        remedy: Remedy,
        best: Way,
        prefix: list[Edit | Change],
        good: Callable[[JobOutcome], bool],
    ) -> Way:
        """Halve the size of a remedy while what comes of it stays good."""
        low, high = 1, remedy.largest
        while low < high and self.left:
            middle = (low + high) // 2
            way = self._try(remedy.make(middle), prefix)
            if way is not None and good(way.outcome):
                best, high = way, middle
            else:
                low = middle + 1
        return best

    def _best_step(
        self, world: ClusterState, outcome: JobOutcome, prefix: list[Edit | Change]
    ) -> Way | None:
        """Find the change that brings the job furthest, if any brings it further at all."""
        best: tuple[Remedy, Way] | None = None
        for remedy in remedies(world, outcome):
            way = self._try(remedy.make(remedy.largest), prefix)
            if way is None or _progress(way.outcome) <= _progress(outcome):
                continue
            if best is None or _progress(way.outcome) > _progress(best[1].outcome):
                best = remedy, way
        if best is None:
            return None
        far = _progress(best[1].outcome)
        return self._shrink(*best, prefix, lambda each: _progress(each) >= far)

    def _try(self, change: Edit | Change, prefix: list[Edit | Change]) -> Way | None:
        """Run the cycle with a change; None when the budget is used up."""
        whole = chain([*prefix, change]) if prefix else change
        known = self.tried.get(whole.text)
        if known is None:
            if not self.left:
                return None
            self.left -= 1
            world = whole(self.world)
            known = self.tried[whole.text] = look(world, self.job, self.cycles, self.replay)
        return Way(whole, known)


def _has_node(pod: Manifest) -> bool:
    return bool((pod.get("spec") or {}).get("nodeName"))


def _works(outcome: JobOutcome) -> bool:
    return outcome.started or outcome.makes_room or outcome.is_admitted


def _progress(outcome: JobOutcome) -> tuple[bool, int, int, float]:
    """Measure how far a job came: stages, then pods with a place, then how little is missing."""
    placed = outcome.found_node + outcome.waiting
    return outcome.listed, outcome.reached, placed, -_missing(outcome)


def _missing(outcome: JobOutcome) -> float:
    """Say what part of its request is missing where it stopped; infinite if no amount would do."""
    numbers = outcome.last.numbers if outcome.last is not None else {}
    if numbers.get("lacks"):
        need, lacks = numbers["need"], numbers["lacks"]
        return max(lacks[name] / need.get(name, lacks[name]) for name in lacks)
    if numbers.get("request"):
        over = numbers["used"] + numbers["request"] - numbers["limit"]
        return float(over / numbers["request"])
    return math.inf
