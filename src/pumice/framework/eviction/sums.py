"""Evictions computed on sums instead of tried, for preempt's topology-aware mode.

The victims of many nodes are found with one question to each plugin.  How few of them suffice
follows from sums: node, filters and queue are asked about rows and sums without the victims, which
plugins agree to by ``foreseeable``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import PODS, Column, IndexArray, Mask, fits
from pumice.core.snapshot import Snapshot
from pumice.core.tables import Ints, Shape
from pumice.core.views import Nodes, Task
from pumice.framework.dispatch import Method
from pumice.framework.eviction.candidates import Candidates, Scope
from pumice.framework.eviction.evictor import queue_takes
from pumice.framework.plugin import Plugin
from pumice.framework.session_state import SessionState


@dataclass(frozen=True, slots=True)
class Victims:
    """Victims of some nodes: node after node, on each the least valuable first."""

    rows: IndexArray
    """Their tasks (k,)."""
    place: IndexArray
    """The place of each one's node among the nodes that were asked about (k,)."""


class VictimColumns:
    """Finds the victims of many nodes at once: one question to each plugin, and one sort.

    Possible where every plugin judges each candidate by itself and the order of victims is one of
    keys; the answers are those of asking node by node.
    """

    def __init__(self, state: SessionState, candidates: Candidates, hook: Method) -> None:
        self._state = state
        self._candidates = candidates
        self._tiers = state.hooks.asks(hook)
        asked = [plugin for plugin, _ in state.hooks.bound(hook)]
        self._all_alone = all(hook.__name__ in plugin.judges_alone for plugin in asked)
        self._turns: dict[int, NDArray[np.intp] | None] = {}

    def victims(self, scope: Scope, task: Task, nodes: IndexArray) -> Victims | None:
        """Find the victims of a scope on some nodes, as ``Candidates.victims`` does on each.

        None where plugins must be asked node by node.
        """
        turns = self._turns_of(scope) if self._all_alone else None
        if turns is None:
            return None
        at, place = self._candidates.on_nodes(scope, task, nodes)
        offered = self._offered(task, self._candidates.rows[at].tolist(), place, len(nodes))
        at, place = at[offered], place[offered]
        ranks = self._job_ranks(self._candidates.job[at])
        if ranks is None:
            return None
        order = np.lexsort((turns[at], -ranks, place))
        return Victims(self._candidates.rows[at[order]], place[order])

    def _offered(self, task: Task, rows: list[int], place: IndexArray, n: int) -> Mask:
        """Mark the candidates that plugins offer, by the rule that holds on a single node."""
        offered, undecided = np.zeros(len(rows), dtype=bool), np.ones(n, dtype=bool)
        for tier in self._tiers if rows else ():
            answers = [answer for ask in tier if (answer := ask(task, rows)) is not None]
            chosen = _intersection(answers, place, n)
            offered |= chosen & undecided[place]
            undecided &= ~_any(chosen, place, n)
        return offered

    def _turns_of(self, scope: Scope) -> NDArray[np.intp] | None:
        """Return the order of a scope's members among equal jobs; None if they have no keys."""
        key = id(scope)
        if key not in self._turns:
            self._turns[key] = self._sort_tasks(np.flatnonzero(scope.members))
        return self._turns[key]

    def _sort_tasks(self, at: IndexArray) -> NDArray[np.intp] | None:
        rows = self._candidates.rows[at]
        keys = self._task_keys(rows)
        if keys is None:
            return None
        order = np.lexsort([-key for key in reversed([*keys, self._uid_ranks(rows)])])
        turns = np.zeros(len(self._candidates.rows), dtype=np.intp)
        turns[at[order]] = np.arange(len(at))
        return turns

    def _task_keys(self, rows: IndexArray) -> list[NDArray[Any]] | None:
        """List the keys of tasks that their uids come after; None if they are no order."""
        tasks = self._state.snapshot.tasks
        columns, between = self._state.ordering.task_columns(rows.tolist())
        one_job = all(between) or len(set(tasks.job[rows].tolist())) < 2
        if not one_job or any(np.isnan(each).any() for each in columns):
            return None
        numbers = tasks.index[rows]
        numbered = numbers >= 0
        if numbered.any() and not numbered.all():
            return None
        return [*columns, numbers, tasks.created[rows]]

    def _uid_ranks(self, rows: IndexArray) -> NDArray[np.intp]:
        uids = np.array([self._state.snapshot.tasks.uids[row] for row in rows.tolist()], np.str_)
        return np.unique(uids, return_inverse=True)[1] if len(uids) else np.zeros(0, dtype=np.intp)

    def _job_ranks(self, jobs: NDArray[np.int32]) -> NDArray[np.intp] | None:
        """Rank the jobs of victims by their current keys; None if these form no order.

        Equal ones have the same rank; the job of the highest rank loses tasks first.
        """
        known, which = np.unique(jobs, return_inverse=True)
        keys = self._state.ordering.job_policy_keys(known.tolist())
        if any(map(math.isnan, chain.from_iterable(keys))):
            return None
        ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
        return np.array([ranks[key] for key in keys], dtype=np.intp)[which]


