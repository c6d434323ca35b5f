"""The effect of evictions for a task, computed on sums instead of tried.

For tasks whose answers follow from node rows and from sums of queues: the node, the filters and the
queue are asked about rows and sums that do not exist yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, IndexArray, Mask, fits
from pumice.core.views import Task
from pumice.framework.equal_tasks import has_plain_shape
from pumice.framework.eviction.candidates import amounts_of
from pumice.framework.eviction.emptied_nodes import EmptiedNodes
from pumice.framework.eviction.victim_columns import Victims
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import SessionState


@dataclass(frozen=True, slots=True)
class Plans:
    """Nodes for a task, and whom to evict on each of them."""

    nodes: IndexArray
    """(n,)."""
    rows: IndexArray
    """Victims, node after node, on each the least valuable first; the most valuable go first."""
    place: IndexArray
    """The place of each one's node; on each node is at least one (k,)."""

    @classmethod
    def of(cls, nodes: IndexArray, rows: IndexArray, place: IndexArray) -> "Plans":
        """Make plans of victims, without nodes that have none."""
        is_first = _begins(place)
        return cls(nodes[place[is_first]], rows, is_first.cumsum() - 1)

    @classmethod
    def join(cls, plans: Sequence["Plans"], most: int) -> "Plans":
        """Return the first plans of several parts."""
        offsets = np.cumsum([0, *(len(each.nodes) for each in plans)])[:-1].tolist()
        places = [each.place + offset for each, offset in zip(plans, offsets, strict=True)]
        nodes = np.concatenate([each.nodes for each in plans])
        rows, place = np.concatenate([each.rows for each in plans]), np.concatenate(places)
        return cls(nodes[:most], rows[place < most], place[place < most])


class EvictionSums:
    """Finds the fewest victims for one task; good until something moves."""

    def __init__(self, state: SessionState, task: Task) -> None:
        self._state = state
        self._snapshot = state.snapshot
        self._task = task
        self._fit = state.placing.judged(task)
        self._free = state.snapshot.nodes.future_idle
        self._accepted: dict[bytes, bool] = {}

    @staticmethod
    def suit(state: SessionState, task: Task, victims: Victims) -> bool:
        """Return whether sums show everything that evicting these would change for a task."""
        shapes = np.unique(state.snapshot.tasks.shape[victims.rows]).tolist()
        return (
            state.placing.imagines
            and state.policy.by_row
            and not state.hooks.tiers(Plugin.on_evict)
            and has_plain_shape(task.shape)
            and all(vary_by(task) is None for vary_by in state.placing.varying)
            and not any(state.snapshot.shapes[number].coarse for number in shapes)
        )

    def fewest(self, nodes: IndexArray, victims: Victims) -> Plans:
        """Find the victims on each node: the first that suffice, without unnecessary ones.

        Of these the most valuable is spared first.  At least one is evicted before the
        task is tried; nodes on which none suffice, or all can be spared, are left out.
        """
        amounts = amounts_of(self._snapshot, victims.rows)
        starts = np.searchsorted(victims.place, victims.place)
        gone = amounts.cumsum(axis=1)
        gone -= (gone - amounts)[:, starts]
        on, last = nodes[victims.place], self._first_that_do(nodes, victims, starts, gone)
        goes = np.arange(len(last)) <= last
        going = goes.nonzero()[0]
        less = gone[:, last[going]] - amounts[:, going]
        for start in set(starts[going[self._has_room(on[going], less)]].tolist()):
            part = slice(start, 1 + int(last[start]))
            goes[part] = self._needed(on[part][:1], victims.rows[part], amounts[:, part])
        return Plans.of(nodes, victims.rows[goes], victims.place[goes])

    def _first_that_do(
        self, nodes: IndexArray, victims: Victims, starts: IndexArray, gone: Column
    ) -> IndexArray:
        """Find for each victim the one of its node whose eviction makes a task fit; -1: none."""
        on = nodes[victims.place]
        works = self._has_room(on, gone)
        works[works] = self._passes(on[works], gone[:, works])
        last = np.full(len(on), -1)
        left = works.nonzero()[0]
        while len(left):
            is_first = _begins(starts[left])
            at = left[is_first]
            at = at[self._are_accepted(victims.rows, starts[at], at, gone)]
            last[starts[at]] = at
            left = left[~is_first & (last[starts[left]] < 0)]
        return last[starts]

    def _are_accepted(
        self, rows: IndexArray, starts: IndexArray, ends: IndexArray, gone: Column
    ) -> Mask:
        """Ask the queue about the evictions of some nodes, each up to the end of its part (n,)."""
        amounts = gone[:, ends]
        if (amounts == amounts[:, :1]).all():
            alike = self._is_accepted(rows[starts[0] : ends[0] + 1], amounts[:, 0])
            return np.full(len(ends), alike)
        parts = zip(starts.tolist(), ends.tolist(), strict=True)
        return np.array([self._is_accepted(rows[a : b + 1], gone[:, b]) for a, b in parts])

    def _needed(self, node: IndexArray, rows: IndexArray, amounts: Column) -> Mask:
        """Mark victims of a node that must go; the last is spared first (k,)."""
        total = amounts.sum(axis=1, keepdims=True)
        goes = np.ones(len(rows), dtype=bool)
        for each in range(len(rows) - 1, -1, -1):
            less = total - amounts[:, [each]]
            if not self._has_room(node, less)[0]:
                continue
            goes[each] = False
            if self._is_accepted(rows[goes], less[:, 0]) and self._passes(node, less)[0]:
                total = less
            else:
                goes[each] = True
        return goes

    def _has_room(self, nodes: IndexArray, gone: Column) -> Mask:
        return fits(self._task.need, self._free[:, nodes] + gone[:-2])

    def _passes(self, nodes: IndexArray, gone: Column) -> Mask:
        """Ask the filters about nodes without these amounts."""
        emptied = EmptiedNodes(self._snapshot, nodes, gone[:-2], gone[-2:])
        verdict = self._state.placing.verdict(self._fit, self._task, emptied, nodes)
        return np.zeros(len(nodes), dtype=np.int16) == verdict

    def _is_accepted(self, rows: Sequence[int] | NDArray[np.intp], gone: Column) -> bool:
        """Ask the queue, which looks at sums, whether it takes the task after some evictions."""
        key = gone.tobytes()
        if key not in self._accepted:
            self._count_out(rows, 1)
            try:
                verdict = self._state.policy.allocatable(self._task.queue, self._task)
                self._accepted[key] = bool(verdict)
            finally:
                self._count_out(rows, -1)
        return self._accepted[key]

    def _count_out(self, rows: Sequence[int] | NDArray[np.intp], sign: int) -> None:
        tasks, snapshot = self._snapshot.tasks, self._snapshot
        for shape, job in zip(tasks.shape[rows].tolist(), tasks.job[rows].tolist(), strict=True):
            snapshot.add_to_sums(job, snapshot.shapes[shape].step("evict", sign, live=False)[1])


def _begins(values: IndexArray) -> Mask:
    """Mark where another value begins (n,)."""
    found = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found
