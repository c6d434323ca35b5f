"""preempt's topology-aware mode: try out several nodes, then evict on the one that hurts least.

Used by preempt when ``enableTopologyAwarePreemption`` is set; tries leave no trace.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import PODS, Column, IndexArray, Mask, fits
from pumice.core.views import Nodes, Task
from pumice.framework.arguments import PreemptArguments, arguments_of
from pumice.framework.eviction.candidates import Candidates, Scope
from pumice.framework.eviction.evictor import fits_after_evictions
from pumice.framework.eviction.sums import EmptiedNodes, EvictionSums, Plans, VictimColumns
from pumice.framework.plugin import Plugin, implements
from pumice.framework.session import Session
from pumice.framework.statement import Statement

_AT_ONCE = 16
"""Minimum number of nodes whose plans are computed together."""
_LOWEST_PRIORITY = 2**31
"""Added to priorities before they are summed, so that more victims never cost less."""


class DryRun:
    """Looks for the node where the least is lost."""

    def __init__(self, ssn: Session, candidates: Candidates) -> None:
        self._ssn = ssn
        self._snapshot = ssn.snapshot
        self._candidates = candidates
        self._columns = VictimColumns(ssn, candidates, Plugin.preemptable)
        arguments = arguments_of(ssn.action_arguments, "preempt", PreemptArguments)
        self._percentage = arguments.percentage
        self._at_least = arguments.at_least
        self._at_most = arguments.at_most
        self._filters_follow = _filters_follow(ssn)
        self._known_priorities: dict[int, int] = {}

    def preempt(self, stmt: Statement, task: Task, scope: Scope, usable: Mask) -> bool:
        """Evict the victims of the best plan and pipeline the task there."""
        rows = np.flatnonzero(usable)
        if not len(rows):
            return False
        rows = np.roll(rows, -self._ssn.placing.spin(len(rows)))
        wanted = self._plans_wanted(len(rows))
        hopeful = self._candidates.with_room(scope, task) & self._candidates.occupied(scope)
        nodes = rows[hopeful[rows]]
        nodes = nodes[~self._opens_anyway(task, nodes)]
        plans = self._plans_by_sums(task, scope, nodes, wanted)
        if plans is None:
            plans = self._plans_by_trial(stmt, task, scope, nodes, wanted)
        if not len(plans.nodes):
            return False
        best = self._cheapest(plans)
        for victim in plans.rows[plans.place == best][::-1].tolist():
            stmt.evict(victim, "preempt", task.key)
        stmt.pipeline(task.row, int(plans.nodes[best]), freed=True)
        return True

    def _opens_anyway(self, task: Task, nodes: IndexArray) -> Mask:
        """Mark nodes that take a task once pods that are leaving have left their slots (n,)."""
        snapshot, placing = self._snapshot, self._ssn.placing
        table, there = snapshot.nodes, Nodes(snapshot, nodes)
        room = table.future_idle[:, nodes]
        left = there.view_pods - (table.allocatable[PODS, nodes] - room[PODS])
        opens = fits(task.need, room) & (left > 0)
        if opens.any():
            gone = np.zeros_like(room)
            gone[PODS] = np.maximum(left, 0.0)
            later = EmptiedNodes(snapshot, nodes, gone, np.zeros((2, len(nodes))))
            opens &= placing.verdict(placing.judged(task), task, later, nodes) == 0
        return opens

    def _plans_wanted(self, n: int) -> int:
        return min(max(n * self._percentage // 100, self._at_least), self._at_most, n)

    def _plans_by_sums(
        self, task: Task, scope: Scope, nodes: IndexArray, wanted: int
    ) -> Plans | None:
        """Compute plans for the first nodes that have one; None if they must be tried."""
        if not self._filters_follow:
            nodes = nodes[self._ssn.placing.judged(task).verdict[nodes] == 0]
        sums = EvictionSums(self._ssn, task)
        parts = [Plans.of(nodes, nodes[:0], nodes[:0])]
        if len(nodes) and EvictionSums.suit(self._ssn, task, self._candidates.rows):
            most = self._candidates.sums(scope).max(axis=1, initial=0.0)
            nodes = nodes[:0] if sums.over_quota(most) else nodes
        while len(nodes) and wanted > (found := sum(len(part.nodes) for part in parts)):
            n = max(wanted - found, _AT_ONCE)
            some, nodes = nodes[:n], nodes[n:]
            victims = self._columns.victims(scope, task, some)
            if victims is None or not EvictionSums.suit(self._ssn, task, victims.rows):
                return None
            parts.append(sums.fewest(some, victims))
        return Plans.join(parts, wanted)

    def _plans_by_trial(
        self, stmt: Statement, task: Task, scope: Scope, nodes: IndexArray, wanted: int
    ) -> Plans:
        """Try nodes one by one until enough of them have a plan."""
        found: dict[int, list[int]] = {}
        order, hopeful = np.zeros(self._snapshot.nodes.n), np.zeros(self._snapshot.nodes.n, bool)
        order[nodes], hopeful[nodes] = -np.arange(len(nodes)), True
        for node in self._candidates.visit(scope, task, hopeful, order):
            victims = self._try(stmt, task, scope, node)
            if victims:
                found[node] = victims
            if len(found) >= wanted:
                break
        rows = [row for victims in found.values() for row in reversed(victims)]
        place = np.repeat(np.arange(len(found)), [len(victims) for victims in found.values()])
        return Plans(np.array([*found], np.intp), np.array(rows, np.intp), place)

    def _try(self, stmt: Statement, task: Task, scope: Scope, node: int) -> list[int]:
        """Find the tasks to evict on a node: as few as possible, the most valuable spared first.

        At least one is evicted before the task is tried; a node on which all can be spared
        needs no eviction and has no plan.
        """
        victims = self._candidates.victims(scope, task, node)
        if not victims or not self._have_room(task, node, victims):
            return []
        if not self._filters_follow and self._ssn.placing.judged(task).verdict[node] != 0:
            return []
        start = stmt.checkpoint()
        going: list[int] = []
        for victim in victims:
            stmt.evict(victim, "preempt")
            going.append(victim)
            if fits_after_evictions(self._ssn, task, node):
                break
        works = fits_after_evictions(self._ssn, task, node)
        stmt.rollback(start)
        if not works:
            return []
        going.reverse()
        for victim in list(going):
            rest = [row for row in going if row != victim]
            if self._works_without(stmt, task, node, rest):
                going = rest
        return going

    def _works_without(self, stmt: Statement, task: Task, node: int, going: list[int]) -> bool:
        """Return whether a task fits if only these are evicted."""
        if not self._have_room(task, node, going):
            return False
        start = stmt.checkpoint()
        for row in going:
            stmt.evict(row, "preempt")
        works = fits_after_evictions(self._ssn, task, node)
        stmt.rollback(start)
        return works

    def _have_room(self, task: Task, node: int, going: list[int]) -> bool:
        room = self._snapshot.nodes.future_idle_of(node)
        for row in going:
            room = room + self._snapshot.request(row)
        return bool(fits(task.need[:, 0], room))

    def _cheapest(self, plans: Plans) -> int:
        """Choose by the highest priority, then their sum, their number, and the latest start."""
        priority = self._priorities(plans.rows)
        starts = np.searchsorted(plans.place, np.arange(len(plans.nodes)))
        ends = np.append(starts[1:], len(plans.rows))
        costs = (
            priority[ends - 1],
            np.add.reduceat(priority + _LOWEST_PRIORITY, starts),
            ends - starts,
            -self._first_start(plans, priority, starts),
        )
        left = np.arange(len(starts))
        for cost in costs:
            left = left[cost[left] == cost[left].min()]
        return int(left[0])

    def _first_start(self, plans: Plans, priority: NDArray[np.int64], starts: IndexArray) -> Column:
        """Return when the first of the most important victims of each plan started (n,)."""
        started = self._snapshot.tasks.started[plans.rows]
        started = np.where(np.isnan(started), self._ssn.now, started)
        highest = np.maximum.reduceat(priority, starts)[plans.place]
        return np.minimum.reduceat(np.where(priority == highest, started, np.inf), starts)

    def _priorities(self, rows: IndexArray) -> NDArray[np.int64]:
        """Return the priorities that the pods state (n,)."""
        known, pods = self._known_priorities, self._snapshot.tasks.pods
        for row in rows.tolist():
            if row not in known:
                pod: Any = pods[row]
                known[row] = pod.spec.priority or 0
        return np.array([known[row] for row in rows.tolist()], dtype=np.int64)


def _filters_follow(ssn: Session) -> bool:
    """Return whether filters may withdraw a refusal because victims are gone.

    Volcano: a plugin sees tried evictions only if it may name victims or guard a queue.
    """
    return any(
        entry.switches.get("enablePreemptable", True)
        or entry.switches.get("enabledAllocatable", True)
        for tier in ssn.tiers
        for entry in tier
        if implements(entry.plugin, "filter_nodes")
    )
