"""The arguments of hooks: some rows of a table, read-only, and single tasks, jobs and queues.

A hook cannot know whether it was asked about all rows, one row or a few; so the framework can ask
again only about rows that moved.  ``ObjectRows`` and ``ObjectRow`` are shared by all rows with a
Kubernetes object behind them: labels, annotations, an age.  Nothing is computed before it is read.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from copy import copy
from operator import itemgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, Mask, Resources
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, PENDING, PHASES, Status
from pumice.core.tables import NOWHERE, Ints, JobTable, NodeTable, QueueTable, Shape, TaskTable
from pumice.errors import PluginError

Texts = NDArray[np.object_]
"""A column of texts (n,); ``column == "text"`` compares each."""
ObjectTable = NodeTable | TaskTable | JobTable | QueueTable


def texts(values: Sequence[str]) -> Texts:
    """Make a column of texts."""
    column = np.empty(len(values), dtype=np.object_)
    column[:] = values
    return column


class ObjectRows:
    """Some rows of a table; every column is an array whose last axis is the row."""

    __slots__ = ("_table", "rows", "snapshot")
    snapshot: Snapshot
    """The cluster these rows belong to."""
    rows: slice | NDArray[np.intp]
    _table: ObjectTable

    def __len__(self) -> int:
        rows = self.rows
        return len(range(self._table.n)[rows] if isinstance(rows, slice) else rows)

    @property
    def index(self) -> NDArray[np.intp]:
        """Row numbers in the whole table (n,)."""
        rows = self.rows
        return rows if isinstance(rows, np.ndarray) else np.arange(self._table.n)[rows]

    def part(self, chosen: slice) -> Self:
        """Return some of these rows, counted among them."""
        part = copy(self)
        part.rows = self.index[chosen]
        return part

    @property
    def resources(self) -> Resources:
        """Resource names and their rows: ``resources.row("nvidia.com/gpu")``."""
        return self.snapshot.resources

    @property
    def objects(self) -> list[Any]:
        """Their objects as the cluster has them, None where there is none."""
        return self._pick(self._table.objects)

    @property
    def labels(self) -> list[dict[str, str]]:
        """Their labels."""
        return [{} if each is None else each.metadata.labels for each in self.objects]

    @property
    def annotations(self) -> list[dict[str, str]]:
        """Their annotations."""
        return [{} if each is None else each.metadata.annotations for each in self.objects]

    def label(self, key: str, absent: str = "") -> Texts:
        """Return one label of each (n,); ``absent`` where it is not set."""
        return texts([labels.get(key, absent) for labels in self.labels])

    def annotation(self, key: str, absent: str = "") -> Texts:
        """Return one annotation of each (n,); ``absent`` where it is not set."""
        return texts([notes.get(key, absent) for notes in self.annotations])

    @property
    def created(self) -> Column:
        """When they were created, in seconds since 1970; 0 where it is not stated (n,)."""
        return self._table.created[self.rows]

    def _pick(self, values: Sequence[Any]) -> list[Any]:
        return [values[i] for i in self.index.tolist()]


class NamespacedRows(ObjectRows):
    """Some rows of a table whose objects live in namespaces."""

    __slots__ = ()
    _table: TaskTable | JobTable

    @property
    def keys(self) -> Texts:
        """``namespace/name`` (n,)."""
        return texts(self._pick(self._table.keys))

    @property
    def names(self) -> Texts:
        """Their names (n,)."""
        return texts([key.partition("/")[2] for key in self._pick(self._table.keys)])

    @property
    def namespaces(self) -> Texts:
        """Their namespaces (n,)."""
        return texts([key.partition("/")[0] for key in self._pick(self._table.keys)])


class HoldingRows(ObjectRows):
    """Some jobs or queues, with what their tasks hold and ask for."""

    __slots__ = ()
    _table: JobTable | QueueTable

    @property
    def allocated(self) -> Column:
        """What their tasks hold (R, n)."""
        return self._table.allocated[:, self.rows]

    @property
    def allocated_or_pipelined(self) -> Column:
        """What their tasks hold or were promised (R, n)."""
        return self._table.allocated_or_pipelined[:, self.rows]

    @property
    def pending(self) -> Column:
        """What their pending tasks ask for (R, n)."""
        return self._table.pending[:, self.rows]


class ObjectRow:
    """One row of a table."""

    __slots__ = ("_table", "row")
    row: int
    _table: ObjectTable

    @property
    def object(self) -> Any:
        """The object as the cluster has it, None if there is none."""
        return self._table.objects[self.row]

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        thing = self.object
        return {} if thing is None else thing.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        """Its annotations."""
        thing = self.object
        return {} if thing is None else thing.metadata.annotations

    @property
    def created(self) -> float:
        """When it was created, in seconds since 1970; 0 if it is not stated."""
        return float(self._table.created[self.row])


class NamespacedRow(ObjectRow):
    """One row of a table whose objects live in namespaces."""

    __slots__ = ()
    _table: TaskTable | JobTable

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self._table.keys[self.row]

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.partition("/")[2]

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.key.partition("/")[0]


class HoldingRow(ObjectRow):
    """One job or queue, with what its tasks hold and ask for."""

    __slots__ = ()
    _table: JobTable | QueueTable

    @property
    def allocated(self) -> Column:
        """What its tasks hold (R,)."""
        return self._table.allocated[:, self.row]

    @property
    def allocated_or_pipelined(self) -> Column:
        """What its tasks hold or were promised (R,)."""
        return self._table.allocated_or_pipelined[:, self.row]

    @property
    def pending(self) -> Column:
        """What its pending tasks ask for (R,)."""
        return self._table.pending[:, self.row]


Rows = slice | NDArray[np.intp]
ALL = slice(None)
_ready_of = itemgetter(*(int(status) for status in (*ALLOCATED_CLASS, Status.SUCCEEDED)))
"""Picks the numbers of tasks that hold a node, or have succeeded, out of those by status."""


def at(column: Column, rows: Rows) -> Column:
    """Return some rows of a column (…, n); taking them is several times faster than an index."""
    return column[..., rows] if isinstance(rows, slice) else column.take(rows, axis=-1)


class NodeFacts(ObjectRows):
    """Node columns that do not change while a session runs."""

    __slots__ = ()
    _table: NodeTable

    def __init__(self, snapshot: Snapshot, rows: Rows = ALL) -> None:
        self.snapshot = snapshot
        self._table = snapshot.nodes
        self.rows = rows

    def __len__(self) -> int:
        rows = self.rows
        return len(self._table.unschedulable[rows] if isinstance(rows, slice) else rows)

    @property
    def names(self) -> Texts:
        """Node names (n,)."""
        return texts(self._pick(self._table.names))

    @property
    def allocatable(self) -> Column:
        """Allocatable amounts (R, n)."""
        return at(self._table.allocatable, self.rows)

    @property
    def capacity(self) -> Column:
        """Capacities, including reserved amounts (R, n)."""
        return at(self._table.capacity_amounts, self.rows)

    @property
    def unschedulable(self) -> Mask:
        """Cordoned nodes (n,)."""
        return self._table.unschedulable[self.rows]

    @property
    def taint_class(self) -> Ints:
        """Index into ``taint_sets`` (n,)."""
        return self._table.taint_class[self.rows]

    @property
    def taint_sets(self) -> list[tuple[Any, ...]]:
        """The distinct sets of taints in the cluster."""
        return self.snapshot.taint_sets


class Nodes(NodeFacts):
    """Node columns as they are at this moment of the session."""

    __slots__ = ()

    @property
    def idle(self) -> Column:
        """Free amounts (R, n)."""
        return at(self._table.idle, self.rows)

    @property
    def used(self) -> Column:
        """Amounts in use, leaving tasks included (R, n)."""
        return at(self._table.used, self.rows)

    @property
    def releasing(self) -> Column:
        """Amounts of leaving tasks (R, n)."""
        return at(self._table.releasing, self.rows)

    @property
    def pipelined(self) -> Column:
        """Amounts promised to pipelined tasks (R, n)."""
        return at(self._table.pipelined, self.rows)

    @property
    def future_idle(self) -> Column:
        """Free amounts once leaving tasks are gone and pipelined ones are in (R, n)."""
        return self.idle + self.releasing - self.pipelined

    @property
    def view_used(self) -> Column:
        """Requests as Kubernetes' scores see them (R, n)."""
        return at(self._table.view_used, self.rows)

    @property
    def view_nonzero(self) -> Column:
        """Cpu and memory with Kubernetes' defaults for containers without requests (2, n)."""
        return at(self._table.view_nonzero, self.rows)

    @property
    def view_pods(self) -> Ints:
        """Pods as Kubernetes' filters count them (n,)."""
        return self._table.view_pods[self.rows]

    def column(self, name: str) -> Column:
        """Return these rows of a plugin's own column, declared with ``ssn.add_node_column``."""
        column = self.snapshot.plugin_columns.get(name)
        if column is None:
            problem = f"there is no node column '{name}'; on_open adds it with ssn.add_node_column"
            raise PluginError(problem=problem)
        return at(column, self.rows)


