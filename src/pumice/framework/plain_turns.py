"""Turns of allocate that can be foreseen: of jobs that start with plain tasks, many at a time.

The order of the turns follows from the amounts of queues alone, so it can be drawn up ahead on
imagined queues; the picks can be foreseen, too.  A turn decides exactly as it would by
itself; where that cannot be guaranteed it is taken by itself.
"""

import heapq
from collections import Counter, deque
from collections.abc import Container, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pumice.core.shapes import Delta
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.columns import all_jobs
from pumice.framework.equal_tasks import has_plain_shape, placed_ahead
from pumice.framework.foreseen_picks import LONGEST_WALK, MOST_KINDS, ForeseenPicks
from pumice.framework.imagined_rows import ImaginedQueues, cumulate
from pumice.framework.job_records import Stage
from pumice.framework.ordering import Heap, Key
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Why
from pumice.framework.roles import mixed_roles
from pumice.framework.session_state import SessionState
from pumice.framework.turn_limits import Turn, TurnLimits, amounts_of

_SHORTEST, _LONGEST = 8, 1024
"""Turns to take at once: fewer cost more than they save; the most that is looked ahead."""
_LARGEST = 32
"""Tasks of a job up to which its turn is foreseen: a large gang is a run of its own."""
_MOST_TASKS = 4096
"""Tasks to look ahead."""
_WORTH = 3
"""Turns of gangs that take as long by themselves as one walk."""
_CREDIT = 10 * _WORTH
"""Turns that walks may fall behind before gangs are no longer foreseen."""
_ASKED: Final = (
    Plugin.order_queues,
    Plugin.compare_queues,
    Plugin.overused,
    Plugin.allocatable,
    Plugin.filter_task,
    Plugin.job_ready,
)
"""Hooks that a turn asks beside those about nodes."""


