"""Several turns of allocate with one question to the kernel.

The order of turns follows from the amounts of queues alone, so that it is drawn up ahead; limits of
queues are asked about sums as they would be.  Only plugins that declare ``foreseeable`` are asked
so, and only classes of pods that the kernel knows are placed so; every other turn is taken by
itself, and decides the same.
"""

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column
from pumice.core.tables import NOWHERE, Delta
from pumice.core.views import Task, mixed_roles
from pumice.framework.columns import all_jobs
from pumice.framework.job_placement import JobMemory
from pumice.framework.ordering import Heap, Key
from pumice.framework.placement.ahead import (
    CountedTurns,
    ImaginedJobs,
    ImaginedQueues,
    cumulate,
    longest,
    placed_ahead,
)
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Stage, Why
from pumice.framework.session_state import SessionState

_SHORTEST, _FIRST, _LONGEST = 8, 32, 1024
"""Turns to take at once: fewer cost more than they save; how many are looked ahead at first, where
all may be in vain, and at most."""
_MOST_TURNS = 64
"""Turns to look ahead of a job that has started."""
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
    """One turn: the tasks that a job needs to start, in order, or one beyond them."""

    queue: int
    job: int
    tasks: list[int]
    classes: list[int]
    """The class of each task, by number."""
    more: Delta
    """What the turn adds to sums (3, R)."""
    key: Key = None
    """That of the queue after it."""
    job_key: Key = None
    """That of the job after it, if more tasks of it wait."""


class Line(msgspec.Struct):
    """The next turns of a queue, up to the first that cannot be foreseen."""

    turns: list[Turn]
    is_whole: bool
    """Whether these are all."""