class NodeRow(ObjectRow):
    """One node, for hooks that look at one node at a time."""

    __slots__ = ()
    _table: NodeTable

    def __init__(self, snapshot: Snapshot, row: int) -> None:
        self._table = snapshot.nodes
        self.row = row

    @property
    def name(self) -> str:
        """The node's name."""
        return self._table.names[self.row]

    @property
    def allocatable(self) -> Column:
        """Allocatable amounts (R,)."""
        return self._table.allocatable[:, self.row]

    @property
    def idle(self) -> Column:
        """Free amounts (R,)."""
        return self._table.idle[:, self.row]

    @property
    def used(self) -> Column:
        """Amounts in use (R,)."""
        return self._table.used[:, self.row]


class Task(NamespacedRow):
    """One task; ``request`` is (R, 1) and broadcasts against node columns."""

    __slots__ = ("_snapshot", "shape")
    _table: TaskTable

    def __init__(self, snapshot: Snapshot, row: int) -> None:
        self._snapshot = snapshot
        self._table = snapshot.tasks
        self.row = row
        self.shape: Shape = snapshot.shapes[snapshot.tasks.shape.item(row)]

    @property
    def request(self) -> Column:
        """The request of the task (R, 1)."""
        return self.shape.request

    @property
    def need(self) -> Column:
        """What a node must have left for it (R, 1): scalars it does not request fit any room."""
        return self.shape.need

    @property
    def status(self) -> Status:
        """The state of the task."""
        return Status(int(self._table.status[self.row]))

    @property
    def node(self) -> int:
        """The row of its node, or NOWHERE."""
        return int(self._table.node[self.row])

    @property
    def job(self) -> int:
        """The row of its job, or NOWHERE."""
        return int(self._table.job[self.row])

    @property
    def queue(self) -> int:
        """The row of its job's queue, or NOWHERE."""
        job = self.job
        return NOWHERE if job == NOWHERE else int(self._snapshot.jobs.queue[job])

    @property
    def priority(self) -> int:
        """The task's own priority."""
        return int(self._table.priority[self.row])

    @property
    def role(self) -> str:
        """The name of its task in the job, or the empty string."""
        role = int(self._table.role[self.row])
        return "" if role == NOWHERE else self._snapshot.roles[role]

    @property
    def best_effort(self) -> bool:
        """Whether it requests nothing."""
        return bool(self._table.best_effort[self.row])

    @property
    def preemptable(self) -> bool:
        """Whether it may be evicted for others."""
        return bool(self._table.preemptable[self.row])

    @property
    def started(self) -> float:
        """When its pod started, in seconds since 1970; not a number if it has not."""
        return float(self._table.started[self.row])

    @property
    def pod(self) -> Any:
        """The pod as the cluster has it."""
        return self._table.pods[self.row]


