"""The tables a session decides on: nodes, tasks, jobs, queues, namespaces.

Live amounts of a node sit in one block (``books``) so that one journal entry covers a move.
"""

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, IndexArray, Mask
from pumice.core.status import N_STATUS
from pumice.core.table import Table

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
