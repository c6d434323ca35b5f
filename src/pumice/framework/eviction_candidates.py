"""Tasks that might be evicted, node by node; shared by preempt and reclaim.

Answers two questions: which tasks of a node may be asked for, and which nodes are worth asking at
all.  The second is answered with columns, so that hopeless nodes cost nothing.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import STEP, Column, Mask
from pumice.core.status import N_STATUS, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Task

if TYPE_CHECKING:
    from pumice.framework.session import Session

IndexArray = NDArray[np.intp]


@dataclass
class Scope:
    """Some of the candidates, such as all of one queue, and their sum on each node."""

    members: Mask
    """Which candidates belong (k,)."""
    sums: Column
    """Requests of members that still run, by node (R, N)."""
    cursor: int = 0


class Candidates:
    """The preemptable tasks of known jobs that hold a node when an action starts.

    Statuses are read live: a task that was evicted meanwhile is no candidate any more.
    """

    def __init__(self, ssn: "Session", statuses: Iterable[Status]) -> None:
        self._ssn = ssn
        self._snapshot = ssn.snapshot
        tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
        self._counts = np.zeros(N_STATUS, dtype=bool)
        self._counts[list(statuses)] = True
        rows = np.flatnonzero(
            self._counts[tasks.status]
            & tasks.preemptable
            & (tasks.node != NOWHERE)
            & (tasks.job != NOWHERE)
        )
        rows = rows[jobs.listed[tasks.job[rows]]]
        rows = rows[np.argsort(tasks.node[rows], kind="stable")]
        self.rows: IndexArray = rows
        self.node = tasks.node[rows]
        self.job = tasks.job[rows]
        self.queue = jobs.queue[self.job]
        self.best_effort = tasks.best_effort[rows]
        self._requests = self._gather_requests()
        self._starts = np.searchsorted(self.node, np.arange(ssn.snapshot.nodes.n + 1))
        self._scopes: dict[Hashable, Scope] = {}

    def _gather_requests(self) -> Column:
        """Lay the candidates' requests out as columns (R, k)."""
        shapes = self._snapshot.shapes
        known, where = np.unique(self._snapshot.tasks.shape[self.rows], return_inverse=True)
        if not len(known):
            return np.zeros((len(self._snapshot.resources), 0))
        return np.concatenate([shapes[i].request for i in known.tolist()], axis=1)[:, where]

    def scope(self, key: Hashable, members: Callable[["Candidates"], Mask]) -> Scope:
        """Give a part of the candidates; ``members`` is asked once for each key."""
        found = self._scopes.get(key)
        if found is None:
            sums = np.zeros((len(self._requests), self._snapshot.nodes.n))
            found = self._scopes[key] = Scope(members(self), sums)
            for node in np.unique(self.node[found.members]).tolist():
                self._add_up(found, node)
            found.cursor = len(self._snapshot.journal.moved)
        return found

    def on_node(self, scope: Scope, node: int) -> list[int]:
        """List the members of a scope that still run on a node."""
        part = slice(self._starts[node], self._starts[node + 1])
        rows = self.rows[part]
        live = scope.members[part] & self._counts[self._snapshot.tasks.status[rows]]
        found: list[int] = rows[live].tolist()
        return found

    def sums(self, scope: Scope) -> Column:
        """Give what the members of a scope that still run hold on each node (R, N)."""
        moved = self._snapshot.journal.moved
        if scope.cursor < len(moved):
            rows: set[int] = set()
            for entry in moved[scope.cursor :]:
                rows.update([entry] if isinstance(entry, int) else entry.tolist())
            scope.cursor = len(moved)
            for node in rows:
                self._add_up(scope, node)
        return scope.sums

    def _add_up(self, scope: Scope, node: int) -> None:
        part = slice(self._starts[node], self._starts[node + 1])
        if part.start == part.stop:
            return
        live = scope.members[part] & self._counts[self._snapshot.tasks.status[self.rows[part]]]
        scope.sums[:, node] = self._requests[:, part] @ live

    def worth_asking(self, scope: Scope, task: Task) -> Mask:
        """Mark nodes that could hold a task if all members of the scope left (N,)."""
        room = self._snapshot.nodes.future_idle + self.sums(scope)
        return np.asarray((task.request - room < STEP).all(axis=0))

    def with_victims(self, hook: str, scope: Scope, task: Task) -> Mask:
        """Mark nodes where plugins could name victims that make room for a task (N,).

        Follows the tier rule of the session from above: a plugin with nothing to offer on a node
        ends its tier there, and what a tier yields is part of its last plugin's answer.
        """
        live = scope.members & self._counts[self._snapshot.tasks.status[self.rows]]
        at = np.flatnonzero(live)
        rows, node = self.rows[at], self.node[at]
        free = self._snapshot.nodes.future_idle
        n = free.shape[1]
        found = np.asarray((task.request - free < STEP).all(axis=0))
        for tier in self._ssn.hooks[hook]:
            open_nodes = np.ones(n, dtype=bool)
            offered: Mask = np.ones(len(at), dtype=bool)
            for method in tier:
                bound = method.plugin.bound_victims(hook, task, rows)  # type: ignore[attr-defined]
                offered = np.ones(len(at), dtype=bool) if bound is None else bound
                open_nodes &= np.bincount(node[offered], minlength=n) > 0
            sums = _sum_by_node(self._requests[:, at[offered]], node[offered], n)
            found |= open_nodes & (task.request - free - sums < STEP).all(axis=0)
        return found


def _sum_by_node(requests: Column, node: NDArray[np.int32], n: int) -> Column:
    """Add up requests (R, k) by node (R, N)."""
    return np.stack([np.bincount(node, weights=row, minlength=n) for row in requests])