class Job(HoldingRow, NamespacedRow):
    """One job (pod group) with the counts of its tasks at this moment."""

    __slots__ = ("snapshot",)
    _table: JobTable

    def __init__(self, snapshot: Snapshot, row: int) -> None:
        self.snapshot = snapshot
        self._table = snapshot.jobs
        self.row = row

    @property
    def phase(self) -> str:
        """The phase at this moment, such as "Inqueue"."""
        return PHASES[self._table.phase[self.row]]

    @property
    def queue(self) -> int:
        """The row of its queue."""
        return int(self._table.queue[self.row])

    @property
    def priority(self) -> int:
        """The value of its priority class."""
        return int(self._table.priority[self.row])

    @property
    def min_member(self) -> int:
        """How many tasks it needs at least."""
        return int(self._table.min_member[self.row])

    @property
    def group(self) -> Any:
        """The PodGroup as the cluster has it."""
        return self._table.groups[self.row]

    @property
    def tasks(self) -> list[int]:
        """Rows of all its tasks."""
        return self._table.tasks[self.row]

    @property
    def counts(self) -> list[int]:
        """Tasks by status."""
        counts: list[int] = self._table.counts[:, self.row].tolist()
        return counts

    @property
    def ready(self) -> int:
        """Tasks that hold a node, or have succeeded."""
        return sum(_ready_of(self.counts))

    @property
    def waiting(self) -> int:
        """Tasks that are pipelined."""
        return int(self._table.counts[Status.PIPELINED, self.row])

    @property
    def pending_best_effort(self) -> int:
        """Pending tasks without requests; a gang never waits for them."""
        return int(self._table.n_pending_best_effort[self.row])

    @property
    def min_resources(self) -> Column | None:
        """The stated request for its start (R,), or None if not stated."""
        if not self._table.has_min_resources[self.row]:
            return None
        return self._table.min_resources[:, self.row]


