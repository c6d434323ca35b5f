"""The tables a session decides on: nodes, tasks, jobs, queues, namespaces; and shapes of tasks.

Live amounts of a node sit in one block (``books``) so that one journal entry covers a move.  A
shape is the common part of equal pods; answers of node hooks are kept by shape.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, IndexArray, Mask, is_coarse, is_empty, need_of
from pumice.core.status import N_STATUS

_GROWTH = 1.5
_FIRST = 16


class Table:
    """Columns of equal length; the last axis of every column is the row.

    Columns led by the resource axis are listed in ``per_resource`` and widen when a resource name
    is learnt.  Subclasses declare columns in ``__init__`` with :meth:`column`.
    """

    def __init__(self, n_resources: int) -> None:
        self.n = 0
        self.capacity = 0
        self.n_resources = n_resources
        self.free: list[int] = []
        self._columns: dict[str, tuple[tuple[int | str, ...], Any, Any]] = {}
        self._lists: list[str] = []

    def column(
        self, name: str, dtype: Any = np.float64, lead: Sequence[int | str] = (), fill: Any = 0
    ) -> None:
        """Declare a column; the letter ``R`` in ``lead`` is the resource axis."""
        self._columns[name] = (tuple(lead), dtype, fill)
        setattr(self, name, np.full((*self._lead(lead), self.capacity), fill, dtype=dtype))

    def listing(self, name: str) -> None:
        """Declare a list with one Python object a row."""
        self._lists.append(name)
        setattr(self, name, [None] * self.capacity)

    def _lead(self, lead: Sequence[int | str]) -> tuple[int, ...]:
        return tuple(self.n_resources if part == "R" else int(part) for part in lead)

    def reserve(self, capacity: int) -> None:
        """Reserve space for this many rows in all."""
        if capacity <= self.capacity:
            return
        for name, (lead, dtype, fill) in self._columns.items():
            grown = np.full((*self._lead(lead), capacity), fill, dtype=dtype)
            grown[..., : self.capacity] = getattr(self, name)
            setattr(self, name, grown)
        for name in self._lists:
            getattr(self, name).extend([None] * (capacity - self.capacity))
        self.capacity = capacity

    def new_row(self) -> int:
        """Take a free row, or add one."""
        if self.free:
            return self.free.pop()
        if self.n == self.capacity:
            self.reserve(max(_FIRST, int(self.capacity * _GROWTH) + 1))
        self.n += 1
        return self.n - 1

    def add_rows(self, n: int) -> range:
        """Add rows after the last."""
        if self.n + n > self.capacity:
            self.reserve(max(self.n + n, int(self.capacity * _GROWTH)))
        self.n += n
        return range(self.n - n, self.n)

    def clear_row(self, row: int) -> None:
        """Reset a row to its fill values and keep it for reuse."""
        self.reset_row(row)
        for name in self._lists:
            getattr(self, name)[row] = None
        self.free.append(row)

    def reset_row(self, row: int, keep: Collection[str] = ()) -> None:
        """Put the cells of a row back to their fill values, except some columns."""
        for name, (_, _, fill) in self._columns.items():
            if name not in keep:
                getattr(self, name)[..., row] = fill

    def trim(self) -> None:
        """Cut the spare capacity, so that columns hold exactly the rows in use."""
        if self.capacity == self.n:
            return
        for name in self._columns:
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[..., : self.n]))
        for name in self._lists:
            del getattr(self, name)[self.n :]
        self.capacity = self.n

    def delete_row(self, row: int) -> None:
        """Remove a row and close the gap; later rows move down by one."""
        for name in self._columns:
            setattr(self, name, np.ascontiguousarray(np.delete(getattr(self, name), row, axis=-1)))
        for name in self._lists:
            del getattr(self, name)[row]
        self.n -= 1
        self.capacity -= 1

    def widen(self, n_resources: int) -> None:
        """Add rows to the resource axis of every column that has one."""
        extra = n_resources - self.n_resources
        self.n_resources = n_resources
        for name, (lead, dtype, fill) in self._columns.items():
            if "R" not in lead or not extra:
                continue
            axis = lead.index("R")
            old = getattr(self, name)
            shape = list(old.shape)
            shape[axis] = extra
            pad = np.full(shape, fill, dtype=dtype)
            setattr(self, name, np.concatenate([old, pad], axis=axis))


Ints = NDArray[np.int32]
NOWHERE = -1
"""The row number that means: no node, no job, no queue."""

IDLE, USED, RELEASING, PIPELINED, VIEW = range(5)
"""Layers of a node's books."""

