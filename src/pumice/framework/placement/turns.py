"""Several turns of allocate with one question to the kernel: jobs that start with all their tasks.

The order of turns follows from the amounts of queues alone, so that it is drawn up ahead; limits of
queues are asked about sums as they would be.  Only plugins that declare ``foreseeable`` are asked
so, and only classes of pods that the kernel knows are placed so; every other turn is taken by
itself, and decides the same.
"""

import heapq
from collections import Counter, deque
from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column
from pumice.core.shapes import Delta
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.columns import all_jobs
from pumice.framework.job_records import Stage
from pumice.framework.ordering import Heap, Key
from pumice.framework.placement.ahead import (
    CountedTurns,
    ImaginedQueues,
    cumulate,
    longest,
    placed_ahead,
)
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Why
from pumice.framework.roles import mixed_roles
from pumice.framework.session_state import SessionState

_SHORTEST, _FIRST, _LONGEST = 8, 32, 1024
"""Turns to take at once: fewer cost more than they save; how many are looked ahead at first, where
all may be in vain, and at most."""
_MOST_TASKS = 4096
"""Tasks to look ahead."""
_ASKED: Final = (
    Plugin.order_queues,
    Plugin.compare_queues,
    Plugin.overused,
    Plugin.allocatable,
    Plugin.filter_task,
    Plugin.job_ready,
)
"""Hooks that a turn asks beside those about nodes."""


class Turn(msgspec.Struct):
    """One turn: all tasks that a job needs to start, in order, and the queue's key after it."""

    queue: int
    job: int
    tasks: list[int]
    classes: list[int]
    """The class of each task, by number."""
    more: Delta
    """What the turn adds to sums (3, R)."""
    key: Key = None