class Queue(HoldingRow):
    """One queue."""

    __slots__ = ()
    _table: QueueTable

    def __init__(self, snapshot: Snapshot, row: int) -> None:
        self._table = snapshot.queues
        self.row = row

    @property
    def name(self) -> str:
        """The queue's name."""
        return self._table.names[self.row]

    @property
    def is_open(self) -> bool:
        """Whether it takes new work."""
        return bool(self._table.open[self.row])

    @property
    def weight(self) -> int:
        """Its weight beside its siblings."""
        return int(self._table.weight[self.row])

    @property
    def priority(self) -> int:
        """Its priority."""
        return int(self._table.priority[self.row])

    @property
    def parent(self) -> int:
        """The row of its parent in the tree of queues, or NOWHERE."""
        return int(self._table.parent[self.row])

    @property
    def capability(self) -> Column:
        """The most it may hold (R,); infinite where not stated."""
        return self._table.capability[:, self.row]

    @property
    def deserved(self) -> Column:
        """What others may not reclaim from it (R,); 0 where not stated."""
        return self._table.deserved[:, self.row]

    @property
    def guarantee(self) -> Column:
        """What is kept free for it (R,); 0 where not stated."""
        return self._table.guarantee[:, self.row]


# Roles: minimum numbers of tasks (``minTaskMember``), the tasks that count, mixed kinds

READY = ALLOCATED_CLASS | {Status.SUCCEEDED}


def mixed_roles(
    snapshot: Snapshot, rows: list[int], varying: Sequence[Callable[[Task], Hashable]]
) -> frozenset[int]:
    """Return the roles whose tasks differ in kind: a node may refuse one and take the next.

    Tasks differ by shape, and by what plugins look at besides: labels, annotations, the queue.
    """
    table = snapshot.tasks
    roles, kinds = table.role[rows].tolist(), [table.shape[rows].tolist()]
    tasks = [Task(snapshot, row) for row in rows] if varying else []
    kinds += [[vary_by(task) for task in tasks] for vary_by in varying]
    distinct = set(zip(roles, *kinds, strict=True))
    found = Counter(role for role, *_ in distinct if role != NOWHERE)
    return frozenset(role for role, n in found.items() if n > 1)


def minima(job: Job) -> dict[str, int]:
    """Return the minimum number of tasks of each role.

    They bind only if the job needs at least as many tasks as they add up to.
    """
    wanted: dict[str, int] = job.group.spec.min_task_member
    if not wanted or job.min_member < sum(wanted.values()):
        return {}
    return wanted


def count_roles(
    job: Job, statuses: Collection[Status], *, pending_best_effort: bool = False
) -> dict[str, int]:
    """Count a job's tasks by role over some statuses."""
    snapshot = job.snapshot
    tasks, names = snapshot.tasks, snapshot.roles
    counts: dict[str, int] = {}
    for row in job.tasks:
        status = int(tasks.status[row])
        extra = pending_best_effort and status == PENDING and tasks.best_effort[row]
        if status in statuses or extra:
            role = int(tasks.role[row])
            name = "" if role == NOWHERE else names[role]
            counts[name] = counts.get(name, 0) + 1
    return counts


def meets_minima(counts: dict[str, int], wanted: dict[str, int]) -> bool:
    """Return whether every role has its minimum number."""
    return all(counts.get(role, 0) >= least for role, least in wanted.items())


def roles_ready(job: Job, *, pipelined: bool = False) -> bool:
    """Return whether every role has its minimum number placed (or pipelined)."""
    wanted = minima(job)
    if not wanted:
        return True
    statuses = READY | {Status.PIPELINED} if pipelined else READY
    return meets_minima(count_roles(job, statuses, pending_best_effort=True), wanted)
