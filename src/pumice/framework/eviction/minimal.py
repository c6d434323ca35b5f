"""Victims no more than needed: the cheapest set for a task, and whom it spares.

Used by preempt and reclaim with ``minimalVictims``.  What was evicted is remembered from cycle to
cycle: a job that lost pods evicts nobody for a while, and a queue loses so many pods a minute.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from pumice.core.resources import PODS, STEP, Column, fits_one
from pumice.core.views import Job, Task
from pumice.framework.arguments import MinimalVictimsArguments
from pumice.framework.plugin_session import PluginSession
from pumice.framework.queue_limits.limits import QueueLimits

_MEMORY: Final = "minimalVictims"
_MINUTE: Final = 60.0
_REMEMBERED_S: Final = 3600.0
"""How long it counts that a job lost pods before."""
_MOST_SETS: Final = 2000
"""Sets that are compared on a node; beyond them the best so far counts."""
MOST_NODES: Final = 100
"""Nodes whose sets are compared for a task."""


class Cost(NamedTuple):
    """What a set of victims costs; the first difference counts, less is better."""

    priority: int
    """The highest of a victim."""
    gangs: int
    """Jobs that fall below ``minMember``."""
    lost_s: float
    """Seconds that the victims ran, and all pods of jobs that fall below ``minMember``."""
    times: int
    """How often the jobs of victims lost pods within the last hour."""
    pods: int


class Question(NamedTuple):
    """What to evict on a node for a task."""

    task: Task
    node: int
    victims: list[int]
    taken: Sequence[int]
    """Those that are evicted already, for other tasks of its job."""
    works: Callable[[list[int]], bool]
    """Tries whether the task fits without some pods."""


class Plan(NamedTuple):
    """The victims on a node."""

    cost: Cost
    node: int
    victims: list[int]


@dataclass
class Losses:
    """When jobs and queues lost pods."""

    by_job: dict[str, list[float]] = field(default_factory=dict)
    by_queue: dict[str, list[float]] = field(default_factory=dict)

    def forget(self, now: float) -> None:
        """Forget what no longer counts; times that are not over yet are of another clock."""
        for known, keep_s in ((self.by_job, _REMEMBERED_S), (self.by_queue, _MINUTE)):
            for name, times in list(known.items()):
                times[:] = [at for at in times if now - keep_s < at <= now]
                if not times:
                    del known[name]


class MinimalVictims:
    """One run of an action: who may be evicted for whom, and at what cost."""

    def __init__(
        self,
        ssn: PluginSession,
        arguments: MinimalVictimsArguments,
        limits: Callable[[], QueueLimits | None],
    ) -> None:
        """Make it; ``limits`` returns what queues deserve, where that counts."""
        self._ssn = ssn
        self._snapshot = ssn.snapshot
        self._arguments = arguments
        self._find_limits = limits
        self._losses: Losses = ssn.memory.setdefault(_MEMORY, Losses())
        self._losses.forget(ssn.now)
        recent = [at for times in self._losses.by_job.values() for at in times]
        if self._losses.by_queue or any(ssn.now - at < arguments.hysteresis for at in recent):
            ssn.journal.put({}, _MEMORY, ssn.now)  # so that no later cycle is taken for this one

    def may_ask(self, job: int) -> bool:
        """Return whether a job may evict: not if it just lost pods itself."""
        times = self._losses.by_job.get(self._snapshot.jobs.keys[job], ())
        return all(self._ssn.now - at >= self._arguments.hysteresis for at in times)

    def is_owed(self, task: Task) -> bool:
        """Return whether the queue of a task holds less than it deserves of something asked."""
        limits = self._limits
        if limits is None:
            return True
        held, asked = self._snapshot.queues.allocated_or_pipelined[:, task.queue], _asked(task)
        return bool((held < limits.deserved[:, task.queue])[asked].any())

    def offered(self, task: Task, victims: Iterable[int]) -> list[int]:
        """Return those of the tasks of a node that may be evicted, each by itself."""
        tasks = self._snapshot.tasks
        return [
            row
            for row in victims
            if tasks.priority[row] <= task.priority
            and tasks.job[row] != task.job
            and self.permits(task, [row], ())
        ]

    def permits(self, task: Task, victims: Sequence[int], taken: Sequence[int]) -> bool:
        """Return whether queues may lose these besides those that are evicted already."""
        jobs, names = self._snapshot.jobs, self._snapshot.queues.names
        owner = self._snapshot.tasks.job
        queues = [int(jobs.queue[owner[row]]) for row in victims]
        gone = [int(jobs.queue[owner[row]]) for row in taken]
        most = self._arguments.max_per_minute
        for queue in set(queues):
            lost = len(self._losses.by_queue.get(names[queue], ()))
            if most and lost + gone.count(queue) + queues.count(queue) > most:
                return False
            mine = [row for row, own in zip(victims, queues, strict=True) if own == queue]
            if queue != task.queue and not self._keeps_its_part(queue, mine, task):
                return False
        return True

    def _keeps_its_part(self, queue: int, rows: list[int], task: Task) -> bool:
        """Return whether a queue still has what it deserves of all that is asked for."""
        if self._limits is None:
            return True
        gone = self._snapshot.requests(np.array(rows, dtype=np.intp)).sum(axis=1)
        left = self._snapshot.queues.allocated[:, queue] - gone
        asked = _asked(task) & (gone > 0)
        return bool((left >= self._limits.deserved[:, queue] - STEP)[asked].all())

    @cached_property
    def _limits(self) -> QueueLimits | None:
        return self._find_limits()

    def cost(self, victims: Sequence[int]) -> Cost:
        """Return what a set costs."""
        tasks, jobs = self._snapshot.tasks, self._snapshot.jobs
        by_job: dict[int, list[int]] = {}
        for row in victims:
            by_job.setdefault(int(tasks.job[row]), []).append(row)
        gangs, lost_s, times = 0, 0.0, 0
        for job, rows in by_job.items():
            ready, least = Job(self._snapshot, job).ready, int(jobs.min_member[job])
            if ready - len(rows) < least <= ready:
                gangs += 1
            lose = rows if ready - len(rows) >= least or ready < least else jobs.tasks[job]
            ran = self._ssn.now - tasks.started[lose]
            lost_s += float(np.nan_to_num(np.maximum(ran, 0.0)).sum())
            times += len(self._losses.by_job.get(jobs.keys[job], ()))
        highest = max((int(tasks.priority[row]) for row in victims), default=-(2**62))
        return Cost(highest, gangs, lost_s, times, len(victims))

    def cheapest(self, question: Question) -> Plan | None:
        """Find the cheapest set on a node with which a task fits, of all up to a number of sets."""
        node = question.node
        if question.works([]):
            return Plan(self.cost([]), node, [])
        line = sorted(question.victims, key=lambda row: self.cost([row]))
        search = _Search(self, question, [(row, self._snapshot.request(row)) for row in line])
        search.extend(0, [], self._snapshot.nodes.future_idle_of(node))
        return search.best

    def spared_first(self, victims: Iterable[int]) -> list[int]:
        """Order victims, the dearest first."""
        return sorted(victims, key=lambda row: self.cost([row]), reverse=True)

    def note(self, victims: Iterable[int]) -> None:
        """Remember evictions that were decided."""
        jobs, queues = self._snapshot.jobs, self._snapshot.queues
        hit: set[str] = set()
        for row in victims:
            job = int(self._snapshot.tasks.job[row])
            hit.add(jobs.keys[job])
            queue = queues.names[int(jobs.queue[job])]
            self._losses.by_queue.setdefault(queue, []).append(self._ssn.now)
        for key in hit:
            self._losses.by_job.setdefault(key, []).append(self._ssn.now)


class _Search:
    """A search over the sets of victims of one node, cheap ones first."""

    def __init__(
        self, minimal: MinimalVictims, question: Question, line: list[tuple[int, Column]]
    ) -> None:
        """Make one of a line of victims and their requests."""
        self._minimal, self._question, self._line = minimal, question, line
        self._rest = [np.zeros_like(question.task.need[:, 0])]
        """What goes with all from a place on."""
        for _, request in reversed(line):
            self._rest.insert(0, self._rest[0] + request)
        self._left = _MOST_SETS
        self.best: Plan | None = None

    def extend(self, start: int, chosen: list[int], room: Column) -> None:
        """Try a set with each further victim, and then these sets with more."""
        minimal, question, need = self._minimal, self._question, self._question.task.need
        for at in range(start, len(self._line)):
            if self._left <= 0 or not fits_one(need, room + self._rest[at]):
                return
            self._left -= 1
            row, request = self._line[at]
            more = [*chosen, row]
            cost = minimal.cost(more)
            if self.best is not None and cost >= self.best.cost:
                continue
            if not minimal.permits(question.task, more, question.taken):
                continue
            if fits_one(need, room + request) and question.works(more):
                self.best = Plan(cost, question.node, more)
            else:
                self.extend(at + 1, more, room + request)


def _asked(task: Task) -> np.ndarray:
    """Mark the resources that a task asks for, pods aside (R,)."""
    asked = task.request[:, 0] > 0
    asked[PODS] = False
    return asked
