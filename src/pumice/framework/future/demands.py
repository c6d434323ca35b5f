"""What waiting jobs take to start, found for all of them at once."""

from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import PODS, Column, Mask
from pumice.core.status import ALLOCATED_CLASS, PENDING, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.future.promises import Demand
from pumice.framework.placing import Fit
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import SessionState

_READY = [*map(int, ALLOCATED_CLASS), int(Status.SUCCEEDED), int(Status.PIPELINED)]
_MOST_SHAPES = 256
"""Shapes that are compared with each other; with more, each is a kind of its own."""


class Demands:
    """The demands of the jobs of a session, by row."""

    def __init__(self, state: SessionState, *, nodes_close: bool) -> None:
        self._state = state
        self._nodes_close = nodes_close
        """Whether some nodes take pods for a while only."""
        self._known: dict[int, Demand] = {}
        self._shapes: dict[Hashable, Demand] = {}
        """What one pod of each shape takes."""
        self._several: dict[tuple[Hashable, int, bool], Demand] = {}
        self._alike: dict[int, tuple[int, int]] | None = None
        """Job to a pod of it and how many it lacks, where all pods have one shape."""

    def of(self, job: int) -> Demand:
        """Return the least that a job takes to start."""
        found = self._known.get(job)
        if found is None:
            if self._alike is None:
                self._alike = self._find_alike()
            alike = self._alike.get(job)
            found = self._of_rows(job) if alike is None else self._times(job, *alike)
            self._known[job] = found
        return found

    def _find_alike(self) -> dict[int, tuple[int, int]]:
        state, tasks, jobs = self._state, self._state.snapshot.tasks, self._state.snapshot.jobs
        if state.placing.varying or state.queue_gates.held:
            return {}
        waits = (tasks.status == PENDING) & ~tasks.gated & ~tasks.best_effort
        rows = np.flatnonzero(waits & (tasks.job != NOWHERE))
        rows = rows[np.argsort(tasks.job[rows], kind="stable")]
        owners, first, counts = np.unique(tasks.job[rows], return_index=True, return_counts=True)
        if not len(rows):
            return {}
        shapes = tasks.shape[rows]
        same = np.minimum.reduceat(shapes, first) == np.maximum.reduceat(shapes, first)
        found = jobs.counts[_READY].sum(axis=0) + jobs.n_pending_best_effort
        lacking = np.minimum(np.maximum(jobs.min_member - found, 1)[owners], counts)
        chosen = owners[same].tolist(), rows[first[same]].tolist(), lacking[same].tolist()
        return {job: (row, n) for job, row, n in zip(*chosen, strict=True)}

    def _times(self, job: int, row: int, n: int) -> Demand:
        """Return what so many pods like one take."""
        shape = int(self._state.snapshot.tasks.shape[row])
        if shape not in self._shapes:
            self._shapes[shape] = self._one(row, shape)
        plain = self._shapes[shape].plain and not self._state.topology.needs_search(job)
        key = shape, n, plain
        if key not in self._several:
            self._several[key] = replace(self._shapes[shape], count=n, plain=plain)
        return self._several[key]

    def _of_rows(self, job: int) -> Demand:
        """Return what pods take that differ, or that plugins tell apart."""
        state, view = self._state, self._state.job(job)
        snapshot, rows = state.snapshot, state.tasks_to_allocate(job)
        found = view.ready + view.waiting + view.pending_best_effort
        n = min(max(view.min_member - found, 1), len(rows))
        kinds = {state.placing.class_key(Task(snapshot, row)) for row in rows}
        if len(kinds) != 1:
            amounts = snapshot.sum_requests(rows if n == len(rows) else [])
            return Demand(None, 1, amounts, None, plain=False)
        one = self._one(rows[0], kinds.pop())
        return replace(one, count=n, plain=one.plain and not state.topology.needs_search(job))

    def _one(self, row: int, kind: Hashable) -> Demand:
        """Return what one pod takes.

        Plain pods that differ only in what is never scarce are of one kind.
        """
        task = Task(self._state.snapshot, row)
        allowed = _allowed(self._state.placing.fit(task))
        need, plain = task.request[:, 0], self._is_plain(task)
        if plain and self._ample.any():
            need = np.where(self._ample, 0.0, need)
            kind = need.tobytes(), b"" if allowed is None else allowed.tobytes()
        return Demand(kind, 1, need, allowed, plain)

    def _is_plain(self, task: Task) -> bool:
        """Return whether such tasks go by amounts of nodes alone."""
        state, nodes = self._state, self._state.snapshot.nodes
        asked = (Plugin.allocatable, Plugin.overused)
        if (
            self._nodes_close
            or any(state.hooks.bound(hook) for hook in asked)
            or not state.placing.by_amounts(task)
        ):
            return False
        wanted = task.request[:, 0] > 0
        wanted[PODS] = False
        full = (nodes.allocatable[wanted, : nodes.n] / task.request[wanted]).min(axis=0)
        return bool((full <= nodes.allocatable[PODS, : nodes.n]).all())

    @cached_property
    def _ample(self) -> Mask:
        """Mark the resources that are never scarce, because another one is used up before (R,).

        No pod asks for more of them, for each unit of that one, than every node has.
        """
        snapshot = self._state.snapshot
        tasks, offered = snapshot.tasks, snapshot.nodes.allocatable[:, : snapshot.nodes.n]
        live = np.flatnonzero((tasks.job != NOWHERE) | (tasks.node != NOWHERE))
        none: Mask = np.zeros(len(offered), dtype=bool)
        _, first = np.unique(tasks.shape[live], return_index=True)
        if not 0 < len(first) <= _MOST_SHAPES or not offered.size:
            return none
        asked = snapshot.requests(live[first])
        return max((_ample_beside(row, asked, offered) for row in range(len(offered))), key=np.sum)


def _ample_beside(row: int, asked: Column, offered: Column) -> Mask:
    """Mark what is never scarce where a resource is used up before (R,)."""
    if row == PODS or (asked[row] <= 0).any() or (offered[row] <= 0).any():
        return np.zeros(len(offered), dtype=bool)
    found: NDArray[np.bool_] = (asked / asked[row]).max(axis=1) <= (offered / offered[row]).min(
        axis=1
    )
    found[row] = False
    return found


def _allowed(fit: Fit) -> Mask | None:
    """Return the nodes that do not refuse such pods for the whole session."""
    static = [codes == 0 for codes in fit.static_codes if codes is not None]
    return np.logical_and.reduce(static) if static else None
