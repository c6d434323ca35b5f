"""One object in, changed rows out.

The only writer of a snapshot outside a session.  Objects may arrive in any order: a pod before its
node, group or queue finds its place when they arrive.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from pumice.api.groups import PodGroup, PriorityClass, Queue
from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.meta import KubeObject
from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.cache.equal_pods import EqualPods
from pumice.cache.identity import key_of
from pumice.cache.job_rows import JobRows
from pumice.cache.node_rows import NodeRows
from pumice.cache.task_rows import TaskRows
from pumice.core.resources import sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.status import N_STATUS, Status
from pumice.core.tables import ALLOCATED, BOOKED, IDLE, NOWHERE, PENDING, RELEASING, USED, VIEW


def recount(snapshot: Snapshot) -> None:
    """Set every count and sum of nodes, jobs and namespaces from the tasks."""
    if snapshot.shapes:
        snapshot.nodes.generation += 1
        _nodes(snapshot)
        _jobs(snapshot)
        _namespaces(snapshot)


def _nodes(snapshot: Snapshot) -> None:
    nodes, tasks = snapshot.nodes, snapshot.tasks
    rows = np.flatnonzero(tasks.node != NOWHERE)
    at, shapes = tasks.node[rows], tasks.shape[rows]
    requests = np.concatenate([shape.request for shape in snapshot.shapes], axis=1)
    nonzero = np.concatenate([shape.nonzero for shape in snapshot.shapes], axis=1)
    used = sum_by(requests[:, shapes], at, nodes.capacity)
    leaving = tasks.status[rows] == Status.RELEASING
    nodes.books[IDLE] = nodes.allocatable - used
    nodes.books[USED] = nodes.books[VIEW] = used
    nodes.books[RELEASING] = sum_by(requests[:, shapes[leaving]], at[leaving], nodes.capacity)
    nodes.view_pods[:] = np.bincount(at, minlength=nodes.capacity)
    nodes.view_nonzero[:] = sum_by(nonzero[:, shapes], at, nodes.capacity)
    for (shape, node), n in snapshot.absent_pods.items():
        snapshot.hold(snapshot.shapes[shape], [node] * n, 1)


def _jobs(snapshot: Snapshot) -> None:
    jobs, tasks = snapshot.jobs, snapshot.tasks
    rows = np.flatnonzero(tasks.job != NOWHERE)
    owner, status = tasks.job[rows], tasks.status[rows]
    cells = status.astype(np.intp) * jobs.capacity + owner
    counts = np.bincount(cells, minlength=N_STATUS * jobs.capacity)
    jobs.counts[:] = counts.reshape(N_STATUS, jobs.capacity)
    jobs.n_tasks[:] = jobs.counts.sum(axis=0)
    requests = np.concatenate([shape.request for shape in snapshot.shapes], axis=1)
    requests = requests[:, tasks.shape[rows]]
    held = (status == Status.BOUND) | (status == Status.RUNNING)
    waiting = status == Status.PENDING
    jobs.sums[ALLOCATED] = sum_by(requests[:, held], owner[held], jobs.capacity)
    jobs.sums[BOOKED] = jobs.sums[ALLOCATED]
    jobs.sums[PENDING] = sum_by(requests[:, waiting], owner[waiting], jobs.capacity)
    for row, sums in snapshot.absent.items():
        jobs.sums[:, :, row] += sums
    idle = owner[waiting & tasks.best_effort[rows]]
    jobs.n_pending_best_effort[:] = np.bincount(idle, minlength=jobs.capacity)


def _namespaces(snapshot: Snapshot) -> None:
    jobs, spaces = snapshot.jobs, snapshot.namespaces
    known = jobs.namespace != NOWHERE
    for layer in range(len(spaces.sums)):
        spaces.sums[layer] = sum_by(
            jobs.sums[layer][:, known], jobs.namespace[known], spaces.capacity
        )


class Ingest:
    """Keeps a snapshot's tables in step with the objects of a cluster."""

    def __init__(
        self,
        snapshot: Snapshot,
        scheduler_names: Iterable[str] = ("volcano",),
        default_queue: str = DEFAULT_QUEUE,
    ) -> None:
        """Make one; groups that name no queue count for ``default_queue``."""
        self.snapshot = snapshot
        self._scheduler_names = tuple(scheduler_names)
        self._default_queue = default_queue
        self._jobs = JobRows(snapshot, default_queue)
        self._tasks = TaskRows(snapshot, self._jobs, self._scheduler_names)
        self._nodes = NodeRows(snapshot, self._tasks)
        self.equal_pods = EqualPods(self._tasks)
        self.torn = False
        """Whether an object was applied only in part: this instance cannot be used any more."""

    @property
    def litter(self) -> int:
        """A lower bound of unused entries of one sort: shapes, label sets and the like.

        Pods may share one.  Entries are known by number, so none can be removed alone.
        """
        snapshot = self.snapshot
        kept = max(
            len(snapshot.shapes),
            len(snapshot.label_classes),
            self._tasks.n_marks,
            len(snapshot.roles),
            len(snapshot.namespaces.row_of),
            len(snapshot.taint_sets),
        )
        return kept - len(snapshot.tasks.row_of)

    def anew(self) -> "Ingest":
        """Return one like this with an empty snapshot."""
        fresh = Ingest(Snapshot(), self._scheduler_names, self._default_queue)
        fresh.snapshot.resources.most_asked = self.snapshot.resources.most_asked
        return fresh

    def load(self, objects: Iterable[KubeObject]) -> Snapshot:
        """Load many objects and settle; an empty snapshot is counted once at the end."""
        with self.counting_once():
            for thing in objects:
                self.upsert(thing)
        return self.settle()

    @contextmanager
    def counting_once(self) -> Iterator[None]:
        """Take objects into an empty snapshot with all counting at the end."""
        later = not self.snapshot.tasks.n
        self._tasks.counts_later = later
        yield
        self._tasks.counts_later = False
        self._tasks.rounded |= later

    def upsert(self, thing: KubeObject) -> None:
        """Add an object or replace the one of the same name.

        An object that cannot be applied raises.  Unless ``torn`` is then set, nothing has changed.
        """
        if isinstance(thing, Pod):
            marks = self._tasks.read(thing)
            self.torn = True
            self._tasks.write(thing, marks)
        else:
            if isinstance(thing, PodGroup):
                self._jobs.read_group(thing)
            self.torn = True
            self._write(thing)
        self.torn = False

    def _write(self, thing: KubeObject) -> None:
        match thing:
            case Node():
                self._nodes.upsert(thing)
            case PodGroup():
                self._jobs.write_group(thing)
            case Queue():
                self._jobs.upsert_queue(thing)
            case _:
                self.snapshot.kind(type(thing).__name__)[key_of(thing)] = thing
                self._jobs.stale |= isinstance(thing, PriorityClass)

    def delete(self, thing: KubeObject) -> None:
        """Forget an object."""
        key = key_of(thing)
        match thing:
            case Pod():
                self._tasks.delete(key)
            case Node():
                self._nodes.delete(key)
            case PodGroup():
                self._jobs.delete_group(key)
            case Queue():
                self._jobs.delete_queue(key)
            case _:
                self.snapshot.kind(type(thing).__name__).pop(key, None)
                self._jobs.stale |= isinstance(thing, PriorityClass)

    def settle(self) -> Snapshot:
        """Bring links between objects up to date; call before a session opens."""
        self.snapshot.nodes.trim()
        if self._tasks.rounded:
            self._tasks.rounded = False
            recount(self.snapshot)
            self._jobs.stale = True
        self._tasks.link_nominees()
        self._jobs.link()
        return self.snapshot

    def set_aside(self, job: str, *, aside: bool = True) -> None:
        """Leave a job ("namespace/name") out of sessions, or call it back.

        Its pods count for its queue all along.  For callers that know that a session could do
        nothing with it.
        """
        self._jobs.set_aside(job, aside=aside)