ALLOCATED, BOOKED, PENDING = range(3)
"""Layers of the sums that jobs, queues and namespaces keep."""


class NodeTable(Table):
    """One row a node, in the order nodes were first seen; never a gap.

    ``idle = allocatable - used``; tasks that leave are still in ``used`` and also in ``releasing``;
    pipelined tasks are in ``pipelined`` only.  ``view_*`` is what Kubernetes' own filters and
    scores see: without evicted pods, with pipelined pods.
    """

    def __init__(self, n_resources: int) -> None:
        super().__init__(n_resources)
        self.books: NDArray[np.float64]
        self.allocatable: Column
        self.capacity_amounts: Column
        self.view_nonzero: Column
        self.view_pods: Ints
        self.unschedulable: Mask
        self.taint_class: Ints
        self.created: Column
        self.names: list[str]
        self.labels: list[dict[str, str]]
        self.objects: list[object]
        self.tasks: list[list[int]]
        self.column("books", lead=(5, "R"))
        self.column("allocatable", lead=("R",))
        self.column("capacity_amounts", lead=("R",))
        self.column("view_nonzero", lead=(2,))
        self.column("view_pods", np.int32)
        self.column("unschedulable", np.bool_, fill=False)
        self.column("taint_class", np.int32)
        self.column("created")
        for name in ("names", "labels", "objects", "tasks"):
            self.listing(name)
        self.row_of: dict[str, int] = {}
        self.generation = 0

    @property
    def idle(self) -> Column:
        """Free amounts (R, N)."""
        return self.books[IDLE]

    @property
    def used(self) -> Column:
        """Amounts of every task on the node, leaving ones too (R, N)."""
        return self.books[USED]

    @property
    def releasing(self) -> Column:
        """Amounts of tasks that are leaving (R, N)."""
        return self.books[RELEASING]

    @property
    def pipelined(self) -> Column:
        """Amounts promised to pipelined tasks (R, N)."""
        return self.books[PIPELINED]

    @property
    def view_used(self) -> Column:
        """Amounts as Kubernetes' filters and scores see them (R, N)."""
        return self.books[VIEW]

    @property
    def future_idle(self) -> Column:
        """Free amounts once leaving tasks are gone and pipelined ones are in (R, N)."""
        books = self.books
        return books[IDLE] + books[RELEASING] - books[PIPELINED]

    def future_idle_of(self, node: int | IndexArray) -> Column:
        """Free amounts of a node (R,), or of some (R, n), after all moves under way."""
        books = self.books[:, :, node]
        return books[IDLE] + books[RELEASING] - books[PIPELINED]


def wait_number(reason: str, message: str) -> int:
    """Return the number that stands for a reason and a message in ``stated_wait``.

    A hash: texts come and go, and 64 bits do not collide.
    """
    return hash((reason, message))


class TaskTable(Table):
    """One row a pod, also pods of no job (``job == NOWHERE``).

    ``stated_wait`` stands for the reason and message with which a pod's own status says that it
    has no node, 0 for none; at close only what differs is written.
    """

    def __init__(self, n_resources: int) -> None:
        super().__init__(n_resources)
        self.status: NDArray[np.int8]
        self.node: Ints
        self.job: Ints
        self.shape: Ints
        self.label_class: Ints
        self.role: Ints
        self.priority: NDArray[np.int64]
        self.created: Column
        self.started: Column
        self.stated_wait: NDArray[np.int64]
        self.nominated: Ints
        self.preemptable: Mask
        self.best_effort: Mask
        self.gated: Mask
        self.opted_in: Mask
        self.in_view: Mask
        self.index: Ints
        self.keys: list[str]
        self.uids: list[str]
        self.pods: list[object]
        self.column("status", np.int8)
        for name in ("node", "job", "shape", "label_class", "role", "nominated"):
            self.column(name, np.int32, fill=NOWHERE)
        self.column("priority", np.int64)
        self.column("created")
        self.column("started", fill=np.nan)
        self.column("stated_wait", np.int64)
        self.column("preemptable", np.bool_, fill=False)
        self.column("best_effort", np.bool_, fill=False)
        self.column("gated", np.bool_, fill=False)
        self.column("opted_in", np.bool_, fill=False)
        self.column("in_view", np.bool_, fill=False)
        self.column("index", np.int32, fill=-1)
        for name in ("keys", "uids", "pods"):
            self.listing(name)
        self.row_of: dict[str, int] = {}

    @property
    def objects(self) -> list[object]:
        """The same as ``pods``, by the name that other tables have for it."""
        return self.pods


