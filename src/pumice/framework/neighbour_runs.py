"""Runs of equal tasks that have to do with other pods: host ports, hard (anti-)affinity, spread.

A placement opens or closes other nodes, too.  The watchers of the Kubernetes view get each pick at
once and log the rows whose answers change; plugins mark which of these are closed by pods.  Other
filters, scores and room follow from amounts alone and are asked ahead, about open nodes.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pumice.core.resources import IndexArray, Mask
from pumice.core.shapes import Shape
from pumice.core.views import Nodes, Task
from pumice.framework.equal_runs import Run
from pumice.framework.fits import Fit
from pumice.framework.placing import Placing


class NeighbourRun(Run):
    """Picks for equal tasks (rows); what follows the view is left as if they were placed."""

    def __init__(
        self,
        placing: Placing,
        tasks: list[int],
        fit: Fit,
        allowed: Mask | None,
        *,
        reopens: bool,
    ) -> None:
        """Make one; unless it ``reopens``, a node that refuses once stays out."""
        super().__init__(placing, Task(placing.snapshot, tasks[0]), fit, allowed)
        self._tasks = tasks
        fits = fit.verdict == 0
        self._is_open = fits if allowed is None else fits & allowed
        self._may_open = allowed if reopens else self._is_open
        """Nodes that may be open; None: all."""
        self._worth = fit.value.copy()
        """What nodes are worth with their copies while they are open."""
        self._unasked = None if fits.all() else ~fits
        """Nodes of which that is not known, because pods may have closed them at the start."""
        self._stale: set[int] = set()
        """Nodes of which it is not known, because they took a copy and were not open since."""

    def pick_all(self, n: int) -> list[int]:
        """Return nodes for n tasks; none if room runs out before."""
        journal, state = self._placing.snapshot.journal, self._placing.state
        mark = journal.mark()
        picks = self.pick(n)
        if len(picks) < n:
            journal.rollback(mark)
            self._placing.state = state
            return []
        return picks

    def _add(self, node: int, likely: Callable[[], list[int]]) -> float:
        """Put one more copy on a node, see which nodes that opens and closes."""
        others = self._report(node)
        if not self._left:
            return -np.inf
        self._stirs = bool(others)
        self._stale.add(node)
        self._value[node] = np.nan  # until it is known
        opened = [rows for logged in others if len(rows := self._reopen(logged))]
        if math.isnan(self._value[node]) and self._reopen_one(node):
            opened.append(np.array([node]))
        if opened:
            self._learn(opened, likely)
        return float(self._value[node])

    def _report(self, node: int) -> list[Any]:
        """Report the next task to the watchers of the view; return the rows they log."""
        snapshot, task = self._placing.snapshot, self._tasks[len(self._picks)]
        self._picks.append(node)
        self._left -= 1
        self._copies[node] = self._copies.get(node, 0) + 1
        moved = snapshot.journal.moved
        cursor = len(moved)
        snapshot.notify_watchers(task, node, 1)
        return [np.array([rows]) if isinstance(rows, int) else rows for rows in moved[cursor:]]

    def _reopen(self, rows: IndexArray) -> IndexArray:
        """Return those of some nodes that are open now."""
        closed = self._placing.closed_by_pods(self._task, rows)
        is_open = np.ones(len(rows), dtype=bool) if closed is None else ~closed
        if self._may_open is not None:
            is_open &= self._may_open[rows]
        self._is_open[rows] = is_open
        self._value[rows] = -np.inf
        return rows[is_open]

    def _reopen_one(self, node: int) -> bool:
        """Return whether the node that took a copy, which was open until now, still is."""
        closed = self._placing.closed_by_pods(self._task, slice(node, node + 1))
        self._is_open[node] = is_open = closed is None or not closed[0]
        self._value[node] = -np.inf
        return is_open

    def _learn(self, opened: list[IndexArray], likely: Callable[[], list[int]]) -> None:
        """Set the values of nodes that are open now; the others are known by then to be closed."""
        if self._unasked is not None:
            for rows in opened:
                self._ask(rows[self._unasked[rows]], self._unasked)
        self._catch_up(likely)
        for rows in opened:
            self._value[rows] = self._worth[rows]

    def _ask(self, rows: IndexArray, unasked: Mask) -> None:
        """Learn what nodes without copies are worth that are open for the first time."""
        if len(rows):
            nodes = Nodes(self._placing.snapshot, rows)
            self._worth[rows] = self._placing.answers(self._fit, self._task, nodes, rows).value
            unasked[rows] = False

    def _catch_up(self, likely: Callable[[], list[int]]) -> None:
        """Learn what open nodes are worth that took copies."""
        opened = [node for node in self._stale if self._is_open[node]]
        if not opened:
            return
        short = [node for node in opened if len(self._ahead.get(node, ())) < self._copies[node]]
        if short:
            self._look_ahead([*short, *(node for node in likely() if self._is_open[node])])
        for node in opened:
            self._worth[node] = self._ahead[node][self._copies[node] - 1]
        self._stale.difference_update(opened)


def has_hard_terms(shape: Shape) -> bool:
    """Return shapes with demands on other pods, and neither wishes nor claims."""
    found = shape.memo.get("hard terms")
    if found is None:
        spec, affinity = shape.spec, shape.spec.affinity
        kinds = (
            (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
            if affinity
            else ()
        )
        wishes = any(kind is not None and kind.preferred for kind in kinds)
        soft = any(
            each.when_unsatisfiable != "DoNotSchedule" for each in spec.topology_spread_constraints
        )
        claims = any(v.persistent_volume_claim or v.ephemeral for v in spec.volumes)
        found = not (wishes or soft or claims or spec.resource_claims)
        shape.memo["hard terms"] = found
    return bool(found)
