"""Find changes that get a waiting job started, each proved by running the cycle on a copy.

Trials are counted, so that an answer about a large cluster does not take forever.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from pumice.api.codes import Cause
from pumice.api.decisions import Decisions
from pumice.api.kinds import ENDED_PHASES, Manifest
from pumice.api.wording import counted, first_of, verb
from pumice.clock import Deadline
from pumice.controllers.job.state import podgroup_name
from pumice.diagnosis.changes import Change, Remove, Wait, chain
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.diagnosis.manifest_causes import causes_of, is_barred
from pumice.diagnosis.remedy.job_changes import Target
from pumice.diagnosis.remedy.table import Proposal, proposals
from pumice.diagnosis.runner import CYCLE_S, Replay, TrialResult, look, look_once, played
from pumice.errors import PumiceError
from pumice.examine.causes import Examiner
from pumice.examine.findings import Finding, ObjectRef
from pumice.examine.job_outcome import JobOutcome, Watcher

_NAMED: Final = 3
_MOST: Final = 120
_LEAST: Final = 30
_OBJECTS: Final = 400_000
"""Cycles that a search may run: fewer in a large cluster, where each takes longer."""
_MOST_PLAYS: Final = 40
_OBJECTS_PLAYED: Final = 20_000
"""The same for clusters that are played until they are at rest, which takes longer."""
_UNLUCKY: Final = 2
"""How much larger a change may become if the draw among equal nodes goes against the job."""
_MOST_PROVED: Final = 5_000
"""Objects of a cluster up to which it is played, with each remedy, until it is at rest."""
_MOST_BESIDE: Final = 40
"""Other waiting jobs of a large cluster that may evict pods in a trial."""
_SHARE: Final = 8
"""The part of the cycles left that one family of changes may take before one of them works."""
WANTED: Final = 6
"""Sufficient number of remedies."""
_STEPS: Final = 3
"""Maximum number of joined changes where one alone does not help."""
_TRIED_FOR_STEP: Final = 10
_Identity = tuple[Cause, ObjectRef | None]
_Working = Callable[[list[Change | None]], "Way | None"]


# What a change costs other jobs, and the job itself


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Pods that leave and jobs that wait because of a change."""

    evicted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Job to its pods that are evicted with the change and not without it."""
    held_back: Mapping[str, int] = field(default_factory=dict)
    """Job to how many of its pods start without the change and not with it."""
    restarted: int = 0
    """Pods of the job itself that run and are created again."""
    is_least: bool = False
    """Whether not all waiting jobs were tried, which may evict more."""

    @property
    def pods(self) -> list[str]:
        """The pods that are evicted."""
        return [pod for pods in self.evicted.values() for pod in pods]

    def outweighs(self, started: int) -> bool:
        """Return whether the job gives up as many running pods as it starts: nothing is gained."""
        return 0 < self.restarted >= started

    def texts(self, known: Iterable[str] = ()) -> list[str]:
        """Describe it, a clause each; evictions that are ``known`` already are left out."""
        found = []
        named = set(known)
        evicted = {job: [p for p in pods if p not in named] for job, pods in self.evicted.items()}
        evicted = {job: pods for job, pods in evicted.items() if pods}
        if evicted:
            also = "also " if named else ""
            least = "at least " if self.is_least else ""
            found.append(f"this {also}evicts {least}{_pods_of(evicted)}")
        if self.held_back:
            n, jobs = sum(self.held_back.values()), first_of(list(self.held_back), _NAMED)
            wait = f"that would start otherwise {verb(n, 'waits', 'wait')}"
            found.append(f"{counted(n, 'pod')} of {jobs} {wait}")
        if self.restarted:
            pods = f"its {counted(self.restarted, 'running pod')}"
            found.append(f"{pods} {verb(self.restarted, 'is', 'are')} created again")
        return found


def _pods_of(evicted: Mapping[str, list[str]]) -> str:
    """Write pods by job: one job with the names of its pods, several with their numbers."""
    n = sum(map(len, evicted.values()))
    if len(evicted) == 1:
        (job, pods), *_ = evicted.items()
        whose = f" of {job}" if job else ""
        return f"{counted(n, 'pod')}{whose} ({first_of(sorted(pods), _NAMED)})"
    listed = [
        f"{len(pods)} of {job}" if job else f"{len(pods)} of no job"
        for job, pods in evicted.items()
    ]
    return f"{counted(n, 'pod')}: {first_of(listed, _NAMED)}"


def cost_of(
    change: Change, world: ClusterState, job: str, before: TrialResult, after: TrialResult
) -> Cost:
    """Compare a world as it is with the changed one; ``job`` is the title of the job to help."""
    waited = _waited(change)
    evicted = {
        other: tuple(sorted(pods - before.evicted.get(other, frozenset())))
        for other, pods in after.evicted.items()
        if other != job
    }
    held_back = {
        other: len(pods - waited) - len(after.bound.get(other, ()))
        for other, pods in before.bound.items()
        if other != job
    }
    return Cost(
        evicted={other: pods for other, pods in evicted.items() if pods},
        held_back={other: n for other, n in held_back.items() if n > 0},
        restarted=restarted(change, world),
    )


def cost_of_cycle(
    change: Change, world: ClusterState, job: str, seen: Watcher, before: Decisions
) -> Cost:
    """Compare one cycle of the world and of the changed one, where playing on would take long."""
    after = seen.decisions
    known, waited = world.of_kind("Pod"), _waited(change)

    def of(pods: Iterable[str]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for pod in pods:
            group = group_of(known[pod]) if pod in known else ""
            other = world.title(group)
            if other != job and group not in seen.skipped:
                found.setdefault(other, []).append(pod)
        return found

    anyway = set(before.evictions)
    evicted = of(pod for pod in after.evictions if pod not in anyway)
    held = of(pod for pod in before.binds if pod not in after.binds and pod not in waited)
    return Cost(
        evicted={other: tuple(pods) for other, pods in evicted.items()},
        held_back={other: len(pods) for other, pods in held.items()},
        restarted=restarted(change, world),
        is_least=bool(seen.skipped),
    )


def _waited(change: Change) -> set[str]:
    """Name the pods that a change waits for."""
    return {pod for op in change.ops if isinstance(op, Wait) for pod in op.pods}


def restarted(change: Change, world: ClusterState) -> int:
    """Count the running pods that a change removes with the job that it submits again.

    Pods that are being deleted are not made again.
    """
    pods = world.of_kind("Pod")
    gone = {
        f"{op.namespace}/{op.name}"
        for op in change.ops
        if isinstance(op, Remove) and op.kind == "Pod"
    }
    return sum(
        bool(pods[key]["spec"].get("nodeName"))
        and (pods[key].get("status") or {}).get("phase") not in ENDED_PHASES
        and not pods[key]["metadata"].get("deletionTimestamp")
        for key in gone
        if key in pods
    )


# The search


@dataclass(frozen=True)
class Way:
    """A change that works, and its result."""

    change: Change
    outcome: JobOutcome
    works: bool
    in_s: float = 0.0
    """Seconds until the job starts, if the cluster was played."""
    cost: Cost = field(default_factory=Cost)

    @property
    def waits(self) -> bool:
        """Whether it is to wait for others to end, alone or with other changes."""
        return any(isinstance(op, Wait) for op in self.change.ops)


@dataclass(frozen=True)
class Step:
    """One of several changes that are joined."""

    proposal: Proposal
    size: int
    change: Change


@dataclass
class Search:
    """One search for changes that start a job."""

    world: ClusterState
    job: str
    replay: Replay
    before: Decisions = field(default_factory=Decisions)
    """The next cycle without any change."""
    cycles: int = 1
    left: int = _MOST
    plays: int = _MOST_PLAYS
    """How many times a changed cluster may still be played until it is at rest."""
    promised: bool = False
    """Whether the job is promised a place that it does not get: a promise alone is no help."""
    deadline: Deadline = field(default_factory=Deadline)
    """When to stop, with what is found by then."""
    tried: dict[str, Way | None] = field(default_factory=dict)
    """The result of each change that was tried; None: it cannot be made."""

    _last: tuple[Change, ClusterState] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        objects = max(1, len(self.world.objects))
        self.left = max(_LEAST, min(_MOST, _OBJECTS // objects))
        self.plays = 0 if self._is_large else min(_MOST_PLAYS, _OBJECTS_PLAYED // objects)

    def ways(self, causes: list[Finding]) -> list[Way]:
        """Find single changes that work; if none does but waiting, up to three that do together."""
        steps: list[Step] = []
        world, waits = self.world, list[Way]()
        for _ in range(_STEPS):
            found = self._single(world, causes, steps)
            acts = [way for way in found if not way.waits]
            if acts:
                return [*acts, *waits] if waits else found
            waits = waits or found
            step = self._step(world, causes, steps) if causes else None
            if step is None:
                break
            steps = [*steps, step]
            enough = self._enough(steps)
            if enough is not None:
                return waits if waits and enough.waits else [enough, *waits]
            world = _joined(steps)(self.world)
            causes = self._causes(world)
        return waits

    def _causes(self, world: ClusterState) -> list[Finding]:
        self.replay.become(world)
        examiner = Examiner(self._key(world))
        self.replay.decide(examiner)
        return causes_of(world, examiner)

    def _single(self, world: ClusterState, causes: list[Finding], prefix: list[Step]) -> list[Way]:
        found: dict[str, Way] = {}
        done: set[str] = set()
        for proposal in proposals(Target(world, self._key(world)), causes):
            if proposal.group in done or len(found) >= WANTED:
                continue
            if self._is_late():
                break
            least = self._smallest(proposal, prefix)
            way = None if least is None else self._way(prefix, *least, proposal, found)
            if way is not None:
                found.setdefault(way.change.text, way)
                done |= {proposal.group} - {""}
        ways = sorted(found.values(), key=lambda way: len(way.change.ops))
        return [way for way in ways if not any(_is_part(other, way) for other in ways)]

    def _way(
        self, prefix: list[Step], size: int, best: Way, last: Proposal, known: Mapping[str, Way]
    ) -> Way | None:
        """Return the least of some joined changes that is proved to work; None if none is."""
        end = last.make(size) if prefix else None
        way = self._pruned(prefix, best, end, self._working)
        if way.change.text in known:
            return way
        proved = self._proved(way)
        if proved is None and way is not best:  # it helps in one cycle only
            proved = self._proved(self._pruned(prefix, best, end, self._played_with))
        return proved

    def _proved(self, way: Way) -> Way | None:
        """Return a way with its cost; None if the job does not start by it after all.

        Both sides are played until they are at rest, unless the cluster is large.
        """
        title, outcome = self.world.title(self.job), way.outcome
        if self._is_large:
            return self._proved_alone(way)
        world = self._changed(way.change)
        key = self._key(world)
        after = played(world, key)
        if not after.started and (outcome.started or outcome.makes_room):
            return way if _has_older_name(world, key) else None
        way = replace(way, cost=cost_of(way.change, self.world, title, self._unchanged, after))
        if way.cost.outweighs(len(after.bound.get(title, ()))):
            return None
        if not outcome.started or not after.started:
            return replace(way, in_s=way.in_s or after.in_s)
        # pods that are made once it is admitted come a cycle later, and may find less room
        seen = replace(after.outcome, cycle=outcome.cycle)
        return replace(way, outcome=seen, in_s=after.in_s if after.in_s > CYCLE_S else 0.0)

    def _proved_alone(self, way: Way) -> Way | None:
        """Return a way with what the next cycle costs others; None if the job does not start by it.

        If it waits for leaving pods, it is tried without them and without other waiting jobs.
        """
        world, outcome = self._changed(way.change), way.outcome
        key, pods = self._key(world), len(outcome.binds)
        if outcome.started:
            self.replay.become(world)
            seen = look_once(self.replay, key, beside=_MOST_BESIDE)
            way = replace(way, cost=self._cost(way.change, seen))
        elif outcome.makes_room:
            gone = {*outcome.victims, *outcome.makes_way, *outcome.leaving}
            self.replay.become(world.edited(lambda one: None if _is_pod(one, gone) else one))
            after = look_once(self.replay, key, beside=0).outcome
            if not after.started:
                return way if _has_older_name(world, key) else None
            way, pods = replace(way, in_s=way.in_s or outcome.leaves_in_s), len(after.binds)
        return None if pods and way.cost.outweighs(pods) else way

    def _smallest(self, proposal: Proposal, prefix: list[Step]) -> tuple[int, Way] | None:
        """Find the smallest size that works; None if none of the sizes tried does.

        A larger change may help where a smaller one does, or not: another job may take what it
        adds.  So sizes are tried upwards, and those below the first that works are searched again.
        """
        failed = 0
        for size in _sizes(proposal.largest, max(2, self.left // _SHARE)):
            way = self._try(proposal, size, prefix)
            if way is not None and way.works:
                least, way = self._shrink(proposal, failed, size, way, prefix)
                return self._least_played(proposal, least, way, prefix)
            failed = size
        return None

    def _shrink(
        self, proposal: Proposal, failed: int, size: int, best: Way, prefix: list[Step]
    ) -> tuple[int, Way]:
        """Halve the distance between a size that fails and one that works."""
        while size - failed > 1 and self.left:
            middle = (failed + size) // 2
            way = self._try(proposal, middle, prefix)
            if way is not None and way.works:
                best, size = way, middle
            else:
                failed = middle
        return size, best

    def _least_played(
        self, proposal: Proposal, size: int, best: Way, prefix: list[Step]
    ) -> tuple[int, Way]:
        """Find the smallest size with which the job starts by the time the cluster is at rest.

        It may be another one than in one cycle: jobs are admitted in one and placed in the next,
        and among equal nodes one is drawn.
        """
        if proposal.largest == 1 or not self.plays or self._starts_unchanged:
            return size, best
        if size <= self.plays:
            for each in range(1, min(proposal.largest, size + _UNLUCKY, self.plays) + 1):
                way = self._play(proposal, each, prefix)
                if way is not None:
                    return each, way
            return size, best
        failed = 0
        while size - failed > 1 and self.plays:
            middle = (failed + size) // 2
            way = self._play(proposal, middle, prefix)
            if way is not None:
                best, size = way, middle
            else:
                failed = middle
        return size, best

    @cached_property
    def _starts_unchanged(self) -> bool:
        """Whether the job starts without any change once the cluster is at rest."""
        return self._unchanged.started

    @cached_property
    def _unchanged(self) -> TrialResult:
        """What happens without any change."""
        return played(self.world, self.job)

    def _play(self, proposal: Proposal, size: int, prefix: list[Step]) -> Way | None:
        """Play the cluster with a change until it is at rest; None if the job does not start."""
        change = proposal.make(size)
        self.plays -= 1
        return None if change is None else self._played(_joined(prefix, change))

    def _played(self, whole: Change) -> Way | None:
        known = self.tried.get(whole.text)
        try:
            world = self._changed(whole)
        except PumiceError:
            return None
        seen = played(world, self._key(world), until_started=True)
        if not seen.started or is_barred(world, self._key(world)):
            return None
        if known is not None and known.works:
            return known
        return Way(whole, seen.outcome, works=True, in_s=seen.in_s)

    # Several changes that help together

    def _step(self, world: ClusterState, causes: list[Finding], prefix: list[Step]) -> Step | None:
        """Find the first change that removes the decisive cause."""
        decisive = _identity(causes[0])
        target = Target(world, self._key(world))
        for number, proposal in enumerate(proposals(target, causes[:1])):
            if number >= _TRIED_FOR_STEP or self._is_late():
                return None
            for size in dict.fromkeys((1, proposal.largest)):  # too much may not be admitted
                change = proposal.make(size) if self.left else None
                if change is None:
                    continue
                self.left -= 1
                try:
                    after = self._causes(_joined(prefix, change)(self.world))
                except PumiceError:
                    continue
                if decisive not in set(map(_identity, after)):
                    return self._least(Step(proposal, size, change), prefix, decisive)
        return None

    def _least(self, best: Step, prefix: list[Step], decisive: _Identity) -> Step:
        """Halve the size of a step while it still removes its cause."""
        low = 1
        while low < best.size and self.left:
            middle = (low + best.size) // 2
            change = best.proposal.make(middle)
            self.left -= 1
            after = self._causes(_joined(prefix, change)(self.world)) if change else []
            if change is not None and decisive not in set(map(_identity, after)):
                best = Step(best.proposal, middle, change)
            else:
                low = middle + 1
        return best

    def _enough(self, steps: list[Step]) -> Way | None:
        """Return some steps as a way, if the job starts by them once leaving pods are gone."""
        if not self.plays or self._starts_unchanged:
            return None
        self.plays -= 1
        way = self._played(_joined(steps))
        return way and self._proved(self._pruned(steps, way, None, self._played_with))

    def _pruned(self, steps: list[Step], best: Way, end: Change | None, working: _Working) -> Way:
        """Leave out what is not needed of some steps before an end.

        Each of them is the least that removes its own cause; with the others, less may do.
        """
        kept: list[Change | None] = [step.change for step in steps]
        for place, step in enumerate(steps):
            failed, size = -1, step.size
            while size - failed > 1 and self.left:
                middle = (failed + size) // 2
                less = step.proposal.make(middle) if middle else None
                some = [*kept[:place], less, *kept[place + 1 :], end]
                way = working(some) if less is not None or not middle else None
                if way is None:
                    failed = middle
                else:
                    best, size, kept[place] = way, middle, less
        return best

    def _working(self, changes: list[Change | None]) -> Way | None:
        """Return changes as a way, if they help together: in a cycle, or once all is at rest."""
        way = self._seen(_whole(changes))
        return way if way is not None and way.works else self._played_with(changes)

    def _played_with(self, changes: list[Change | None]) -> Way | None:
        """Return changes as a way, if they help together once all is at rest."""
        if not self.plays or not any(changes) or self._starts_unchanged:
            return None
        self.plays -= 1
        return self._played(_whole(changes))

    # One try

    def _try(self, proposal: Proposal, size: int, prefix: list[Step]) -> Way | None:
        """Run the cycle with a change; None if it cannot be made or the budget is used up."""
        change = proposal.make(size)
        return None if change is None else self._seen(_joined(prefix, change))

    def _seen(self, whole: Change) -> Way | None:
        if whole.text not in self.tried:
            if self._is_late() or not self.left:
                return None
            self.left -= 1
            self.tried[whole.text] = self._run(whole)
        return self.tried[whole.text]

    def _run(self, change: Change) -> Way | None:
        try:
            world = self._changed(change)
        except PumiceError:  # the rules of admission refuse it
            return None
        key = self._key(world)
        seen = (
            look(world, key, self.cycles, Watcher) if self.cycles > 1 else self._cycle(world, key)
        )
        helps = works(seen.outcome, world) and not is_barred(world, key)
        if helps and self.promised and not seen.outcome.started:
            self.plays -= 1
            helps = self.plays >= 0 and played(world, key, until_started=True).started
        return Way(change, seen.outcome, helps, cost=self._cost(change, seen))

    def _changed(self, change: Change) -> ClusterState:
        """Return the cluster with a change; a change that works is asked for again at once."""
        if self._last is None or self._last[0] is not change:
            self._last = change, change(self.world)
        return self._last[1]

    def _cycle(self, world: ClusterState, key: str) -> Watcher:
        """Run the next cycle of a changed world, as far as it is needed.

        A job that does not start if no other waits does not start beside them, and that is seen at
        once.  In a large cluster one that starts without evictions is not tried with them, and
        one that needs them is tried beside the first jobs in line: each may evict many pods.
        """
        self.replay.become(world)
        alone = look_once(self.replay, key, beside=0)
        if not works(alone.outcome, world):
            return alone
        if not self._is_large:
            return look_once(self.replay, key)
        if alone.outcome.started:
            return look_once(self.replay, key, evicting=False)
        return look_once(self.replay, key, beside=_MOST_BESIDE)

    def _cost(self, change: Change, seen: Watcher) -> Cost:
        """Return what one cycle of a changed world costs others."""
        title = self.world.title(self.job)
        return cost_of_cycle(change, self.world, title, seen, self.before)

    def _is_late(self) -> bool:
        """Return whether the time is up; nothing more is tried then."""
        is_late = self.deadline.is_over
        if is_late:
            self.left = self.plays = 0
        return is_late

    @property
    def _is_large(self) -> bool:
        """Whether playing the cluster takes long."""
        return len(self.world.objects) > _MOST_PROVED

    def _key(self, world: ClusterState) -> str:
        """Name the job's pod group: another one, if it was submitted again."""
        title = self.world.title(self.job)
        return self.job if self.job in world.groups else world.group_titled(title)


