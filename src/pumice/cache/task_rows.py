"""Rows of tasks: the request of a pod, its node and its job."""

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec.structs import force_setattr

from pumice.api.annotations import GROUP_NAME
from pumice.api.meta import key_of
from pumice.api.pods import Pod, PodSpec
from pumice.api.times import epoch
from pumice.cache.job_rows import JobRows
from pumice.cache.new_tasks import NewTasks
from pumice.cache.pod_cells import (
    ON_NODE,
    SHAPE_PARTS,
    PodCells,
    PodReader,
    index_of,
    own_cells,
    stated_wait,
    status_of,
    write_cells,
    write_own_cells,
)
from pumice.cache.task_counts import TaskCounts
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE

_settled = attrgetter(
    *SHAPE_PARTS,
    "scheduler_name",
    "priority",
    "priority_class_name",
    "preemption_policy",
    "volumes",
    "resource_claims",
    "host_network",
)
"""Parts of a pod's specification that must be as before for its row to stay as it is."""

_GONE = int(Status.GONE)
_HOLDS = frozenset({int(Status.BOUND), int(Status.RUNNING)})


class TaskRows:
    """Keeps tasks, and the lists of nodes and jobs that name them, in step with pods."""

    def __init__(
        self,
        snapshot: Snapshot,
        jobs: JobRows,
        counts: TaskCounts,
        scheduler_names: Iterable[str],
    ) -> None:
        self.snapshot = snapshot
        self._jobs = jobs
        self._counts = counts
        self._scheduler_names = frozenset(scheduler_names)
        self._reader = PodReader(snapshot)
        self.new_tasks = NewTasks(snapshot)
        self._marks: dict[frozenset[tuple[str, str]], dict[str, str]] = {}
        self._parts: dict[int, list[tuple[str, Any]]] = {}
        """Parts of a specification that pods share, by shape."""
        self._homeless: dict[str, set[int]] = {}
        self._waits: dict[int, str] = {}
        """Tasks whose node is not known yet, by its name, and that name."""
        self._nominees: dict[int, str] = {}
        """Tasks with a nominated node, by its name: the node may appear, disappear and move."""

    @property
    def n_marks(self) -> int:
        """How many sets of annotations are kept."""
        return len(self._marks)

    def moved_row(self, pod: Pod) -> int | None:
        """Return the row of a pod that is known and differs in its node and status at most."""
        spec, tasks = pod.spec, self.snapshot.tasks
        row = tasks.row_of.get(key_of(pod))
        if row is None or self._counts.later or not self._is_counted(pod):
            return None
        known = tasks.pods[row]
        if not isinstance(known, Pod):
            return None
        meta, old, like = pod.metadata, known.metadata, known.spec
        is_same = (
            meta.uid == old.uid
            and (meta.labels is old.labels or meta.labels == old.labels)
            and (meta.annotations is old.annotations or meta.annotations == old.annotations)
            and (spec is like or spec == like or _settled(spec) == _settled(like))
        )
        return row if is_same else None

    def read(self, pod: Pod) -> PodCells | None:
        """Read a pod, unless it does not count.

        Every possible fault of a pod shows here, before any row is touched.
        """
        return self._reader.read(pod) if self._is_counted(pod) else None

    def _is_counted(self, pod: Pod) -> bool:
        """Return whether a pod is one of ours or on a node."""
        spec = pod.spec
        return bool(spec.node_name) or spec.scheduler_name in self._scheduler_names

    def write(self, pod: Pod, cells: PodCells | None) -> None:
        """Add a pod or replace it, with what was read of it."""
        key, tasks = key_of(pod), self.snapshot.tasks
        if cells is None:
            self.delete(key)
            return
        row = tasks.row_of.get(key)
        if row is None and self._counts.later and not tasks.free:
            self._gather(key, pod, cells)
            return
        if row is None:
            row = tasks.row_of[key] = tasks.new_row()
        else:
            self.write_gathered()
            self._take_out(row)
        tasks.keys[row] = key
        tasks.uids[row] = pod.metadata.uid or key
        tasks.pods[row] = pod
        write_cells(tasks, row, cells)
        write_own_cells(tasks, row, own_cells(pod))
        tasks.index[row] = index_of(pod.metadata.name)
        if pod.status.nominated_node_name:
            self._nominees[row] = pod.status.nominated_node_name
        tasks.job[row] = self._job(pod)
        self._settle_in(row, pod.spec.node_name)
        self._share(pod, cells.shape, cells.label_class)
        self._share_node(row, pod)

    def _gather(self, key: str, pod: Pod, cells: PodCells) -> None:
        """Keep a new pod of many, to be written with the others."""
        self._share(pod, cells.shape, cells.label_class)
        row = self.new_tasks.add(key, pod, cells, self._job(pod))
        if pod.status.nominated_node_name:
            self._nominees[row] = pod.status.nominated_node_name
        if self.new_tasks.is_full:
            self.write_gathered()

    def write_gathered(self) -> None:
        """Write the pods that were gathered."""
        for row, node_name in self.new_tasks.write():
            self.wait_for_node(row, node_name)

    def _job(self, pod: Pod) -> int:
        """Return the row of the job of a pod, also of one that another scheduler placed."""
        job = self._job_key(pod)
        return self._jobs.row(job) if job else NOWHERE

    def _job_key(self, pod: Pod) -> str:
        """Name the job of a pod, or nothing if it has none."""
        group = pod.metadata.annotations.get(GROUP_NAME, "")
        return f"{pod.metadata.namespace}/{group}" if group else ""

    def move(self, row: int, pod: Pod) -> None:
        """Replace a pod that only moved; what stays is left alone."""
        snapshot, tasks = self.snapshot, self.snapshot.tasks
        known, node_name = tasks.pods[row], pod.spec.node_name
        assert isinstance(known, Pod)  # noqa: S101  # else it would not be one that only moved
        old, node, new = tasks.status.item(row), tasks.node.item(row), status_of(pod)
        stays = node != NOWHERE and snapshot.nodes.names[node] == node_name
        if stays and old in ON_NODE and new in ON_NODE:
            self._change_status(row, node, old, new)
            if self._nominees.pop(row, None) is not None:
                tasks.nominated[row] = NOWHERE
        else:
            job = int(tasks.job[row])
            self._take_out(row)
            if job != NOWHERE:  # may be forgotten with its last task
                tasks.job[row] = self._jobs.row(self._job_key(pod))
            tasks.status[row] = new
            self._settle_in(row, node_name)
        tasks.pods[row] = pod
        if pod.status is not known.status:
            start_time = pod.status.start_time
            tasks.started[row] = epoch(start_time) if start_time else np.nan
            tasks.stated_wait[row] = stated_wait(pod)
        if pod.status.nominated_node_name:
            self._nominees[row] = pod.status.nominated_node_name
        self._share_with(row, pod, known)

    def _change_status(self, row: int, node: int, old: int, new: int) -> None:
        """Change the status of a task that stays on its node, and what it counts as there."""
        snapshot = self.snapshot
        tasks, counts = snapshot.tasks, self._counts
        job, shape = tasks.job.item(row), snapshot.shapes[tasks.shape.item(row)]
        snapshot.touched_nodes.add(node)
        if old != new:
            tasks.status[row] = new
            counts.change(shape, node, job, old, new)
        if old in _HOLDS and new in _HOLDS:
            return
        if shape.coarse:
            counts.rounded = True
        _make_last(snapshot.nodes.tasks[node], row)  # as a task that has just come
        if job != NOWHERE:
            _make_last(snapshot.jobs.tasks[job], row)

    def _share_with(self, row: int, pod: Pod, known: Pod) -> None:
        """Share the parts of a pod that only moved with the one that it replaces."""
        meta, shared = pod.metadata, known.metadata
        if meta.annotations is not shared.annotations or meta.labels is not shared.labels:
            force_setattr(meta, "annotations", shared.annotations)
            force_setattr(meta, "labels", shared.labels)
            force_setattr(meta, "namespace", shared.namespace)
        if pod.spec is known.spec:
            return
        if pod.spec == known.spec:
            force_setattr(pod, "spec", known.spec)
        else:
            self.snapshot.tasks.gated[row] = bool(pod.spec.scheduling_gates)
            for name in SHAPE_PARTS:
                force_setattr(pod.spec, name, getattr(known.spec, name))
            self._share_node(row, pod)

    def _share(self, pod: Pod, shape: int, label_class: int) -> None:
        """Make equal parts of equal pods one object: 100,000 pods are a few dozen shapes."""
        spec, meta = pod.spec, pod.metadata
        parts = self._parts.get(shape)
        if parts is None:
            parts = self._parts[shape] = _parts_of(self.snapshot.shapes[shape].spec)
        for name, part in parts:
            force_setattr(spec, name, part)
        namespace, labels = self.snapshot.label_classes[label_class]
        marks = self._marks.setdefault(frozenset(meta.annotations.items()), meta.annotations)
        force_setattr(meta, "annotations", marks)
        force_setattr(meta, "labels", labels)
        force_setattr(meta, "namespace", namespace)

    def _share_node(self, row: int, pod: Pod) -> None:
        node = self.snapshot.tasks.node[row]
        if node != NOWHERE:
            force_setattr(pod.spec, "node_name", self.snapshot.nodes.names[node])

    def link_nominees(self) -> None:
        """Find the rows of nominated nodes."""
        tasks, row_of = self.snapshot.tasks, self.snapshot.nodes.row_of
        for row, name in self._nominees.items():
            tasks.nominated[row] = row_of.get(name, NOWHERE)

    def _settle_in(self, row: int, node_name: str) -> None:
        tasks = self.snapshot.tasks
        if node_name and int(tasks.status[row]) in ON_NODE:
            node = self.snapshot.nodes.row_of.get(node_name)
            if node is None:
                self.wait_for_node(row, node_name)
            else:
                tasks.node[row] = node
                self.count_on_node(row, node, 1)
        job = int(tasks.job[row])
        if job != NOWHERE:
            self.snapshot.jobs.tasks[job].append(row)
            self.snapshot.touched_jobs.add(job)
            self._count(row, NOWHERE, job, 1)

    def wait_for_node(self, task: int, name: str) -> None:
        """Make a task count on a node once one of that name exists."""
        self._homeless.setdefault(name, set()).add(task)
        self._waits[task] = name

    def take_waiting(self, name: str) -> list[int]:
        """Return the tasks that wait for a node; they do so no longer."""
        found = sorted(self._homeless.pop(name, ()))
        for task in found:
            del self._waits[task]
        return found

    def _wait_no_more(self, task: int) -> None:
        name = self._waits.pop(task, None)
        if name is not None:
            waiting = self._homeless[name]
            waiting.discard(task)
            if not waiting:
                del self._homeless[name]

    def delete(self, key: str) -> None:
        """Forget a pod."""
        row = self.snapshot.tasks.row_of.pop(key, None)
        if row is not None:
            self.write_gathered()
            self._take_out(row)
            self.snapshot.tasks.clear_row(row)

    def _take_out(self, row: int) -> None:
        """Undo everything that others count of a task."""
        tasks = self.snapshot.tasks
        node, job = tasks.node.item(row), tasks.job.item(row)
        self._counts.rounded |= self.snapshot.shapes[tasks.shape.item(row)].coarse
        if node != NOWHERE:
            self.count_on_node(row, node, -1)
        self._nominees.pop(row, None)
        self._wait_no_more(row)
        if job != NOWHERE:
            self.snapshot.touched_jobs.add(job)
            self._count(row, NOWHERE, job, -1)
            _remove(self.snapshot.jobs.tasks[job], row)
            if self._jobs.is_empty(job):
                self._counts.add_up()
                self._jobs.forget(job)
        tasks.node[row] = tasks.nominated[row] = NOWHERE

    def count_on_node(self, task: int, node: int, sign: int) -> None:
        """Add a task to the books of its node, or remove it."""
        nodes, tasks = self.snapshot.nodes, self.snapshot.tasks
        self.snapshot.touched_nodes.add(node)
        tasks.in_view[task] = sign > 0
        if sign > 0:
            nodes.tasks[node].append(task)
        else:
            _remove(nodes.tasks[node], task)
        self._count(task, node, NOWHERE, sign)

    def _count(self, task: int, node: int, job: int, sign: int) -> None:
        tasks = self.snapshot.tasks
        shape, status = self.snapshot.shapes[tasks.shape.item(task)], tasks.status.item(task)
        old, new = (_GONE, status) if sign > 0 else (status, _GONE)
        self._counts.change(shape, node, job, old, new)


def _make_last(rows: list[int], row: int) -> None:
    if rows[-1] != row:
        rows.remove(row)
        rows.append(row)


def _remove(rows: list[int], row: int) -> None:
    """Remove a row from a list; one that starts to leave becomes the last, and leaves soon."""
    if rows[-1] == row:
        rows.pop()
    else:
        rows.remove(row)


def _parts_of(spec: PodSpec) -> list[tuple[str, Any]]:
    """Return the shared parts by name, but for empty tuples, which are one object anyway."""
    parts = ((name, getattr(spec, name)) for name in SHAPE_PARTS)
    return [(name, part) for name, part in parts if part is not None and part != ()]
