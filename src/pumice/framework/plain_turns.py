"""Turns of allocate that can be foreseen: of jobs with one plain task, taken many at a time.

The order of the turns follows from the amounts of queues alone, so it can be drawn up ahead on
imagined queues; the picks can be foreseen, too.  A turn decides exactly as it would by
itself; where that cannot be guaranteed it is taken by itself.
"""

import heapq
from collections import Counter, deque
from collections.abc import Container, Mapping
from functools import cached_property
from typing import Final

import msgspec
import numpy as np

from pumice.core.resources import Mask
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.columns import all_jobs
from pumice.framework.equal_tasks import is_plain
from pumice.framework.foreseen_picks import ForeseenPicks
from pumice.framework.heaps import Heap, Key
from pumice.framework.imagined_rows import ImaginedQueues, cumulate
from pumice.framework.job_records import Stage
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Why
from pumice.framework.session_state import SessionState

_SHORTEST, _LONGEST = 8, 1024
"""Turns to take at once: fewer cost more than they save; the most that is looked ahead."""
_ASKED: Final = (
    Plugin.order_queues,
    Plugin.compare_queues,
    Plugin.overused,
    Plugin.allocatable,
    Plugin.filter_task,
    Plugin.job_ready,
)
"""Hooks that a turn asks beside those about nodes."""