class EmptiedNodes(Nodes):
    """Nodes that some of their tasks are leaving.

    ``gone`` is what these ask for (R, n), ``nonzero`` the same with Kubernetes' defaults (2, n).
    """

    __slots__ = ("_gone", "_nonzero")

    def __init__(
        self, snapshot: Snapshot, rows: NDArray[np.intp], gone: Column, nonzero: Column
    ) -> None:
        super().__init__(snapshot, rows)
        self._gone = gone
        self._nonzero = nonzero

    def part(self, chosen: slice) -> Self:
        """Return some of these nodes."""
        part = super().part(chosen)
        part._gone, part._nonzero = self._gone[:, chosen], self._nonzero[:, chosen]  # noqa: SLF001
        return part

    @property
    def releasing(self) -> Column:
        """Amounts of leaving tasks (R, n)."""
        return super().releasing + self._gone

    @property
    def view_used(self) -> Column:
        """Requests as Kubernetes' scores see them (R, n)."""
        seen = super().view_used
        return seen - self._gone if self.snapshot.view_is_live else seen

    @property
    def view_nonzero(self) -> Column:
        """Cpu and memory with Kubernetes' defaults (2, n)."""
        seen = super().view_nonzero
        return seen - self._nonzero if self.snapshot.view_is_live else seen

    @property
    def view_pods(self) -> Ints:
        """Pods as Kubernetes' filters count them (n,)."""
        seen = super().view_pods
        return seen - self._gone[PODS].astype(np.int32) if self.snapshot.view_is_live else seen


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
    """Finds the fewest victims for one task on many nodes; good until something moves."""

    def __init__(self, state: SessionState, task: Task) -> None:
        self._state = state
        self._snapshot = state.snapshot
        self._task = task
        self._fit = state.placing.judged(task)
        self._free = state.snapshot.nodes.future_idle
        self._accepted: dict[bytes, bool] = {}

    @staticmethod
    def suit(state: SessionState, task: Task, victims: IndexArray) -> bool:
        """Return whether sums show everything that evicting these would change for a task."""
        shapes = np.unique(state.snapshot.tasks.shape[victims]).tolist()
        hooks = state.hooks
        asked = [*hooks.bound(Plugin.allocatable), *hooks.bound(Plugin.filter_nodes)]
        return (
            state.placing.imagines
            and not state.policy.follows_placements
            and not hooks.tiers(Plugin.on_evict)
            and all(plugin.foreseeable for plugin, _ in asked)
            and _has_plain_shape(task.shape)
            and all(vary_by(task) is None for vary_by in state.placing.varying)
            and not any(state.snapshot.shapes[number].coarse for number in shapes)
        )

    def over_quota(self, evicted: Column) -> bool:
        """Return whether the queue refuses the task even if so much is evicted (R,)."""
        return not self._is_accepted(evicted)

    def fewest(self, nodes: IndexArray, victims: Victims) -> Plans:
        """Find the victims on each node: the first that suffice, without unnecessary ones.

        Of these the most valuable is spared first.  At least one is evicted before the
        task is tried; nodes on which none suffice, or all can be spared, are left out.
        """
        amounts = _amounts_of(self._snapshot, victims.rows)
        starts = np.searchsorted(victims.place, victims.place)
        gone = amounts.cumsum(axis=1)
        gone -= (gone - amounts)[:, starts]
        on, last = nodes[victims.place], self._first_that_do(nodes, victims, starts, gone)
        goes = np.arange(len(last)) <= last
        going = goes.nonzero()[0]
        less = gone[:, last[going]] - amounts[:, going]
        for start in set(starts[going[self._has_room(on[going], less)]].tolist()):
            part = slice(start, 1 + int(last[start]))
            goes[part] = self._needed(on[part][:1], amounts[:, part])
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
            at = at[self._are_accepted(gone[:-2, at])]
            last[starts[at]] = at
            left = left[~is_first & (last[starts[left]] < 0)]
        return last[starts]

    def _are_accepted(self, evicted: Column) -> Mask:
        """Ask the queue about evictions of so much on each of some nodes (R, n)."""
        if (evicted == evicted[:, :1]).all():
            return np.full(evicted.shape[1], self._is_accepted(evicted[:, 0]))
        return np.array([self._is_accepted(each) for each in evicted.T])

    def _needed(self, node: IndexArray, amounts: Column) -> Mask:
        """Mark victims of a node that must go; the last is spared first (k,)."""
        total = amounts.sum(axis=1, keepdims=True)
        goes = np.ones(amounts.shape[1], dtype=bool)
        for each in range(len(goes) - 1, -1, -1):
            less = total - amounts[:, [each]]
            if not self._has_room(node, less)[0]:
                continue
            if self._is_accepted(less[:-2, 0]) and self._passes(node, less)[0]:
                goes[each] = False
                total = less
        return goes

    def _has_room(self, nodes: IndexArray, gone: Column) -> Mask:
        return fits(self._task.need, self._free[:, nodes] + gone[:-2])

    def _passes(self, nodes: IndexArray, gone: Column) -> Mask:
        """Ask the filters about nodes without these amounts."""
        emptied = EmptiedNodes(self._snapshot, nodes, gone[:-2], gone[-2:])
        verdict = self._state.placing.verdict(self._fit, self._task, emptied, nodes)
        return np.zeros(len(nodes), dtype=np.int16) == verdict

    def _is_accepted(self, evicted: Column) -> bool:
        """Ask the queue whether it takes the task once so much of its own is evicted (R,)."""
        key = evicted.tobytes()
        if key not in self._accepted:
            self._accepted[key] = queue_takes(self._state, self._task, evicted)
        return self._accepted[key]