class SumTable(Table):
    """A table whose rows own tasks and keep the sums of their requests.

    ``allocated`` sums tasks that hold a node, ``allocated_or_pipelined`` pipelined ones too,
    ``pending`` those that wait.
    """

    def __init__(self, n_resources: int) -> None:
        super().__init__(n_resources)
        self.sums: NDArray[np.float64]
        self.column("sums", lead=(3, "R"))
        self.row_of: dict[str, int] = {}

    @property
    def allocated(self) -> Column:
        """Requests of tasks that hold a node (R, n)."""
        return self.sums[ALLOCATED]

    @property
    def allocated_or_pipelined(self) -> Column:
        """Requests of tasks that hold a node or are pipelined to one (R, n)."""
        return self.sums[BOOKED]

    @property
    def pending(self) -> Column:
        """Requests of tasks that wait (R, n)."""
        return self.sums[PENDING]


class JobTable(SumTable):
    """One row a pod group; ``counts`` (tasks by status) and the sums follow every move.

    ``stated_*`` is the group's own status: its phase, tasks running, succeeded and
    failed, and whether its latest condition is Scheduled; at close only what differs is written.
    """

    def __init__(self, n_resources: int) -> None:
        super().__init__(n_resources)
        self.counts: Ints
        self.min_resources: Column
        self.has_min_resources: Mask
        self.queue: Ints
        self.namespace: Ints
        self.priority: NDArray[np.int64]
        self.created: Column
        self.min_member: Ints
        self.has_topology: Mask
        self.phase: NDArray[np.int8]
        self.stated_phase: NDArray[np.int8]
        self.stated_counts: Ints
        self.stated_scheduled: Mask
        self.has_other_conditions: Mask
        self.n_pending_best_effort: Ints
        self.n_tasks: Ints
        self.listed: Mask
        self.keys: list[str]
        self.groups: list[object]
        self.tasks: list[list[int]]
        self.column("counts", np.int32, lead=(N_STATUS,))
        self.column("min_resources", lead=("R",))
        self.column("has_min_resources", np.bool_, fill=False)
        self.column("queue", np.int32, fill=NOWHERE)
        self.column("namespace", np.int32, fill=NOWHERE)
        self.column("priority", np.int64)
        self.column("created")
        self.column("min_member", np.int32)
        self.column("has_topology", np.bool_, fill=False)
        self.column("phase", np.int8)
        self.column("stated_phase", np.int8)
        self.column("stated_counts", np.int32, lead=(3,))
        self.column("stated_scheduled", np.bool_, fill=False)
        self.column("has_other_conditions", np.bool_, fill=False)
        self.column("n_pending_best_effort", np.int32)
        self.column("n_tasks", np.int32)
        self.column("listed", np.bool_, fill=False)
        for name in ("keys", "groups", "tasks"):
            self.listing(name)

    @property
    def objects(self) -> list[object]:
        """The same as ``groups``, by the name that other tables have for it."""
        return self.groups


class QueueTable(SumTable):
    """One row a queue; sums cover the jobs that name it, not its children.

    ``capability`` is infinite where not stated; ``*_given`` marks stated amounts.
    """

    def __init__(self, n_resources: int) -> None:
        super().__init__(n_resources)
        self.capability: Column
        self.capability_given: Mask
        self.deserved: Column
        self.deserved_given: Mask
        self.guarantee: Column
        self.guarantee_given: Mask
        self.weight: NDArray[np.int64]
        self.priority: NDArray[np.int64]
        self.created: Column
        self.reclaimable: Mask
        self.open: Mask
        self.parent: Ints
        self.listed: Mask
        self.names: list[str]
        self.objects: list[object]
        for name in ("deserved", "guarantee"):
            self.column(name, lead=("R",))
        self.column("capability", lead=("R",), fill=np.inf)
        for name in ("capability_given", "deserved_given", "guarantee_given"):
            self.column(name, np.bool_, lead=("R",), fill=False)
        self.column("weight", np.int64)
        self.column("priority", np.int64)
        self.column("created")
        self.column("reclaimable", np.bool_, fill=True)
        self.column("open", np.bool_, fill=False)
        self.column("parent", np.int32, fill=NOWHERE)
        self.column("listed", np.bool_, fill=False)
        for name in ("names", "objects"):
            self.listing(name)


class NamespaceTable(SumTable):
    """One row a namespace with the sums of its jobs."""

    def __init__(self, n_resources: int) -> None:
        super().__init__(n_resources)
        self.names: list[str]
        self.listing("names")


Delta = NDArray[np.float64]


