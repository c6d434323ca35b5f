"""Cycles that admit and start gangs of equal pods without a session.

Such jobs have nothing to do with each other but limits, order and nodes: limits and the order of
queues come from the same values as in a session, compared as plugins compare them, and nodes are
asked of the same hooks.  Where anything else may count an ordinary cycle decides.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pumice.core.resources import PODS, STEP
from pumice.core.views import Task
from pumice.framework.placement.ahead import has_plain_shape
from pumice.framework.placing import Placing
from pumice.framework.queue_limits.limits import ClusterLimit
from pumice.framework.queue_limits.weighted import WeightedLimits
from pumice.scheduler import Scheduler
from pumice.sim.bounds import Bounds
from pumice.sim.job_classes import JobClass
from pumice.sim.job_run import JobRun
from pumice.sim.kept_placing import KeptPlacings
from pumice.sim.shortcuts import Shortcuts
from pumice.sim.sim_cluster import SimCluster

QueueKey = tuple[float | str, ...]
"""Keys of the policy, age and name of a queue; the least goes first."""


def _by_queue(runs: Iterable[JobRun]) -> dict[str, list[JobRun]]:
    found: dict[str, list[JobRun]] = {}
    for run in runs:
        found.setdefault(run.kind.queue, []).append(run)
    return found


def _queue_key(bounds: Bounds, queue: str, held: list[float] | None = None) -> QueueKey:
    """Return the place of a queue in their order, at present or with what it will hold."""
    queues, limits = bounds.snapshot.queues, bounds.limits
    row = queues.row_of[queue]
    policy: tuple[float, ...] = ()
    if bounds.by_share and isinstance(limits, WeightedLimits):
        amounts = bounds.held(row) if held is None else held
        policy = limits.key_of(row, amounts, bounds.deserved(limits, row))
    return *policy, float(queues.created[row]), queue


class Admission:
    """Admits jobs in the order of queues, as long as all limits on reservations are kept."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._taken: dict[tuple[str, int], float] = {}
        """Reserved by the jobs admitted so far, by queue ("" for all of them) and resource."""
        self._used_and_limits: dict[str, list[tuple[str, list[float], list[float]]]] = {}

    def admit(self, runs: Sequence[JobRun]) -> list[JobRun]:
        """Return those of some jobs, oldest first, that are admitted."""
        if len(runs) == 1:
            return [*runs] if self._admits(runs[0]) else []
        by_queue = _by_queue(runs)
        order = [*by_queue]
        if len(order) > 1 and not self._has_clear_room(runs, order):
            order.sort(key=lambda queue: _queue_key(self._bounds, queue))
        return [run for queue in order for run in by_queue[queue] if self._admits(run)]

    def _has_clear_room(self, runs: Sequence[JobRun], queues: Iterable[str]) -> bool:
        """Return whether all jobs are admitted in any order."""
        needed: dict[int, float] = {}
        for run in runs:
            for at, amount in run.kind.reserved_amounts:
                needed[at] = needed.get(at, 0.0) + amount
        rooms = [self._bounds.clear_room(queue) for queue in queues]
        return all(room[at] >= amount for room in rooms for at, amount in needed.items())

    def _admits(self, run: JobRun) -> bool:
        kind, taken, get = run.kind, self._taken, self._taken.get
        room = self._bounds.clear_room(kind.queue)
        if any(room[at] - get(("", at), 0.0) < amount for at, amount in kind.reserved_amounts):
            for name, used, limit in self._limits_of(kind.queue):
                for at, amount in kind.reserved_amounts:
                    if used[at] + get((name, at), 0.0) + amount > limit[at]:
                        return False
        for name in ("", kind.queue):
            for at, amount in kind.reserved_amounts:
                taken[name, at] = get((name, at), 0.0) + amount
        return True

    def _limits_of(self, queue: str) -> list[tuple[str, list[float], list[float]]]:
        """List limits with what counts against them: whose reservations, used, limit."""
        known = self._used_and_limits.get(queue)
        if known is None:
            row, known = self._bounds.snapshot.queues.row_of[queue], []
            for limit in self._bounds.admission_limits:
                if isinstance(limit, ClusterLimit):
                    idle, reserved = self._bounds.idle_and_reserved(limit)
                    known.append(("", reserved, idle))
                elif isinstance(limit, WeightedLimits):
                    most = limit.real_capability[:, row].tolist()
                    known.append((queue, self._bounds.committed(limit, row), most))
            self._used_and_limits[queue] = known
        return known