def _begins(values: IndexArray) -> Mask:
    """Mark where another value begins (n,)."""
    found = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def _amounts_of(snapshot: Snapshot, rows: IndexArray) -> Column:
    """Return requests of tasks, and below them those with Kubernetes' defaults (R + 2, k)."""
    shapes, which = snapshot.shapes_of(rows)
    none = np.zeros((len(snapshot.resources) + 2, 0))
    columns = (np.concatenate([shape.request, shape.nonzero]) for shape in shapes)
    return np.concatenate([none, *columns], axis=1).take(which, axis=1)


def _has_plain_shape(shape: Shape) -> bool:
    """Return whether a shape has no terms about other pods, host ports, claims and devices."""
    spec = shape.spec
    containers = (*spec.containers, *spec.init_containers)
    return not (
        spec.affinity
        or spec.topology_spread_constraints
        or spec.resource_claims
        or any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes)
        or any(port.host_port for container in containers for port in container.ports)
    )


def _any(marked: Mask, place: IndexArray, n: int) -> Mask:
    """Mark the nodes on which something is marked (n,)."""
    return np.bincount(place[marked], minlength=n) > 0


def _intersection(answers: list[Mask], place: IndexArray, n: int) -> Mask:
    """Intersect the answers of a tier on each node; nothing where one of them offers nobody.

    Volcano: an intersection that runs empty is forgotten, and the next plugin starts again.
    """
    kept = np.zeros(len(place), dtype=bool)
    is_open, holds = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    for answer in answers:
        is_open &= _any(answer, place, n)
        kept = np.where(holds[place], kept & answer, answer)
        holds = _any(kept, place, n)
    return kept & is_open[place]