@dataclass(slots=True)
class Shape:
    """One distinct pod specification.

    ``request`` is (R, 1) so that it broadcasts against node columns; ``nonzero`` (2, 1) is cpu and
    memory with Kubernetes' defaults for containers without requests, ``waiting_nonzero`` what
    scores by amounts assume before the pod is on a node.
    """

    id: int
    request: Column
    nonzero: Column
    waiting_nonzero: Column
    namespace: str
    spec: Any
    annotations: dict[str, str]
    memo: dict[str, Any] = field(default_factory=dict)
    """What plugins derived from the spec, under their own names."""
    best_effort: bool = field(init=False)
    """Whether it requests nothing."""
    coarse: bool = field(init=False)
    """Whether it requests so much that sums are not exact any more."""
    _need: Column | None = None
    _steps: dict[tuple[str, int, bool], tuple[Delta, Delta]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.best_effort = is_empty(self.request[:, 0])
        self.coarse = is_coarse(self.request[:, 0])

    def widen(self, n_resources: int) -> None:
        """Follow a longer resource axis."""
        pad = n_resources - len(self.request)
        if pad > 0:
            self.request = np.concatenate([self.request, np.zeros((pad, 1))])
            self._need = None
            self._steps.clear()

    @property
    def need(self) -> Column:
        """What a node must have left (R, 1): a scalar that is not requested fits any room."""
        if self._need is None:
            self._need = need_of(self.request)
        return self._need

    def step(self, name: str, sign: int, *, live: bool) -> tuple[Delta, Delta]:
        """Return the change of the node's books (5, R) and of the sums (3, R) by a move.

        Sessions place, bind, pipeline and evict; ingest finds tasks that hold, leave or wait, that
        stray (they hold their node and count for no job) or that are gone.

        ``sign`` -1 is the move undone; without a ``live`` view the view's layer stays.
        """
        key = (name, sign, live)
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = _step(name, sign * self.request[:, 0], live=live)
        return found

    def change(self, before: str, after: str) -> tuple[Delta, Delta]:
        """Return what is added when a task that was found one way is found another way."""
        key = (f"{before}, {after}", 1, True)
        found = self._steps.get(key)
        if found is None:
            old, new = self.step(before, -1, live=True), self.step(after, 1, live=True)
            found = self._steps[key] = (old[0] + new[0], old[1] + new[1])
        return found


_BOOKS: dict[str, dict[int, int]] = {
    "place": {IDLE: -1, USED: 1, VIEW: 1},
    "bind": {IDLE: -1, USED: 1, VIEW: 1},
    "pipeline": {PIPELINED: 1, VIEW: 1},
    "unpipeline": {PIPELINED: -1, VIEW: -1},
    "unplace": {IDLE: 1, USED: -1, VIEW: -1},
    "evict": {RELEASING: 1, VIEW: -1},
    "linger": {RELEASING: -1},
    "depart": {RELEASING: 1, VIEW: -1},
    "hold": {IDLE: -1, USED: 1, VIEW: 1},
    "leave": {IDLE: -1, USED: 1, VIEW: 1, RELEASING: 1},
    "stray": {IDLE: -1, USED: 1, VIEW: 1},
    "wait": {},
    "gone": {},
}
_SUMS: dict[str, dict[int, int]] = {
    "place": {ALLOCATED: 1, BOOKED: 1, PENDING: -1},
    "bind": {ALLOCATED: 1, BOOKED: 1, PENDING: -1},
    "pipeline": {BOOKED: 1, PENDING: -1},
    "unpipeline": {BOOKED: -1, PENDING: 1},
    "unplace": {ALLOCATED: -1, BOOKED: -1, PENDING: 1},
    "evict": {ALLOCATED: -1, BOOKED: -1},
    "linger": {},
    "depart": {},
    "hold": {ALLOCATED: 1, BOOKED: 1},
    "leave": {},
    "stray": {},
    "wait": {PENDING: 1},
    "gone": {},
}


def layers_of(name: str) -> tuple[list[int], list[int]]:
    """Return how often a step adds the request to each layer of the books and of the sums."""
    books, sums = _BOOKS[name], _SUMS[name]
    return [books.get(i, 0) for i in range(5)], [sums.get(i, 0) for i in range(3)]


def _step(name: str, request: Column, *, live: bool) -> tuple[Delta, Delta]:
    books = np.zeros((5, len(request)))
    for layer, sign in _BOOKS[name].items():
        if live or layer != VIEW:
            books[layer] = sign * request
    sums = np.zeros((3, len(request)))
    for layer, sign in _SUMS[name].items():
        sums[layer] = sign * request
    return books, sums