class BatchedTurns:
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
        self._length = _FIRST
        self._wait, self._patience = 0, 1
        several = sum(map(len, jobs.values())) >= _SHORTEST
        several &= not state.hooks.tiers(Plugin.may_start)  # asked after each job that has places
        self._can = several and not state.policy.follows_placements and self._foreseeable()
        self._by_pair = state.ordering.queues_by_pair
        self._groups: list[Any] = state.snapshot.jobs.groups
        self._steps: dict[int, Delta] = {}
        """What a task of each class adds to sums (3, R)."""
        self._may_be_overused = bool(state.hooks.tiers(Plugin.overused))
        self._may_wait = bool(state.hooks.bound(Plugin.job_ready))
        """Whether plugins decide when a job is ready: else each task is a turn."""

    def _foreseeable(self) -> bool:
        asked = [plugin for hook in _ASKED for plugin, _ in self._state.hooks.bound(hook)]
        return all(plugin.foreseeable for plugin in asked)

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
        n_allowed = self._allowed(turns)
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
            if has_jobs and at == len(line):
                break
            key, _ = heapq.heappop(queues)
            if has_jobs:
                turn = line[at]
                turns.append(turn)
                n_tasks += len(turn.tasks)
                ahead[queue] = at + 1
                if self._by_pair:
                    self._count(turn.job, turn.more)
                heapq.heappush(queues, (key if self._by_pair else turn.key, queue))
        if self._by_pair:
            for turn in turns:
                self._count(turn.job, -turn.more)
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
        if len(waiting) != self._lacking.item(job) or self._state.snapshot.jobs.has_topology[job]:
            return None
        tasks = list(waiting)
        is_lone = len(tasks) == 1 and not self._groups[job].spec.min_task_member
        if not is_lone and not (self._is_alike(job, tasks) and self._starts_with(job, tasks)):
            return None
        classes = self._classes_of(tasks)
        return None if classes is None else Turn(queue, job, tasks, classes, self._sum(classes))

    def _is_alike(self, job: int, tasks: list[int]) -> bool:
        """Return whether neither placing nor refusing a task changes what becomes of the next."""
        state = self._state
        if not self._may_wait or state.ordering.moves_tasks(job):
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

    def _classes_of(self, tasks: list[int]) -> list[int] | None:
        """Return the classes of tasks; None if one of them must be placed by itself."""
        state, table, held = self._state, self._state.snapshot.tasks, self._state.queue_gates.held
        classes: list[int] = []
        seen = None
        for row in tasks:
            if table.nominated[row] != NOWHERE or row in held:
                return None
            task = Task(state.snapshot, row)
            if task.shape is not seen:
                seen = task.shape
                if state.policy.filter_task(task) is not None:
                    return None
            known = state.placing.class_of(task)
            if known is None or known.rankers or (known.counts and len(tasks) > 1):
                return None  # gangs remember who refused one of them
            if known.number not in self._steps:
                self._steps[known.number] = task.shape.step("place", 1, live=False)[1]
            classes.append(known.number)
        return classes

    def _sum(self, classes: list[int]) -> Delta:
        """Return what tasks of these classes add to sums (3, R)."""
        if len(classes) == 1:
            return self._steps[classes[0]]
        total: Delta = np.sum([n * self._steps[i] for i, n in Counter(classes).items()], axis=0)
        return total

    def _keys(self, turns: list[Turn]) -> list[Key]:
        """Return the keys of queues after each of their turns; those of a queue are together."""
        if not turns:
            return []
        if self._by_pair:
            return [None] * len(turns)
        rows = np.array([turn.queue for turn in turns], dtype=np.intp)
        more = cumulate(_amounts(turns), rows)
        return self._state.ordering.keys_of(ImaginedQueues(self._state.snapshot, rows, more))

    # The limits of queues

    def _count(self, job: int, amounts: Delta) -> None:
        snapshot = self._state.snapshot
        snapshot.add_to_sums(job, amounts)
        snapshot.journal.tick()

    def _allowed(self, turns: list[Turn]) -> int:
        """Return how many turns queues allow one after the other, as far as it can be known.

        A queue that has less does not allow less, so all of some turns are allowed if the last
        ones are with all others counted.
        """
        if not turns:
            return 0
        snapshot = self._state.snapshot
        counted = CountedTurns(snapshot, [turn.job for turn in turns], _amounts(turns))

        def are_allowed(n: int) -> bool:
            counted.set(n)
            return self._allows_all(turns[:n])

        n = longest(len(turns), are_allowed)
        counted.set(0)
        return n

    def _allows_all(self, turns: list[Turn]) -> bool:
        """Return whether queues allow turns that are counted.

        Asked about the last turn of each queue, and about its last task of each class.
        """
        last_of_queue = {turn.queue: turn for turn in turns}
        last_of_class = {
            (turn.queue, number): (turn, row)
            for turn in turns
            for number, row in zip(turn.classes, turn.tasks, strict=True)
        }
        may_begin = not self._may_be_overused or all(map(self._may_begin, last_of_queue.values()))
        return may_begin and all(
            self._may_place(turn, number, row) for (_, number), (turn, row) in last_of_class.items()
        )

    def _may_begin(self, turn: Turn) -> bool:
        self._count(turn.job, -turn.more)
        try:
            return not self._state.policy.overused(turn.queue)
        finally:
            self._count(turn.job, turn.more)

    def _may_place(self, turn: Turn, number: int, row: int) -> bool:
        task = Task(self._state.snapshot, row)
        self._count(turn.job, -self._steps[number])
        try:
            return bool(self._state.policy.allocatable(turn.queue, task))
        finally:
            self._count(turn.job, self._steps[number])

    # Placing

    def _place(self, turns: list[Turn]) -> int:
        """Place the tasks of turns up to the first that finds too few nodes; return how many.

        Queues that are compared in pairs take all turns or none.
        """
        if len(turns) < _SHORTEST:
            return 0
        state, mark = self._state, self._state.journal.mark()
        tasks = [row for turn in turns for row in turn.tasks]
        nodes, draws = state.placing.pick([each for turn in turns for each in turn.classes])
        n_turns, n = _whole(turns, len(nodes))  # of a gang that is short nothing stays
        if n_turns < len(turns) and self._by_pair:
            return n_turns
        tasks, nodes = tasks[:n], nodes[:n]
        if not n:
            return 0
        state.snapshot.bind_each(np.array(tasks), np.array(nodes))
        if state.hooks.failures.errors:
            state.journal.rollback(mark)
            return 0
        state.placing.state = draws[n - 1]
        state.intents.announce(tasks, nodes)
        state.records.found_again(tasks)
        for turn in turns[:n_turns]:
            state.records.take_turn(turn.job)
            state.records.note(turn.job, Stage.DONE, Why.SCHEDULED)
        return n_turns


def _amounts(turns: Sequence[Turn]) -> Column:
    """Return what each turn adds to sums (3, R, n)."""
    return np.array([turn.more for turn in turns]).transpose(1, 2, 0)


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