class Turn(msgspec.Struct, frozen=True):
    """One turn: the job's only task, of which kind it is, and the queue's key after it."""

    queue: int
    job: int
    task: int
    kind: int
    key: Key


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
        self._length = _LONGEST
        self._wait, self._patience = 0, 1
        several = sum(map(len, jobs.values())) >= _SHORTEST
        self._can = several and state.policy.by_row and self._foreseeable()
        self._by_pair = state.ordering.queues_by_pair

    def _foreseeable(self) -> bool:
        asked = [plugin for hook in _ASKED for plugin, _ in self._state.hooks.bound(hook)]
        return all(plugin.foreseeable for plugin in asked)

    @cached_property
    def _picks(self) -> ForeseenPicks:
        return ForeseenPicks(self._state.placing)

    @cached_property
    def _lacks_one(self) -> Mask:
        """Jobs that need at most one more task to be ready (n,)."""
        jobs = all_jobs(self._state.snapshot)
        return np.asarray(jobs.ready + jobs.pending_best_effort + 1 >= jobs.min_member)

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
        turns = self._draw_up(entries)
        placed = self._place(turns) if turns else 0
        self._adapt(placed, len(turns))
        if not placed or (placed < len(turns) and self._by_pair):
            return False
        if placed < len(turns):
            turns = turns[:placed]
            entries = _heap_after(queues.entries, turns)
        queues.entries = entries
        self._advance(turns)
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

    def _draw_up(self, queues: list[tuple[Key, int]]) -> list[Turn]:
        """List the next turns as far as they can be foreseen, and remove them from a heap.

        Queues that are compared in pairs use sums as they would be.
        """
        self._foresee([queue for _, queue in queues if queue not in self._lines])
        turns: list[Turn] = []
        ahead = dict.fromkeys((queue for _, queue in queues), 0)
        while queues and len(turns) < self._length:
            queue = queues[0][1]
            at, line = ahead[queue], self._lines[queue]
            has_jobs = at < len(self._jobs[queue])
            if has_jobs and at == len(line):
                break
            key, _ = heapq.heappop(queues)
            if has_jobs:
                turn = line[at]
                turns.append(turn)
                ahead[queue] = at + 1
                if self._by_pair:
                    self._count(turn, 1)
                heapq.heappush(queues, (key if self._by_pair else turn.key, queue))
        if self._by_pair:
            for turn in turns:
                self._count(turn, -1)
        return turns if len(turns) >= _SHORTEST else []

    def _count(self, turn: Turn, sign: int) -> None:
        """Count a turn in sums as if it had been taken, or undo that."""
        snapshot = self._state.snapshot
        shape = snapshot.shapes[snapshot.tasks.shape[turn.task]]
        snapshot.add_to_sums(turn.job, shape.step("place", sign, live=False)[1])
        if self._by_pair:
            snapshot.journal.tick()

    def _foresee(self, queues: list[int]) -> None:
        """List the next turns of some queues."""
        most = max(4, 2 * self._length // max(1, len(queues)))
        found: list[tuple[int, int, int, int]] = []
        for queue in queues:
            self._lines[queue] = []
            entries = self._jobs[queue].entries
            entries.sort()  # a sorted list is a heap
            for _, job in entries[:most]:
                task = self._only_task(job)
                kind = None if task is None else self._picks.kind(Task(self._state.snapshot, task))
                if task is None or kind is None:
                    break
                found.append((queue, job, task, kind))
        for turn, key in zip(found, self._keys(found), strict=True):
            self._lines[turn[0]].append(Turn(*turn, key))

    def _only_task(self, job: int) -> int | None:
        """Return the only task of a job that is ready with it; None if it is not that simple."""
        state, tasks = self._state, self._tasks[job]
        if len(tasks) != 1 or job in self._tried or not self._lacks_one[job]:
            return None
        row, table = tasks[0], state.snapshot.tasks
        if (
            state.snapshot.jobs.has_topology[job]
            or table.nominated[row] != NOWHERE
            or row in state.queue_gates.held
            or state.snapshot.shapes[table.shape[row]].coarse
            or not is_plain(state, row)
            or state.policy.filter_task(Task(state.snapshot, row)) is not None
        ):
            return None
        return row

    def _keys(self, turns: list[tuple[int, int, int, int]]) -> list[Key]:
        """Return the keys of queues after each of their turns; those of a queue are together."""
        if not turns:
            return []
        if self._by_pair:
            return [None] * len(turns)
        snapshot = self._state.snapshot
        shapes = [snapshot.shapes[i] for i in snapshot.tasks.shape[[t[2] for t in turns]].tolist()]
        each = np.stack([shape.step("place", 1, live=False)[1] for shape in shapes], axis=-1)
        rows = np.array([turn[0] for turn in turns], dtype=np.intp)
        more = cumulate(each, rows)
        return self._state.ordering.keys_of(ImaginedQueues(snapshot, rows, more))

    # Placing

    def _place(self, turns: list[Turn]) -> int:
        """Place the tasks of turns up to the first that finds no node; return how many.

        Queues that are compared in pairs take all turns or none.
        """
        state, placing = self._state, self._state.placing
        mark, generator = state.journal.mark(), placing.state
        drawn = generator
        tasks, kinds = [turn.task for turn in turns], [turn.kind for turn in turns]
        if not self._picks.begin(kinds):
            self._lines.clear()
            return 0
        nodes: list[int] = []
        while len(nodes) < len(turns):
            at = len(nodes)
            picks = self._picks.pick(kinds[at:])
            if not picks:
                break
            if len(picks) == 1:
                state.snapshot.bind(tasks[at], picks[0])
            else:
                some = tasks[at : at + len(picks)]
                state.snapshot.bind_each(np.array(some), np.array(picks))
            self._picks.placed()
            nodes += picks
            drawn = placing.state
        taken = turns[: len(nodes)]
        allowed = not state.hooks.failures.errors and self._is_within_limits(taken)
        if not allowed or (len(taken) < len(turns) and self._by_pair):
            state.journal.rollback(mark)
            placing.state = generator
            return len(nodes) if allowed else 0
        placing.state = drawn
        state.intents.announce(tasks[: len(nodes)], nodes)
        state.records.given_up.difference_update(tasks[: len(nodes)])
        for turn in taken:
            state.records.take_turn(turn.job)
            state.records.note(turn.job, Stage.DONE, Why.SCHEDULED)
        return len(nodes)

    def _is_within_limits(self, turns: list[Turn]) -> bool:
        """Return whether queues allow all these turns, which were taken.

        Asked about the last turn of each queue and kind, with all others in place: a queue that has
        less does not allow less.
        """
        last_of_queue = {turn.queue: turn for turn in turns}
        last_of_kind = {(turn.queue, turn.kind): turn for turn in turns}
        for turn in last_of_kind.values():
            is_last = last_of_queue[turn.queue] is turn
            if not self._allows(turn, is_last=is_last):
                return False
        return True

    def _allows(self, turn: Turn, *, is_last: bool) -> bool:
        policy, task = self._state.policy, Task(self._state.snapshot, turn.task)
        self._count(turn, -1)
        try:
            if is_last and policy.overused(turn.queue):
                return False
            return bool(policy.allocatable(turn.queue, task))
        finally:
            self._count(turn, 1)


def _heap_after(queues: list[tuple[Key, int]], turns: list[Turn]) -> list[tuple[Key, int]]:
    """Return the heap of queues once some turns are taken."""
    keys = {turn.queue: turn.key for turn in turns}
    heap = [(keys.get(queue, key), queue) for key, queue in queues]
    heapq.heapify(heap)
    return heap
