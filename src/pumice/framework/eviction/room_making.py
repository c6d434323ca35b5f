"""Steps of a run that everybody agrees to, made at once.

Plugins that count are asked about the whole line of victims; the order of jobs must stand while
they go.
"""

from collections import Counter

import numpy as np

from pumice.core.resources import IndexArray
from pumice.core.status import Status
from pumice.core.views import Task
from pumice.framework.dispatch import Method
from pumice.framework.eviction.eviction_ladders import Ladders, Step
from pumice.framework.eviction.victim_lines import InTurn, JobKeys
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import SessionState
from pumice.framework.statement import Room, Statement

_RELEASING = int(Status.RELEASING)


class RoomMaker:
    """Makes room for equal tasks of one action, step by step as planned."""

    def __init__(self, state: SessionState, hook: Method) -> None:
        self._state = state
        self._snapshot = state.snapshot
        self._hook = hook
        self._action = "preempt" if hook is Plugin.preemptable else "reclaim"

    def make(self, stmt: Statement, tasks: list[int], ladders: Ladders, steps: list[Step]) -> int:
        """Make the steps that everybody agrees to, and return how many."""
        steps = steps[: self._n_offered(Task(self._snapshot, tasks[0]), ladders, steps)]
        rooms, start = self._rooms(tasks, ladders, steps), stmt.checkpoint()
        if not rooms or self._state.hooks.failures.errors:
            return 0
        gone = self._rivals(ladders, steps, rooms)
        stands = not gone or self._keeps_job_order(gone, ladders.lines.job_keys)
        if stands and not self._state.hooks.failures.errors:
            stmt.make_rooms(rooms, self._action, gone=gone)
            return len(rooms)
        stmt.rollback(start)
        return 0

    def _rooms(self, tasks: list[int], ladders: Ladders, steps: list[Step]) -> list[Room]:
        best_effort, reclaims = self._snapshot.tasks.best_effort, self._hook is Plugin.reclaimable
        nodes = ladders.nodes.tolist()
        rooms: list[Room] = []
        for task, step in zip(tasks, steps, strict=False):
            victims = ladders.going(step)
            counted = victims if reclaims else [each for each in victims if not best_effort[each]]
            rooms.append(Room(task, nodes[step.place], victims, freed=bool(counted)))
        return rooms

    def _rivals(self, ladders: Ladders, steps: list[Step], rooms: list[Room]) -> list[int]:
        """Return the victims whose going might move jobs that are in line with others on a node.

        Not those after whom nobody of their job is: its key counted before they went.
        """
        shared, lines = ladders.shared, ladders.lines
        if not lines.lasts:
            shared = shared & {step.place for step in steps}
        if not shared:
            return []
        job, status = self._snapshot.tasks.job, self._snapshot.tasks.status
        alive = (status.take(lines.rows) != _RELEASING).tolist()
        in_line = zip(job.take(lines.rows).tolist(), lines.place.tolist(), alive, strict=True)
        left = Counter(owner for owner, place, is_left in in_line if is_left and place in shared)
        rivals: list[int] = []
        for step, room in zip(steps, rooms, strict=True):
            for victim in room.victims:
                owner = int(job[victim])
                left[owner] -= step.place in shared
                if left[owner] > 0:
                    rivals.append(victim)
        return rivals

    def _keeps_job_order(self, gone: list[int], before: JobKeys) -> bool:
        """Evict victims and return whether that leaves their jobs as they were in order."""
        self._snapshot.evict_each(np.array(gone, dtype=np.intp))
        jobs = sorted(set(self._snapshot.tasks.job.take(gone).tolist()))
        return self._state.ordering.job_policy_keys(jobs) == [before[job] for job in jobs]

    def _n_offered(self, task: Task, ladders: Ladders, steps: list[Step]) -> int:
        """Return for how many steps those who judge in turn offer all that are in line."""
        n, lines = len(steps), ladders.lines
        for tier, judges in enumerate((lines.in_turn, lines.in_turn_later)):
            if judges:
                n = self._n_agreed(task, ladders, steps[:n], tier, judges)
        return n

    def _n_agreed(
        self, task: Task, ladders: Ladders, steps: list[Step], tier: int, judges: InTurn
    ) -> int:
        """Return for how many steps some who judge in turn offer all whom their tier must offer."""
        asked = [i for i, decides in enumerate(ladders.tiers(steps)) if decides == tier]
        line: list[int] = []
        ends: list[int] = []
        for step in steps[: asked[-1] + 1] if asked else ():
            line += ladders.in_line(step)
            ends.append(len(line))
        n, rows = len(steps), ladders.lines.rows
        while asked:
            end = ends[asked[-1]]
            offered = _offered(judges, task, rows, line[:end])
            if offered == end:
                return n
            if n < len(steps):
                return 0
            n = next(i for i in asked if ends[i] > offered)
            asked = [i for i in asked if i < n]
        return n


def _offered(judges: InTurn, task: Task, rows: IndexArray, line: list[int]) -> int:
    """Return how many of the first in line are offered by all who could ever offer them."""
    at, n = np.array(line, dtype=np.intp), len(line)
    for ask, bound in judges:
        asked = bound[at].nonzero()[0]
        if not len(asked):
            continue
        answer = ask(task, rows[at[asked]].tolist())
        if answer is None:
            return 0
        offered = np.asarray(answer, dtype=bool).tolist()
        if False in offered:
            n = min(n, int(asked[offered.index(False)]))
    return n
