"""capacity: stated amounts for queues in a flat list or in a tree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pumice.api.codes import Cause, Spared
from pumice.core.resources import (
    PODS,
    STEP,
    Column,
    Mask,
    dominant_share,
    fits,
    holds_any,
    within_requested,
)
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE
from pumice.core.views import Job, Queue, Task
from pumice.framework.arguments import arg
from pumice.framework.columns import Queues
from pumice.framework.plugin import Plugin, Refusal, Verdict, Vote, Why
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.framework.queue_limits.device_quota import DeviceQuota
from pumice.framework.queue_limits.limits import LEAF, MISPLACED, QueueCommitments
from pumice.framework.queue_limits.stated import StatedLimits
from pumice.framework.refusals import queue_closed, within_quota
from pumice.framework.topology.domains import GangEviction


@dataclass
class Reclaim:
    """One walk over candidates; remembers what the queues would hold without its victims."""

    limits: StatedLimits
    level: int = 0
    """How many levels of ancestors are considered, too."""
    _held: dict[int, Column] = field(default_factory=dict)

    def held(self, queue: int) -> Column:
        """Return what a queue and those under it hold at this point of the walk (R,)."""
        if queue not in self._held:
            self._held[queue] = self.limits.held(queue)
        return self._held[queue]

    def take(self, task: Task) -> bool:
        """Take a task from a queue that stays above its guarantee and has more than it deserves."""
        return task.queue in self.limits.tree.ancestors and self._take([task.queue], task, 1) == 1

    def take_for(self, reclaimer: Task, task: Task, n: int = 1) -> int:
        """Take n equal tasks in a row for one of another queue that needs some of their resources.

        Ancestors within ``level`` that the two queues do not share must exceed what they deserve,
        too.  Queues that both deserve nothing do not reclaim from each other below a shared one.
        Returns how many of the first are taken.
        """
        if not self._may_ask(reclaimer, task):
            return 0
        return self._take([task.queue, *self._unshared(reclaimer.queue, task.queue)], task, n)

    def _take(self, losing: list[int], task: Task, n: int) -> int:
        """Take equal tasks from a queue and some of its ancestors, while all of them give."""
        queue, steps = task.queue, np.repeat(task.request, n, axis=1)
        held = {
            each: np.subtract.accumulate(np.column_stack([self.held(each), steps]), axis=1)
            for each in losing
        }
        goes = fits(self.limits.guarantee[:, [queue]], held[queue][:, 1:])
        for each in losing:
            goes &= self._gives(each, task.request, held[each][:, :-1])
        kept = np.flatnonzero(~goes)
        taken = int(kept[0]) if len(kept) else n
        self._held.update({each: held[each][:, taken] for each in losing} if taken else {})
        return taken

    def keeps_above(self, reclaimer: Task, task: Task) -> int | None:
        """Return the ancestor that keeps a task that its own queue would give up."""
        queue, request = task.queue, task.request
        if not self._may_ask(reclaimer, task) or not fits(
            self.limits.guarantee[:, queue], self.held(queue) - request[:, 0]
        ):
            return None
        above = self._unshared(reclaimer.queue, queue)
        keeps = [
            each
            for each in (queue, *above)
            if not self._gives(each, request, self.held(each)[:, None])
        ]
        return keeps[0] if keeps and keeps[0] != queue else None

    def _may_ask(self, reclaimer: Task, task: Task) -> bool:
        """Exclude queues without a place, useless tasks, and cousins without any claim."""
        queues, placed = (reclaimer.queue, task.queue), self.limits.tree.ancestors
        if any(queue not in placed for queue in queues):
            return False
        needs, request = reclaimer.request[:, 0], task.request[:, 0]
        shared = (needs >= STEP) & (request >= STEP)
        shared[PODS] = False
        if not holds_any(shared):
            return False
        claimless = self._deserves_none(task.queue, request) and self._deserves_none(
            reclaimer.queue, needs
        )
        return not (claimless and self._are_cousins(*queues))

    def _gives(self, queue: int, request: Column, held: Column) -> Mask:
        """Mark where a queue that holds so much gives up a request (R, 1) (n,)."""
        if self._deserves_none(queue, request[:, 0]):
            return np.ones(held.shape[1], dtype=bool)
        counts = (request[:, 0] > 0) & self.limits.deserved_counts[:, queue]
        counts[PODS] = False
        over = held[counts] > self.limits.deserved[counts, queue][:, None]
        return np.asarray(over.any(axis=0))

    def _deserves_none(self, queue: int, request: Column) -> bool:
        """Return whether a queue deserves nothing of what a task requests."""
        deserved = self.limits.deserved[:, queue]
        return not holds_any((request >= STEP) & (deserved >= STEP))

    def _are_cousins(self, left: int, right: int) -> bool:
        """Return whether two queues share an ancestor within ``level``, other than the root."""
        return bool(set(self._ancestors(left)) & set(self._ancestors(right)))

    def _ancestors(self, queue: int) -> list[int]:
        found = [self.limits.tree.ancestor(queue, steps) for steps in range(1, self.level + 1)]
        return [row for row in found if row != NOWHERE]

    def _unshared(self, reclaimer: int, queue: int) -> list[int]:
        """Find a victim's ancestors within ``level`` that are not the reclaimer's at that level."""
        steps = range(1, self.level + 1)
        up = self.limits.tree.ancestor
        pairs = [(up(reclaimer, n), up(queue, n)) for n in steps]
        return [theirs for mine, theirs in pairs if theirs not in (NOWHERE, mine)]


class _Standing(NamedTuple):
    """Properties that decide between two queues of a tree and do not change in a session."""

    priority: int
    rank: int
    path: tuple[int, ...]
    """The queues above it, root first, and itself."""


@dataclass(kw_only=True)
class Capacity(Plugin, name="capacity"):
    """Queues below what they deserve go first and may reclaim from those above.

    No queue grows beyond its real capability.  With ``enableHierarchy`` queues form a tree
    under the queue ``root``: only leaves take jobs, and the limits of all ancestors apply.
    """

    foreseeable = True
    simulator = SimulatorAssumptions()
    spares = Spared.QUEUE_WITHIN_DESERVED
    protects = "pods of queues within what they deserve"
    protects_in = frozenset({"reclaim", "gangreclaim"})
    hierarchy_hooks: ClassVar[Mapping[str, bool]] = {
        "order_queues": False,
        "compare_queues": True,
        "compare_victim_queues": True,
    }

    ancestor_reclaim_level: int = arg(
        "ancestorReclaimLevel",
        default=0,
        minimum=0,
        doc="how many levels of ancestors are considered in reclaim; only in a tree",
    )

    device_quota: bool = arg(
        "capacity.DynamicResourceAllocationEnable",
        default=True,
        doc="hold queues to `deviceclass/…` in their capability",
    )
    device_capacity_quota: bool = arg(
        "capacity.DRAConsumableCapacityEnable",
        default=True,
        doc="hold queues to `<capacity>.deviceclass/…`, too",
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Draw the tree, set every queue's limits, and sum up reservations."""
        snapshot = ssn.snapshot
        self._snapshot, self._queues = snapshot, snapshot.queues
        self._limits = self.queue_limits(snapshot, ssn.total)
        self._tree, self._held = self._limits.tree, self._limits.held
        self._best_effort = self._limits.best_effort
        self._commitments = QueueCommitments(snapshot)
        quota = DeviceQuota(snapshot, self._tree, capacities=self.device_capacity_quota)
        self._devices = quota if self.device_quota and quota.states_limits else None
        self._gates = ssn.queue_gates
        self._opening_shares = {row: self._live_share(row) for row in self._tree.children}
        self._leaf_shares: dict[int, tuple[bytes, float]] = {}
        self._standings: dict[int, _Standing] = {}
        counted = np.delete(self._limits.real_capability, PODS, axis=0)
        self._bounded: Mask = np.asarray(np.isfinite(counted).any(axis=0))
        self.problems: dict[str, str] = self._find_problems()
        """Queue names to the fault in their place."""
        ssn.warn(self.name, self._limits.overdrawn())

    def queue_limits(self, snapshot: Snapshot, total: Column) -> StatedLimits:
        """Return the limits that queues state."""
        return StatedLimits.of(snapshot, total, hierarchy=self.hierarchy)

    def _find_problems(self) -> dict[str, str]:
        names, jobs = self._queues.names, self._snapshot.jobs
        found = {names[row]: text for row, text in self._tree.problems.items()}
        for row in np.unique(jobs.queue[jobs.listed]).tolist():
            if row in self._tree.children:
                found[names[row]] = "it has child queues, so it takes no jobs of its own"
        return found

    # Order

    def order_queues(self, queues: Queues) -> Column:
        """Put high priority first, then the smallest share; then queues that deserve something."""
        rows = queues.rows
        share = dominant_share(queues.allocated_or_pipelined, self._limits.deserved[:, rows])
        idle = self._best_effort[rows]
        return np.stack([-queues.priority.astype(float), np.where(idle, 1.0, share), idle])

    def compare_queues(self, left: Queue, right: Queue) -> float:
        """Compare priorities, then the shares of the branches in which two leaves differ."""
        a, b = left.row, right.row
        known = self._standings
        first, second = known.get(a) or self._stand(a), known.get(b) or self._stand(b)
        if first.priority != second.priority:
            return float(second.priority - first.priority)
        if first.rank != second.rank or first.rank == MISPLACED:
            return float(first.rank - second.rank)
        if first.rank == LEAF:
            for a, b in zip(first.path, second.path, strict=False):
                if a != b:
                    break
        one, two = self._share(a), self._share(b)
        if one == two:
            one, two = self._best_effort.item(a), self._best_effort.item(b)
        return float(one - two)

    def _stand(self, row: int) -> _Standing:
        rank = self._tree.rank(row)
        path = () if rank == MISPLACED else self._tree.path(row)
        found = self._standings[row] = _Standing(int(self._queues.priority[row]), rank, path)
        return found

    def compare_victim_queues(self, left: Queue, right: Queue, preemptor: Queue) -> float:
        """Take from near relatives of the preemptor's queue first."""
        placed = self._tree.ancestors
        if any(queue.row not in placed for queue in (left, right, preemptor)):
            return 0.0
        depth = self._tree.common_depth
        return float(depth(right.row, preemptor.row) - depth(left.row, preemptor.row))

    def _share(self, row: int) -> float:
        """Return a leaf's share of now, any other queue's of session open.

        Volcano: placing a task counts for the amounts of all ancestors, but not for their shares.
        """
        found = self._opening_shares.get(row)
        if found is not None:
            return found
        held = self._queues.allocated_or_pipelined[:, row].tobytes()
        known = self._leaf_shares.get(row)
        if known is None or known[0] != held:
            known = self._leaf_shares[row] = held, self._live_share(row)
        return known[1]

    def _live_share(self, row: int) -> float:
        if row not in self._tree.ancestors or self._best_effort[row]:
            return 1.0
        held = self._held(row)
        return float(dominant_share(held[:, None], self._limits.deserved[:, [row]])[0])

    # Limits

    def allocatable(self, queue: Queue, task: Task) -> Verdict:
        """Allow an open leaf a task that keeps it and its ancestors within their limits."""
        used = self._queues.allocated_or_pipelined
        if self._gates.is_reserving:
            used = used + self._gates.reserved(beside=task.row)
        verdict = self._may_take(queue.row)
        verdict = verdict and self._leaves_room(queue.row, task.request[:, 0], used)
        if verdict and self._devices is not None and task.shape.spec.resource_claims:
            return self._devices.allows(queue.row, task)
        return verdict

    def job_enqueueable(self, job: Job) -> Vote:
        """Permit a job that fits beside what its queue and its ancestors hold and reserve."""
        takes, request = self._may_take(job.queue), job.min_resources
        if request is None or not takes:
            return takes
        return self._leaves_room(job.queue, request, self._commitments.by_queue())

    def on_enqueued(self, job: Job) -> None:
        """Reserve what the job needs, whichever plugin admitted it."""
        self._commitments.admit(job)

    def _may_take(self, queue: int) -> Verdict:
        """Return whether a queue takes new work."""
        if not self._queues.open[queue]:
            return queue_closed(queue)
        problem = self.problems.get(self._queues.names[queue])
        if problem is None:
            return True
        numbers = {"queue": queue, "problem": problem}
        return Refusal(Why.QUEUE_MISPLACED, numbers, Cause.QUEUE_MISPLACED)

    def _leaves_room(self, queue: int, request: Column, used: Column) -> Verdict:
        """Test a request in a queue and its ancestors; ``used`` is what each queue uses (R, Q)."""
        names, code = self._snapshot.resources.names, Cause.QUEUE_OVER_CAPABILITY
        for row in self._tree.chain(queue):
            if not self._bounded[row]:
                continue
            under = self._tree.subtree[row]
            held = used[:, row] if len(under) == 1 else used[:, under].sum(axis=1)
            limit, at = self._limits.real_capability[:, row], self._queues.names[row]
            verdict = within_quota(names, held, request, limit, queue=queue, at=at, code=code)
            if not verdict:
                return verdict
        return True

    # Reclaim

    def preemptive(self, queue: Queue, request: Column) -> bool:
        """Allow an open queue to reclaim while it is below what it deserves of some request.

        An ancestor within the configured levels may justify it.
        """
        row = queue.row
        if not queue.is_open or queue.name in self.problems:
            return False
        after = self._held(row) + request
        if not within_requested(after, self._limits.real_capability[:, row], request):
            return False
        if self._deserves_more(row, after, request):
            return True
        level = self.ancestor_reclaim_level if self.hierarchy else 0
        vouching = [self._tree.ancestor(row, steps) for steps in range(1, level + 1)]
        return any(
            self._deserves_more(each, self._held(each) + request, request)
            for each in vouching
            if each != NOWHERE
        )

    def _deserves_more(self, row: int, after: Column, request: Column) -> bool:
        """Return whether a queue deserves some of a request, ``after`` which it holds so much."""
        deserved = self._limits.deserved[:, row]
        within = (request > 0) & ((after >= STEP) | (deserved >= STEP)) & (after - deserved < STEP)
        within[PODS] = False
        return holds_any(within)

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask:
        """Offer tasks of queues that have more than they deserve.

        Candidates come in the order in which they would be evicted, and are judged in it.
        """
        walk, table, rows = self._walk(), self._snapshot.tasks, np.array(candidates, dtype=np.intp)
        jobs = table.job.take(rows)
        queues = np.where(jobs == NOWHERE, NOWHERE, self._snapshot.jobs.queue.take(jobs))
        kinds = zip(queues.tolist(), table.shape.take(rows).tolist(), candidates, strict=True)
        offered: list[bool] = []
        for _, equals in groupby(kinds, key=itemgetter(0, 1)):
            line = [row for _, _, row in equals]
            taken = walk.take_for(reclaimer, Task(self._snapshot, line[0]), len(line))
            offered += [True] * taken + [False] * (len(line) - taken)
        return np.array(offered, dtype=bool)

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask:
        """Judge each task as if it were the only one to go."""
        tasks, queues = self._snapshot.tasks, self._snapshot.jobs.queue
        shapes = tasks.shape[candidates].astype(np.intp)
        kinds, first, kind = np.unique(
            queues[tasks.job[candidates]] * (1 + shapes.max(initial=0)) + shapes,
            return_index=True,
            return_inverse=True,
        )
        answers = np.zeros(len(kinds), dtype=bool)
        for i, row in enumerate(candidates[first].tolist()):
            answers[i] = self._walk().take_for(asker, Task(self._snapshot, row)) == 1
        return np.asarray(answers[kind])

    def gang_evictable(self, eviction: GangEviction, candidates: list[int]) -> Mask:
        """Offer all to a job of their queue; to others only what a queue has beyond its share."""
        if not eviction.reclaims:
            return np.ones(len(candidates), dtype=bool)
        walk = self._walk()
        tasks = [Task(self._snapshot, row) for row in candidates]
        return np.asarray([walk.take(task) for task in tasks], dtype=bool)

    def why_spared(self, hook: str, asker: Task, candidate: Task) -> tuple[Spared, dict[str, Any]]:
        """Return whether the queue itself or an ancestor keeps the pod."""
        above = self._walk().keeps_above(asker, candidate)
        if above is None:
            return self.spares, {}
        return Spared.ANCESTOR_LEVEL, {"queue": self._queues.names[above]}

    def _walk(self) -> Reclaim:
        level = self.ancestor_reclaim_level if self.hierarchy else 0
        return Reclaim(self._limits, level)
