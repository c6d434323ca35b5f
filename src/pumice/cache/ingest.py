"""One object in, changed rows out.

The only writer of a snapshot outside a session.  Objects may arrive in any order: a pod before its
node, group or queue finds its place when they arrive.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from pumice.api.groups import PodGroup, PriorityClass, Queue
from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.meta import KubeObject, key_of
from pumice.api.nodes import Node
from pumice.api.pods import Pod
from pumice.cache.job_rows import JobRows
from pumice.cache.node_rows import NodeRows
from pumice.cache.task_counts import TaskCounts
from pumice.cache.task_rows import TaskRows
from pumice.core.snapshot import Snapshot


class Ingest:
    """Keeps a snapshot's tables in step with the objects of a cluster."""

    def __init__(
        self,
        snapshot: Snapshot,
        scheduler_names: Iterable[str] = ("volcano",),
        default_queue: str = DEFAULT_QUEUE,
    ) -> None:
        """Make one; groups that name no queue count for ``default_queue``."""
        self._snapshot = snapshot
        self._scheduler_names = tuple(scheduler_names)
        self._default_queue = default_queue
        self._jobs = JobRows(snapshot, default_queue)
        self._counts = TaskCounts(snapshot)
        self._tasks = TaskRows(snapshot, self._jobs, self._counts, self._scheduler_names)
        self._nodes = NodeRows(snapshot, self._tasks)
        self.torn = False
        """Whether an object was applied only in part: this instance cannot be used any more."""

    @property
    def snapshot(self) -> Snapshot:
        """The tables, every count up to date; links are so once it is settled."""
        self._counts.add_up()
        return self._snapshot

    @property
    def litter(self) -> int:
        """A lower bound of unused entries of one sort: shapes, label sets and the like.

        Pods may share one.  Entries are known by number, so none can be removed alone.
        """
        snapshot = self._snapshot
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
        fresh.snapshot.resources.most_asked = self._snapshot.resources.most_asked
        return fresh

    def load(self, objects: Iterable[KubeObject]) -> Snapshot:
        """Load many objects and settle; an empty snapshot is counted once at the end."""
        with self.counting_once():
            for thing in objects:
                self.upsert(thing)
        return self.settle()

    @contextmanager
    def counting_once(self) -> Iterator[None]:
        """Take objects into an empty snapshot and count all of them at the end, failed or not."""
        later = not self._snapshot.tasks.n
        self._counts.later = self._jobs.gathers = self._nodes.gathers = later
        try:
            yield
        finally:
            try:
                self._nodes.write_gathered()
                self._tasks.write_gathered()
                self._jobs.write_gathered()
            finally:
                self._counts.later = self._jobs.gathers = self._nodes.gathers = False
                self._counts.rounded |= later

    def upsert(self, thing: KubeObject) -> None:
        """Add an object or replace the one of the same name.

        An object that cannot be applied raises.  Unless ``torn`` is then set, nothing has changed.
        """
        if isinstance(thing, Node) and self._nodes.is_known(thing):
            return
        self._snapshot.changes += 1
        if isinstance(thing, Pod):
            if self._counts.later and self._tasks.new_tasks.add_alike((thing,)):
                return
            row = self._tasks.moved_row(thing)
            cells = self._tasks.read(thing) if row is None else None
            self.torn = True
            if row is None:
                self._tasks.write(thing, cells)
            else:
                self._tasks.move(row, thing)
        else:
            if isinstance(thing, PodGroup):
                self._jobs.read_group(thing)
            self.torn = True
            self._write(thing)
        self.torn = False

    def add_alike(self, things: Sequence[KubeObject], start: int) -> int:
        """Add new pods, from a place on, while each is like the last one; return where that ends.

        The rest is left to ``upsert``.
        """
        self._snapshot.changes += 1
        return self._tasks.new_tasks.add_alike(things, start)

    def _write(self, thing: KubeObject) -> None:
        match thing:
            case Node():
                self._nodes.upsert(thing)
            case PodGroup():
                self._jobs.write_group(thing)
            case Queue():
                self._jobs.upsert_queue(thing)
            case _:
                self._snapshot.other_changes += 1
                self._snapshot.kind(type(thing).__name__)[key_of(thing)] = thing
                self._jobs.stale |= isinstance(thing, PriorityClass)

    def delete(self, thing: KubeObject) -> None:
        """Forget an object."""
        self._snapshot.changes += 1
        key = key_of(thing)
        if isinstance(thing, Pod):
            self._tasks.delete(key)
            return
        self._tasks.write_gathered()  # they may be all that a group or a node has
        self._counts.add_up()
        match thing:
            case Node():
                self._nodes.delete(key)
            case PodGroup():
                self._jobs.delete_group(key)
            case Queue():
                self._jobs.delete_queue(key)
            case _:
                self._snapshot.other_changes += 1
                self._snapshot.kind(type(thing).__name__).pop(key, None)
                self._jobs.stale |= isinstance(thing, PriorityClass)

    def settle(self) -> Snapshot:
        """Bring links between objects up to date; call before a session opens."""
        self._snapshot.nodes.trim()
        self._jobs.stale |= self._counts.settle()
        self._tasks.link_nominees()
        self._jobs.link()
        return self._snapshot

    def set_aside(self, job: str, *, aside: bool = True) -> None:
        """Leave a job ("namespace/name") out of sessions, or call it back.

        Its pods count for its queue all along.  For callers that know that a session could do
        nothing with it.
        """
        self._snapshot.changes += 1
        self._jobs.set_aside(job, aside=aside)