class PlainTurns:
    """Takes turns off the queues and jobs of allocate while they can be foreseen."""

    def __init__(
        self,
        state: SessionState,
        jobs: Mapping[int, Heap],
        tasks: Mapping[int, deque[int]],
        tried: Container[int],
    ) -> None:
        """Read the state: jobs by queue, tasks by job, and the jobs tried before."""
        self._state = state
        self._jobs = jobs
        self._tasks = tasks
        self._tried = tried
        self._lines: dict[int, list[Turn]] = {}
        """Queue to the turns of its next jobs, up to the first that cannot be foreseen."""
        self._turns: dict[int, Turn | None] = {}
        """Job to its turn, as long as it is not tried; None if it cannot be foreseen."""
        self._length = _LONGEST
        self._wait, self._patience = 0, 1
        several = sum(map(len, jobs.values())) >= _SHORTEST
        self._can = several and state.policy.by_row and self._foreseeable()
        self._by_pair = state.ordering.queues_by_pair
        self._groups: list[Any] = state.snapshot.jobs.groups
        self._has_topology = state.snapshot.jobs.has_topology
        self._steps: dict[int, Delta] = {}
        """What a task of each kind adds to sums (3, R)."""
        self._limits = TurnLimits(state, self._steps)
        self._gangs = bool(state.hooks.bound(Plugin.job_ready))
        """Whether to foresee gangs: plugins decide when a job is ready, and it saves time."""
        self._credit: float = _CREDIT

    def _foreseeable(self) -> bool:
        asked = [plugin for hook in _ASKED for plugin, _ in self._state.hooks.bound(hook)]
        return all(plugin.foreseeable for plugin in asked)

    @cached_property
    def _picks(self) -> ForeseenPicks:
        return ForeseenPicks(self._state.placing)

    @cached_property
    def _lacking(self) -> NDArray[np.int64]:
        """How many more tasks each job needs to be ready, at least one (n,)."""
        jobs = all_jobs(self._state.snapshot)
        return np.maximum(jobs.min_member - jobs.ready - jobs.pending_best_effort, 1)

    def forget(self, queue: int) -> None:
        """Record that a queue takes a turn by itself."""
        self._lines.pop(queue, None)

    def take(self, queues: Heap) -> bool:
        """Take some turns; False if the next one is to be taken by itself."""
        if not self._can or self._state.hooks.failures.errors:
            return False
        if self._wait:
            self._wait -= 1
            return False
        entries = list(queues.entries)
        turns = self._draw_up(entries, self._length)
        n_allowed = self._limits.allowed(turns)
        if self._by_pair and n_allowed < len(turns):
            entries = list(queues.entries)
            self._draw_up(entries, n_allowed)
        n_placed = self._place(turns[:n_allowed])
        self._adapt(n_placed, len(turns))
        if not n_placed or (self._by_pair and n_placed < n_allowed):
            return False
        if n_placed < len(turns) and not self._by_pair:
            entries = _heap_after(queues.entries, turns[:n_placed])
        queues.entries = entries
        self._advance(turns[:n_placed])
        return True

    def _adapt(self, placed: int, foreseen: int) -> None:
        """Look as far ahead as turns can be foreseen, and pause where few can."""
        if placed < _SHORTEST:
            self._wait, self._patience = self._patience, min(2 * self._patience, _LONGEST)
            self._length = _SHORTEST
        elif placed == foreseen:
            self._patience, self._length = 1, min(4 * placed, _LONGEST)
        else:  # the next turn finds no node
            self._wait, self._patience, self._length = 1, 1, placed

    def _advance(self, taken: list[Turn]) -> None:
        """Remove turns from the lists and jobs from the queues."""
        for queue, n in Counter(turn.queue for turn in taken).items():
            del self._jobs[queue].entries[:n], self._lines[queue][:n]
            if not self._lines[queue]:
                self.forget(queue)

    # The order of turns

    def _draw_up(self, queues: list[tuple[Key, int]], most: int) -> list[Turn]:
        """List the next turns as far as they can be foreseen, and remove them from a heap.

        Queues that are compared in pairs use sums as they would be.
        """
        unknown = [queue for _, queue in queues if queue not in self._lines]
        self._foresee(unknown, max(4, 2 * most // max(1, len(queues))))
        turns: list[Turn] = []
        ahead = dict.fromkeys((queue for _, queue in queues), 0)
        n_tasks = 0
        while queues and len(turns) < most and n_tasks < _MOST_TASKS:
            queue = queues[0][1]
            at, line = ahead[queue], self._lines[queue]
            has_jobs = at < len(self._jobs[queue])
            if has_jobs and (at == len(line) or (len(line[at].tasks) > 1 and not self._gangs)):
                break
            key, _ = heapq.heappop(queues)
            if has_jobs:
                turn = line[at]
                turns.append(turn)
                n_tasks += len(turn.tasks)
                ahead[queue] = at + 1
                if self._by_pair:
                    self._limits.count(turn)
                heapq.heappush(queues, (key if self._by_pair else turn.key, queue))
        if self._by_pair:
            for turn in turns:
                self._limits.discount(turn)
        return turns if len(turns) >= _SHORTEST else []

    def _foresee(self, queues: list[int], most: int) -> None:
        """List the next turns of some queues, some of each at most."""
        found: list[Turn] = []
        for queue in queues:
            self._lines[queue] = []
            entries = self._jobs[queue].entries
            entries.sort()  # a sorted list is a heap
            for _, job in entries[:most]:
                if job not in self._turns:
                    self._turns[job] = self._turn(queue, job)
                turn = self._turns[job]
                if turn is None or job in self._tried:
                    break
                found.append(turn)
        for turn, key in zip(found, self._keys(found), strict=True):
            turn.key = key
            self._lines[turn.queue].append(turn)

    def _turn(self, queue: int, job: int) -> Turn | None:
        """Return the turn of a job that starts with all its tasks; None if it is not so simple."""
        waiting = self._tasks[job]
        if len(waiting) != self._lacking.item(job) or self._has_topology[job]:
            return None
        tasks = list(waiting)
        is_lone = len(tasks) == 1 and not self._groups[job].spec.min_task_member
        if not is_lone and not (self._may_start(job, tasks) and self._starts_with(job, tasks)):
            return None
        kinds = self._kinds_of(tasks)
        return None if kinds is None else Turn(queue, job, tasks, kinds, self._sum(kinds))

    def _sum(self, kinds: list[int]) -> Delta:
        """Return what tasks of these kinds add to sums (3, R)."""
        if len(kinds) == 1:
            return self._steps[kinds[0]]
        steps = [n * self._steps[kind] for kind, n in Counter(kinds).items()]
        total: Delta = np.sum(steps, axis=0)
        return total

    def _may_start(self, job: int, tasks: list[int]) -> bool:
        """Return whether a gang is worth foreseeing, and some node takes its first task now."""
        state = self._state
        if not self._gangs or len(tasks) > _LARGEST or len(self._steps) > MOST_KINDS:
            return False
        first = Task(state.snapshot, tasks[0])
        if job in state.ordering.moving_jobs or not has_plain_shape(first.shape):
            return False
        if not state.placing.fit(first).has_room:
            return False
        return not mixed_roles(state.snapshot, tasks, state.placing.varying)

    def _starts_with(self, job: int, tasks: list[int]) -> bool:
        """Return whether a job is ready with all of these tasks placed, and not with fewer."""
        state = self._state
        with placed_ahead(state.snapshot, tasks[:-1]):
            if state.policy.job_ready(job):
                return False
        if not self._groups[job].spec.min_task_member:
            return True  # that is what ``foreseeable`` says
        with placed_ahead(state.snapshot, tasks):
            return bool(state.policy.job_ready(job))

    def _kinds_of(self, tasks: list[int]) -> list[int] | None:
        """Return the kinds of tasks; None if one of them is not plain."""
        state, table = self._state, self._state.snapshot.tasks
        kinds: list[int] = []
        plain = None
        for row in tasks:
            if table.nominated[row] != NOWHERE or row in state.queue_gates.held:
                return None
            task = Task(state.snapshot, row)
            if task.shape is not plain:
                plain = task.shape
                if not self._is_plain(task):
                    return None
            kind = self._picks.kind(task)
            if kind is None:
                return None
            if kind not in self._steps:
                self._steps[kind] = task.shape.step("place", 1, live=False)[1]
            kinds.append(kind)
        return kinds

    def _is_plain(self, task: Task) -> bool:
        shape = task.shape
        if shape.coarse or not has_plain_shape(shape):
            return False
        return self._state.policy.filter_task(task) is None

    def _keys(self, turns: list[Turn]) -> list[Key]:
        """Return the keys of queues after each of their turns; those of a queue are together."""
        if not turns:
            return []
        if self._by_pair:
            return [None] * len(turns)
        rows = np.array([turn.queue for turn in turns], dtype=np.intp)
        more = cumulate(amounts_of(turns), rows)
        return self._state.ordering.keys_of(ImaginedQueues(self._state.snapshot, rows, more))

    # Placing

    def _place(self, turns: list[Turn]) -> int:
        """Place the tasks of turns up to the first that finds too few nodes; return how many.

        Queues that are compared in pairs take all turns or none.
        """
        state, placing = self._state, self._state.placing
        mark, generator = state.journal.mark(), placing.state
        tasks = [row for turn in turns for row in turn.tasks]
        kinds = [kind for turn in turns for kind in turn.kinds]
        if len(turns) < _SHORTEST:
            return 0
        if not self._picks.begin(kinds, len(turns)):
            self._gangs = self._gangs and len(tasks) == len(turns)
            self._lines.clear()
            return 0
        nodes, draws = self._pick(tasks, kinds, len(tasks) / len(turns))
        n_turns, n = _whole(turns, len(nodes))
        if n < len(nodes):  # of a gang that is short nothing stays
            state.journal.rollback(mark)
            self._bind(tasks[:n], nodes[:n])
        is_broken = bool(state.hooks.failures.errors)
        if is_broken or (n_turns < len(turns) and self._by_pair):
            state.journal.rollback(mark)
            placing.state = generator
            return 0 if is_broken else n_turns
        placing.state = draws[n - 1] if n else generator
        state.intents.announce(tasks[:n], nodes[:n])
        state.records.found_again(tasks[:n])
        for turn in turns[:n_turns]:
            state.records.take_turn(turn.job)
            state.records.note(turn.job, Stage.DONE, Why.SCHEDULED)
        return n_turns

    def _pick(self, tasks: list[int], kinds: list[int], size: float) -> tuple[list[int], list[int]]:
        """Bind tasks up to the first that finds no node; return nodes and draws.

        ``size``: tasks of a turn.
        """
        nodes: list[int] = []
        draws: list[int] = []
        while len(nodes) < len(tasks):
            at = len(nodes)
            picks = self._picks.pick(kinds[at : at + LONGEST_WALK])
            if not picks:
                break
            self._bind(tasks[at : at + len(picks)], picks)
            self._picks.placed()
            nodes += picks
            draws += self._picks.draws[: len(picks)]
            if size > 1 and not self._saves_time(len(picks) / size):
                break
        return nodes, draws

    def _saves_time(self, turns: float) -> bool:
        """Count a walk; return whether gangs are still worth foreseeing."""
        self._credit = min(_CREDIT, self._credit + turns - _WORTH)
        self._gangs = self._credit > 0
        return self._gangs

    def _bind(self, tasks: list[int], nodes: list[int]) -> None:
        if len(tasks) == 1:
            self._state.snapshot.bind(tasks[0], nodes[0])
        elif tasks:
            self._state.snapshot.bind_each(np.array(tasks), np.array(nodes))


def _whole(turns: list[Turn], n_nodes: int) -> tuple[int, int]:
    """Return how many turns have nodes for all their tasks, and how many tasks these are."""
    n = 0
    for at, turn in enumerate(turns):
        if n + len(turn.tasks) > n_nodes:
            return at, n
        n += len(turn.tasks)
    return len(turns), n


def _heap_after(queues: list[tuple[Key, int]], turns: list[Turn]) -> list[tuple[Key, int]]:
    """Return the heap of queues once some turns are taken."""
    keys = {turn.queue: turn.key for turn in turns}
    heap = [(keys.get(queue, key), queue) for key, queue in queues]
    heapq.heapify(heap)
    return heap