class Turns:
    """Whose turn it is to be placed: the best queue, its oldest job, and how much it may take."""

    def __init__(self, bounds: Bounds, runs: Sequence[JobRun]) -> None:
        self._bounds = bounds
        self._waiting = _by_queue(runs)
        self._keys: dict[str, QueueKey] = {}
        self._deserved: dict[str, list[float]] = {}
        """What queues deserve, unless that is certain to be all that they ask for."""
        self._held: dict[str, list[float]] = {}
        if isinstance(bounds.limits, WeightedLimits):
            for queue in self._waiting:
                self._learn(queue, bounds.limits)

    def _learn(self, queue: str, limits: WeightedLimits) -> None:
        bounds, row = self._bounds, self._bounds.snapshot.queues.row_of[queue]
        if bounds.is_divided or len(self._waiting) > 1 or not bounds.meets_demand(limits, row):
            self._deserved[queue] = bounds.deserved(limits, row)
            self._held[queue] = [*bounds.held(row)]

    def next(self) -> tuple[JobRun, int] | None:
        """Return whose turn it is and how many of its pods its queue allows; None: all had one."""
        while self._waiting:
            queue = next(iter(self._waiting))
            if len(self._waiting) > 1:
                queue = min(self._waiting, key=self._key)
            runs = self._waiting[queue]
            if not runs or self._is_overused(queue):
                del self._waiting[queue]
                continue
            run = runs.pop(0)
            n = self._allowed(run)
            if n:
                return run, n
        return None

    def hold(self, run: JobRun) -> None:
        """Count what a job has taken."""
        held = self._held.get(run.kind.queue)
        if held is not None:
            for at, amount in run.kind.requested_amounts:
                held[at] += amount
            self._keys.pop(run.kind.queue, None)

    def _key(self, queue: str) -> QueueKey:
        known = self._keys.get(queue)
        if known is None:
            held = self._held.get(queue)
            known = self._keys[queue] = _queue_key(self._bounds, queue, held)
        return known

    def _is_overused(self, queue: str) -> bool:
        deserved = self._deserved.get(queue)
        return deserved is not None and all(
            part - held < STEP for part, held in zip(deserved, self._held[queue], strict=True)
        )

    def _allowed(self, run: JobRun) -> int:
        """Return how many pods of a job its queue allows."""
        n, kind = run.kind.size, run.kind
        deserved = self._deserved.get(kind.queue)
        if deserved is None:
            return n
        held = self._held[kind.queue]
        for at, amount in kind.reserved_amounts:
            each = amount / kind.size
            n = min(n, max(int((deserved[at] - held[at]) // each) + 1, 0))
            while n and held[at] + n * each > deserved[at]:
                n -= 1
        return n


@dataclass(slots=True)
class DirectDecisions:
    """What such a cycle decides."""

    admitted: list[JobRun] = field(default_factory=list)
    started: dict[JobRun, list[int]] = field(default_factory=dict)
    """Jobs, in the order of their turns, with the rows of their nodes; they count there by now."""


class DirectCycle:
    """Decides cycles of jobs that are gangs of equal pods, under a configuration that allows it."""

    def __init__(
        self,
        scheduler: Scheduler,
        shortcuts: Shortcuts,
        kept: KeptPlacings | None,
        cluster: SimCluster,
    ) -> None:
        self._snapshot = cluster.snapshot
        self._unlisted = cluster.unlisted
        self._seed = scheduler.seed
        self._hooks = scheduler.kept_hooks
        self._kept = kept if shortcuts.starts_alone and not scheduler.conf.queue_gates else None
        self._knows_order = shortcuts.knows_order
        self._eligible: dict[JobClass, bool] = {}

    def decide(
        self, admitted: Sequence[JobRun], new: Sequence[JobRun], bounds: Bounds | None
    ) -> DirectDecisions | None:
        """Decide about the jobs of a cycle, admitted and new ones; None if it takes a session."""
        kept, hooks = self._kept, self._hooks
        if kept is None or hooks is None or bounds is None:
            return None
        everyone = [*admitted, *new]
        if not (self._are_eligible(everyone) and kept.all_quiet()):
            return None
        placing = kept.of_last_session(hooks, self._seed)
        if placing is None:
            return None
        if not bounds.knows_limits(everyone) or not self._has_known_order(everyone):
            return None
        decisions = DirectDecisions(Admission(bounds).admit(_by_age(new)))
        turns = Turns(bounds, _by_age([*admitted, *decisions.admitted]))
        while (turn := turns.next()) is not None:
            run, n = turn
            nodes = self._pick(placing, run, n)
            if nodes:
                decisions.started[run] = nodes
                turns.hold(run)
            if nodes is None or hooks.failures.errors:
                self._undo(decisions)
                kept.forget()  # answers may have been given in error
                return None
        return decisions

    def may_go_on_unlisted(self, run: JobRun) -> bool:
        """Return whether a job with rows runs as those do that start without a session."""
        return (
            self._kept is not None
            and run.running == run.kind.size
            and min(run.ends) == max(run.ends)
            and self._are_eligible([run])
            and self._kept.all_quiet()
        )

    def _undo(self, decisions: DirectDecisions) -> None:
        for run, nodes in decisions.started.items():
            self._unlisted.count_on_nodes(run, nodes, -1)

    def _pick(self, placing: Placing, run: JobRun, n: int) -> list[int] | None:
        """Return nodes with room now for a job of which n pods may start, which count there now.

        None if they are compared beyond their scores, or something is about to leave them; none
        if there is no room for all of the job.
        """
        task, snapshot, count = self._unlisted.sample(run), self._snapshot, self._unlisted.count_on
        lots = placing.state
        snapshot.view_is_live = True  # for copies of a pod, as in a session with predicates
        try:
            with np.errstate(all="ignore"):
                known = placing.class_of(task)
                if known is None:
                    nodes = self._pick_each(placing, task, n)
                elif known.rankers:
                    return None
                else:
                    nodes, draws = placing.pick([known.number] * n)
                    placing.state = draws[-1] if draws else placing.state
                    count(task.shape, nodes, 1)
        finally:
            snapshot.view_is_live = False
        if len(nodes) < run.kind.size:
            count(task.shape, nodes, -1)
            placing.state = lots
            return None if snapshot.nodes.releasing.any() else []
        self._unlisted.keep_on_nodes(run)
        return nodes

    def _pick_each(self, placing: Placing, task: Task, n: int) -> list[int]:
        """Pick nodes with room now one by one, and count a pod on each."""
        nodes: list[int] = []
        while len(nodes) < n:
            chosen = placing.choose(task, placing.fit(task))
            if chosen is None or not chosen[1]:
                break
            nodes.append(chosen[0])
            self._unlisted.count_on(task.shape, nodes[-1:], 1)
        return nodes

    def _has_known_order(self, runs: Sequence[JobRun]) -> bool:
        """Return whether it is known which of several jobs goes first."""
        first = runs[0].kind.group.priority_class_name
        return len(runs) == 1 or (
            self._knows_order and all(run.kind.group.priority_class_name == first for run in runs)
        )

    def _are_eligible(self, runs: Iterable[JobRun]) -> bool:
        """Return whether jobs are gangs of equal pods and nothing more."""
        return all(map(self.is_eligible, runs))

    def is_eligible(self, run: JobRun) -> bool:
        """Return whether a job is a gang of equal pods and nothing more."""
        known = self._eligible.get(run.kind)
        return self._learn(run) if known is None else known

    def _learn(self, run: JobRun) -> bool:
        kind = run.kind
        group = kind.group
        found = (
            kind.is_steady
            and len(kind.specs) == 1
            and not kind.late_pods
            and kind.size == (group.min_member or 0)
            and not kind.specs[0].scheduling_gates
            and not (group.min_task_member or group.sub_group_policy)
            and group.network_topology is None
            and _needs_what_it_holds(kind)
            and self._is_plain(run)
        )
        self._eligible[kind] = found
        return found

    def _is_plain(self, run: JobRun) -> bool:
        """Return whether pods of a job ask for something, in exact amounts, and for no more."""
        shape = self._unlisted.sample(run).shape
        return not (shape.coarse or shape.best_effort) and (
            run.kind.size == 1 or has_plain_shape(shape)
        )


def _needs_what_it_holds(kind: JobClass) -> bool:
    """Return whether jobs of a class reserve exactly what they hold once they run."""
    held = kind.request.copy()
    held[PODS] = 0.0  # which no limit counts
    return bool((held == kind.reserve).all())


def _by_age(runs: Sequence[JobRun]) -> Sequence[JobRun]:
    """Return jobs of equal priority in the order in which their queues take them."""
    if len(runs) < 2:
        return runs
    return sorted(runs, key=lambda run: run.age)
