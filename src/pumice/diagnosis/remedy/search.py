"""Find changes that get a waiting job started, each proved by running the cycle on a copy.

Trials are counted, so that an answer about a large cluster does not take forever.
"""

from dataclasses import dataclass, field
from typing import Final

from pumice.api.codes import Cause
from pumice.diagnosis.causes import causes_of
from pumice.diagnosis.changes import Change, chain
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.remedy.proposals import Proposal, proposals
from pumice.diagnosis.remedy.target import Target
from pumice.diagnosis.replay import Replay
from pumice.diagnosis.trials import look
from pumice.errors import PumiceError
from pumice.examine.examiner import Examiner
from pumice.examine.findings import Finding, ObjectRef
from pumice.examine.job_outcome import JobOutcome

_MOST: Final = 120
_LEAST: Final = 30
_OBJECTS: Final = 400_000
"""Cycles that a search may run: fewer in a large cluster, where each takes longer."""
WANTED: Final = 6
"""Sufficient number of remedies."""
_STEPS: Final = 3
"""Maximum number of joined changes where one alone does not help."""
_TRIED_FOR_STEP: Final = 10


_Identity = tuple[Cause, ObjectRef | None]


@dataclass(frozen=True)
class Way:
    """A change that works, and its result."""

    change: Change
    outcome: JobOutcome
    works: bool


@dataclass
class Search:
    """One search for changes that start a job."""

    world: ClusterState
    job: str
    replay: Replay
    cycles: int = 1
    left: int = _MOST
    tried: dict[str, Way | None] = field(default_factory=dict)
    """The result of each change that was tried; None: it cannot be made."""

    def __post_init__(self) -> None:
        self.left = max(_LEAST, min(_MOST, _OBJECTS // max(1, len(self.world.objects))))

    def ways(self, causes: list[Finding]) -> list[Way]:
        """Find single changes that work; if there is none, up to three that do together."""
        prefix: list[Change] = []
        world = self.world
        for _ in range(_STEPS):
            found = self._single(world, causes, prefix)
            if found or not causes:
                return found
            step = self._step(world, causes, prefix)
            if step is None:
                return []
            prefix = [*prefix, step]
            world = chain(prefix)(self.world)
            causes = self._causes(world)
        return []

    def _causes(self, world: ClusterState) -> list[Finding]:
        self.replay.become(world)
        examiner = Examiner(self._key(world))
        self.replay.decide(examiner)
        return causes_of(world, examiner)

    def _single(
        self, world: ClusterState, causes: list[Finding], prefix: list[Change]
    ) -> list[Way]:
        found: list[Way] = []
        done: set[str] = set()
        for proposal in proposals(Target(world, self._key(world)), causes):
            if proposal.group in done or len(found) >= WANTED:
                continue
            way = self._smallest(proposal, prefix)
            if way is not None:
                found.append(way)
                done |= {proposal.group} - {""}
        return sorted(found, key=lambda way: len(way.change.ops))

    def _smallest(self, proposal: Proposal, prefix: list[Change]) -> Way | None:
        """Find the smallest size that works; None if neither the smallest nor the largest does."""
        way = self._try(proposal, 1, prefix)
        if way is not None and way.works:
            return way
        if proposal.largest == 1:
            return None
        way = self._try(proposal, proposal.largest, prefix)
        if way is None or not way.works:
            return None
        return self._shrink(proposal, way, prefix)

    def _shrink(self, proposal: Proposal, best: Way, prefix: list[Change]) -> Way:
        """Halve the size of a change while it still works."""
        low, high = 2, proposal.largest
        while low < high and self.left:
            middle = (low + high) // 2
            way = self._try(proposal, middle, prefix)
            if way is not None and way.works:
                best, high = way, middle
            else:
                low = middle + 1
        return best

    def _step(
        self, world: ClusterState, causes: list[Finding], prefix: list[Change]
    ) -> Change | None:
        """Find the first change that removes the decisive cause."""
        decisive = _identity(causes[0])
        target = Target(world, self._key(world))
        for number, proposal in enumerate(proposals(target, causes[:1])):
            if number >= _TRIED_FOR_STEP or not self.left:
                return None
            change = proposal.make(proposal.largest)
            if change is None:
                continue
            self.left -= 1
            try:
                after = self._causes(chain([*prefix, change])(self.world))
            except PumiceError:
                continue
            if decisive not in set(map(_identity, after)):
                return self._least(proposal, change, prefix, decisive)
        return None

    def _least(
        self,
        proposal: Proposal,
        best: Change,
        prefix: list[Change],
        decisive: _Identity,
    ) -> Change:
        """Halve the size of a step while it still removes its cause."""
        low, high = 1, proposal.largest
        while low < high and self.left:
            middle = (low + high) // 2
            change = proposal.make(middle)
            self.left -= 1
            after = self._causes(chain([*prefix, change])(self.world)) if change else []
            if change is not None and decisive not in set(map(_identity, after)):
                best, high = change, middle
            else:
                low = middle + 1
        return best

    def _try(self, proposal: Proposal, size: int, prefix: list[Change]) -> Way | None:
        """Run the cycle with a change; None if it cannot be made or the budget is used up."""
        change = proposal.make(size)
        if change is None:
            return None
        whole = chain([*prefix, change]) if prefix else change
        if whole.text not in self.tried:
            if not self.left:
                return None
            self.left -= 1
            self.tried[whole.text] = self._run(whole)
        return self.tried[whole.text]

    def _run(self, change: Change) -> Way | None:
        try:
            world = change(self.world)
        except PumiceError:  # the rules of admission refuse it
            return None
        outcome = look(world, self._key(world), self.cycles, self.replay)
        return Way(change, outcome, works(outcome, world))

    def _key(self, world: ClusterState) -> str:
        """Name the job's pod group: another one, if it was submitted again."""
        title = self.world.title(self.job)
        return self.job if self.job in world.groups else world.group_titled(title)


def _identity(finding: Finding) -> _Identity:
    """Return the identity of a finding: its code and its object; nodes are all alike."""
    about = finding.about
    return finding.code, None if about is None or about.kind == "Node" else about


def works(outcome: JobOutcome, world: ClusterState) -> bool:
    """Return whether a job starts, or only waits for leaving pods or for its own to be created."""
    if outcome.started or outcome.makes_room:
        return True
    return outcome.is_admitted and not world.pods_by_group.get(outcome.job)