def _is_part(less: Way, more: Way) -> bool:
    """Return whether a change does what another does, and does without some of it."""
    ops = more.change.ops
    return len(less.change.ops) < len(ops) and all(op in ops for op in less.change.ops)


def _joined(steps: list[Step], last: Change | None = None) -> Change:
    """Join steps, and a last change, to one."""
    return _whole([*(step.change for step in steps), last])


def _whole(changes: list[Change | None]) -> Change:
    some = [each for each in changes if each is not None]
    return some[0] if len(some) == 1 else chain(some)


def _sizes(largest: int, most: int) -> list[int]:
    """Return sizes to try: the smallest, each about twice the one before, and the largest."""
    factor = max(2.0, largest ** (1 / max(1, most - 1)))
    sizes, size = [], 1.0
    while round(size) < largest:
        sizes.append(round(size))
        size *= factor
    return [*sizes, largest]


def _is_pod(one: Manifest, names: Container[str]) -> bool:
    return one["kind"] == "Pod" and key_of(one) in names


def _has_older_name(world: ClusterState, group: str) -> bool:
    """Return whether controllers would make another pod group: older ones named it differently."""
    job = world.job_of(group)
    if job is None or not job["metadata"].get("uid"):
        return False
    return group.rpartition("/")[2] != podgroup_name(job)


def _identity(finding: Finding) -> _Identity:
    """Return the identity of a finding: its code and its object; nodes are all alike."""
    about = finding.about
    return finding.code, None if about is None or about.kind == "Node" else about


def works(outcome: JobOutcome, world: ClusterState) -> bool:
    """Return whether a job starts, or only waits for leaving pods or for its own to be created."""
    if outcome.started or outcome.makes_room:
        return True
    return outcome.is_admitted and not world.pods_by_group.get(outcome.job)