class BatchedTurns:
    """Takes turns off the queues and jobs of allocate while they can be foreseen."""

    def __init__(
        self,
        state: SessionState,
        jobs: Mapping[int, Heap],
        tasks: Mapping[int, deque[int]],
        memory: Mapping[int, JobMemory],
    ) -> None:
        """Read the state: jobs by queue, tasks by job, and what is remembered of jobs."""
        self._state = state
        self._jobs = jobs
        self._tasks = tasks
        self._memory = memory
        self._lines: dict[int, Line] = {}
        """Queue to the turns of its next jobs."""
        self._turns: dict[int, list[Turn]] = {}
        """Job to its turns; none if they cannot be foreseen."""
        self._length = _FIRST
        self._wait, self._patience = 0, 1
        several = sum(map(len, tasks.values())) >= _SHORTEST
        several &= not state.hooks.tiers(Plugin.may_start)  # asked after each job that has places
        self._can = several and not state.policy.follows_placements and self._foreseeable()
        self._by_pair = state.ordering.queues_by_pair
        self._groups: list[Any] = state.snapshot.jobs.groups
        self._steps: dict[int, Delta] = {}
        """What a task of each class adds to sums (3, R)."""
        self._may_be_overused = bool(state.hooks.tiers(Plugin.overused))
        self._may_wait = bool(state.hooks.bound(Plugin.job_ready))
        """Whether plugins decide when a job is ready: else each task is a turn."""

    @cached_property
    def _orders_ahead(self) -> bool:
        """Whether it can be foreseen how a job that goes on compares with others."""
        orders = self._state.hooks.bound(Plugin.order_jobs)
        return all(plugin.foreseeable for plugin, _ in orders)

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
        if len(self._jobs[queue]):
            self._turns.pop(self._jobs[queue].entries[0][1], None)

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
        """Remove turns from the lists, and jobs that have no more from the queues."""
        left: dict[int, dict[int, Turn]] = {}
        for turn in taken:
            left.setdefault(turn.queue, {})[turn.job] = turn
            self._turns[turn.job].pop(0)
            self._lacking[turn.job] = 1
            for _ in turn.tasks:
                self._tasks[turn.job].popleft()
        for queue, n in Counter(turn.queue for turn in taken).items():
            del self._lines[queue].turns[:n]
            if not self._lines[queue].turns:
                del self._lines[queue]
            last, entries = left[queue], self._jobs[queue].entries
            entries[:] = [each for each in entries if each[1] not in last]
            again = [(turn.job_key, job) for job, turn in last.items() if self._tasks[job]]
            if again:
                entries += again
                entries.sort()
                for _, job in again:
                    if not self._turns[job]:
                        del self._turns[job]  # there are more than were foreseen

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
            has_turns = at < len(line.turns)
            if not (has_turns or line.is_whole):
                break
            key, _ = heapq.heappop(queues)
            if has_turns:
                turn = line.turns[at]
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
        known: dict[int, int] = {}
        for queue in queues:
            entries = self._jobs[queue].entries
            entries.sort()  # a sorted list is a heap
            known[queue] = self._foresee_jobs(queue, most)
        found: list[Turn] = []
        for queue, n in known.items():
            self._lines[queue] = self._line(queue, n)
            found += self._lines[queue].turns
        for turn, key in zip(found, self._keys(found), strict=True):
            turn.key = key

    def _foresee_jobs(self, queue: int, most: int) -> int:
        """Find the turns of the first jobs of a queue; return of how many."""
        entries = self._jobs[queue].entries
        for at, (_, job) in enumerate(entries[:most]):
            if job not in self._turns:
                self._turns[job] = self._turns_of(queue, job)
            if not self._turns[job]:
                return at
        return min(most, len(entries))

    def _line(self, queue: int, n: int) -> Line:
        """Put the turns of the first jobs of a queue in order, as far as no other comes between."""
        entries = self._jobs[queue].entries
        heap, rest = entries[:n], entries[n : n + 1]
        turns: list[Turn] = []
        ahead: dict[int, int] = {}
        while heap and (not rest or heap[0] < rest[0]):
            job = heap[0][1]
            at, mine = ahead.get(job, 0), self._turns[job]
            turns.append(mine[at])
            ahead[job] = at + 1
            if mine[at].job_key is None:
                heapq.heappop(heap)
                continue
            heapq.heapreplace(heap, again := (mine[at].job_key, job))
            if at + 1 == len(mine):
                rest = [min([again, *rest])]  # there are more than were foreseen
        return Line(turns, not rest)

    def _turns_of(self, queue: int, job: int) -> list[Turn]:
        """Return the turns of a job; none if it is not so simple."""
        if job in self._memory:  # it took a turn by itself
            if self._memory[job].failed_roles:
                return []
            view = self._state.job(job)
            self._lacking[job] = max(1, view.min_member - view.ready - view.pending_best_effort)
        waiting, least = self._tasks[job], self._lacking.item(job)
        goes_on = len(waiting) > least
        if len(waiting) < least or self._state.snapshot.jobs.has_topology[job]:
            return []
        if goes_on and not self._orders_ahead:
            return []
        tasks = list(itertools.islice(waiting, least + _MOST_TURNS))
        is_lone = len(tasks) == 1 and not self._groups[job].spec.min_task_member
        may_start = is_lone or (
            self._is_alike(job, tasks) and self._starts_with(job, tasks[:least])
        )
        classes = self._classes_of(tasks) if may_start else None
        if classes is None:
            return []
        turns = [Turn(queue, job, tasks[:least], classes[:least], self._sum(classes[:least]))]
        turns += [
            Turn(queue, job, [task], [number], self._steps[number])
            for task, number in zip(tasks[least:], classes[least:], strict=True)
        ]
        if goes_on:
            self._foresee_keys(job, turns)
        if len(tasks) == len(waiting):
            turns[-1].job_key = None
        return turns

    def _foresee_keys(self, job: int, turns: list[Turn]) -> None:
        """Find the keys of a job after each of its turns."""
        more = _amounts(turns).cumsum(axis=-1)
        placed = np.cumsum([len(turn.tasks) for turn in turns])
        rows = np.full(len(turns), job, dtype=np.intp)
        view = ImaginedJobs(self._state.snapshot, rows, more, placed)
        for turn, key in zip(turns, self._state.ordering.job_keys_of(view), strict=True):
            turn.job_key = key

    def _is_alike(self, job: int, tasks: list[int]) -> bool:
        """Return whether neither placing nor refusing a task changes what becomes of the next."""
        state = self._state
        if not self._may_wait or state.ordering.moves_tasks(job):
            return False
        return not mixed_roles(state.snapshot, tasks, state.placing.varying)

    def _starts_with(self, job: int, tasks: list[int]) -> bool:
        """Return whether a job is ready with all of these tasks placed, and not with fewer."""
        state = self._state
        if len(tasks) > 1:  # one is placed in any case
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
