"""Rows of tasks: the request of a pod, its node and its job."""

from collections.abc import Iterable
from operator import attrgetter

import numpy as np
from msgspec.structs import force_setattr

from pumice.api.annotations import GROUP_NAME
from pumice.api.pods import Pod
from pumice.api.times import epoch
from pumice.cache.identity import key_of
from pumice.cache.job_rows import JobRows
from pumice.cache.pod_cells import PodCells, PodReader
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE

_SHARED = (
    "containers",
    "init_containers",
    "resources",
    "overhead",
    "node_selector",
    "affinity",
    "tolerations",
    "topology_spread_constraints",
)
"""Parts of a pod's specification that are equal within a shape."""

_settled = attrgetter(
    *_SHARED,
    "scheduler_name",
    "priority",
    "priority_class_name",
    "preemption_policy",
    "volumes",
    "resource_claims",
    "host_network",
)
"""Parts of a pod's specification that must be as before for its row to stay as it is."""

_PHASE_STATUS = {"Succeeded": Status.SUCCEEDED, "Failed": Status.FAILED, "Unknown": Status.UNKNOWN}
_ON_NODE = frozenset(
    int(s) for s in (Status.BOUND, Status.RUNNING, Status.RELEASING, Status.UNKNOWN)
)
_HOLDS = frozenset({int(Status.BOUND), int(Status.RUNNING)})
_STEP = {
    int(Status.PENDING): "wait",
    int(Status.BOUND): "hold",
    int(Status.RUNNING): "hold",
    int(Status.RELEASING): "leave",
}
"""The status of a task that was found; others count on their node only."""


class TaskRows:
    """Keeps tasks, and what nodes and jobs count of them, in step with pods."""

    def __init__(self, snapshot: Snapshot, jobs: JobRows, scheduler_names: Iterable[str]) -> None:
        self.snapshot = snapshot
        self._jobs = jobs
        self._scheduler_names = frozenset(scheduler_names)
        self._reader = PodReader(snapshot)
        self._marks: dict[frozenset[tuple[str, str]], dict[str, str]] = {}
        self.counts_later = False
        """Whether books and sums are left to one sweep at the end."""
        self.rounded = False
        """Whether a task was removed that was too large for exact sums."""
        self._homeless: dict[str, set[int]] = {}
        self._waits: dict[int, str] = {}
        """Tasks whose node is not known yet, by its name, and that name."""
        self._nominees: dict[int, str] = {}
        """Tasks with a nominated node, by its name: the node may appear, disappear and move."""

    @property
    def n_marks(self) -> int:
        """How many sets of annotations are kept."""
        return len(self._marks)

    def read(self, pod: Pod) -> PodCells | None:
        """Read a pod, unless it only moved or does not count.

        Every possible fault of a pod shows here, before any row is touched.
        """
        if not self._counts(pod):
            return None
        row = self.snapshot.tasks.row_of.get(key_of(pod))
        if row is not None and self._only_moved(row, pod):
            return None
        return self._reader.read(pod)

    def write(self, pod: Pod, marks: PodCells | None) -> None:
        """Add a pod or replace it, with what was read of it."""
        key, tasks = key_of(pod), self.snapshot.tasks
        row = tasks.row_of.get(key)
        if marks is None:
            if row is not None and self._counts(pod):
                self._move(row, pod)
            else:
                self.delete(key)
            return
        if row is None:
            row = tasks.row_of[key] = tasks.new_row()
        else:
            self._take_out(row)
        tasks.keys[row] = key
        tasks.uids[row] = pod.metadata.uid or key
        tasks.pods[row] = pod
        self._set_marks(row, marks)
        if pod.status.nominated_node_name:
            self._nominees[row] = pod.status.nominated_node_name
        ours = pod.spec.scheduler_name in self._scheduler_names
        job = self._job_key(pod) if ours else ""
        tasks.job[row] = self._jobs.row(job) if job else NOWHERE
        tasks.status[row] = _status(pod)
        self._settle_in(row, pod.spec.node_name)
        self.share(row, pod)

    def _counts(self, pod: Pod) -> bool:
        """Return whether a pod is one of ours or on a node."""
        spec = pod.spec
        return spec.scheduler_name in self._scheduler_names or bool(spec.node_name)

    def _job_key(self, pod: Pod) -> str:
        """Name the job of a pod, or nothing if it has none."""
        group = pod.metadata.annotations.get(GROUP_NAME, "")
        return f"{pod.metadata.namespace}/{group}" if group else ""

    def _only_moved(self, row: int, pod: Pod) -> bool:
        """Return whether a pod is known and differs in its node and its status at most."""
        known = self.snapshot.tasks.pods[row]
        if not isinstance(known, Pod) or self.counts_later:
            return False
        meta, old = pod.metadata, known.metadata
        if meta.uid != old.uid or meta.labels != old.labels or meta.annotations != old.annotations:
            return False
        spec, like = pod.spec, known.spec
        return spec is like or bool(_settled(spec) == _settled(like))

    def _move(self, row: int, pod: Pod) -> None:
        """Replace a pod that only moved; counts that stay are left alone."""
        snapshot = self.snapshot
        tasks, node_name = snapshot.tasks, pod.spec.node_name
        status, node, new = int(tasks.status[row]), int(tasks.node[row]), _status(pod)
        stays = node != NOWHERE and snapshot.nodes.names[node] == node_name
        if stays and status in _ON_NODE and new in _ON_NODE:
            self._change_status(row, status, int(new))
            self._nominees.pop(row, None)
            tasks.nominated[row] = NOWHERE
        else:
            job = int(tasks.job[row])
            self._take_out(row)
            if job != NOWHERE:  # may be forgotten with its last task
                tasks.job[row] = self._jobs.row(self._job_key(pod))
            tasks.status[row] = new
            self._settle_in(row, node_name)
        known = tasks.pods[row]
        tasks.pods[row] = pod
        tasks.gated[row] = bool(pod.spec.scheduling_gates)
        tasks.started[row] = epoch(pod.status.start_time) if pod.status.start_time else np.nan
        if pod.status.nominated_node_name:
            self._nominees[row] = pod.status.nominated_node_name
        assert isinstance(known, Pod)  # noqa: S101  # else it would not be one that only moved
        self._share_with(row, pod, known)

    def _change_status(self, row: int, old: int, new: int) -> None:
        """Change the status of a task that stays on its node, and what it counts as there."""
        snapshot = self.snapshot
        tasks, jobs, nodes = snapshot.tasks, snapshot.jobs, snapshot.nodes
        tasks.status[row] = new
        job = int(tasks.job[row])
        if job != NOWHERE and old != new:
            jobs.counts[old, job] -= 1
            jobs.counts[new, job] += 1
        if old in _HOLDS and new in _HOLDS:
            return
        self._put_last(nodes.tasks[tasks.node[row]], row)
        if job != NOWHERE:
            self._put_last(jobs.tasks[job], row)
        before, after = _STEP.get(old, "stray"), _STEP.get(new, "stray")
        shape = snapshot.shapes[tasks.shape[row]]
        self.rounded |= shape.coarse
        if before != after:
            books, sums = shape.change(before, after)
            nodes.books[:, :, tasks.node[row]] += books
            if job != NOWHERE:
                snapshot.add_to_sums(job, sums)

    def _put_last(self, rows: list[int], row: int) -> None:
        rows.remove(row)
        rows.append(row)

    def _share_with(self, row: int, pod: Pod, known: Pod) -> None:
        """Share the parts of a pod that only moved with the one that it replaces."""
        if pod.metadata is not known.metadata:
            for name in ("annotations", "labels", "namespace"):
                force_setattr(pod.metadata, name, getattr(known.metadata, name))
        if pod.spec is not known.spec:
            for name in _SHARED:
                force_setattr(pod.spec, name, getattr(known.spec, name))
            self._share_node(row, pod)

    def share(self, row: int, pod: Pod) -> None:
        """Make equal parts of equal pods one object: 100,000 pods are a few dozen shapes."""
        tasks = self.snapshot.tasks
        like = self.snapshot.shapes[tasks.shape[row]].spec
        namespace, labels = self.snapshot.label_classes[tasks.label_class[row]]
        if pod.spec.containers is not like.containers:  # else it was shared before
            for name in _SHARED:
                force_setattr(pod.spec, name, getattr(like, name))
        marks = pod.metadata.annotations
        marks = self._marks.setdefault(frozenset(marks.items()), marks)
        force_setattr(pod.metadata, "annotations", marks)
        force_setattr(pod.metadata, "labels", labels)
        force_setattr(pod.metadata, "namespace", namespace)
        self._share_node(row, pod)

    def _share_node(self, row: int, pod: Pod) -> None:
        node = self.snapshot.tasks.node[row]
        if node != NOWHERE:
            force_setattr(pod.spec, "node_name", self.snapshot.nodes.names[node])

    def _set_marks(self, row: int, marks: PodCells) -> None:
        tasks = self.snapshot.tasks
        tasks.shape[row] = marks.shape
        tasks.best_effort[row] = marks.best_effort
        tasks.label_class[row] = marks.label_class
        tasks.priority[row] = marks.priority
        tasks.preemptable[row] = marks.preemptable
        tasks.role[row] = marks.role
        tasks.gated[row] = marks.gated
        tasks.opted_in[row] = marks.opted_in
        tasks.created[row] = marks.created
        tasks.started[row] = marks.started
        tasks.index[row] = marks.number

    def link_nominees(self) -> None:
        """Find the rows of nominated nodes."""
        tasks, row_of = self.snapshot.tasks, self.snapshot.nodes.row_of
        for row, name in self._nominees.items():
            tasks.nominated[row] = row_of.get(name, NOWHERE)

    def _settle_in(self, row: int, node_name: str) -> None:
        tasks = self.snapshot.tasks
        if node_name and int(tasks.status[row]) in _ON_NODE:
            node = self.snapshot.nodes.row_of.get(node_name)
            if node is None:
                self.wait_for_node(row, node_name)
            else:
                tasks.node[row] = node
                self.count_on_node(row, node, 1)
        job = int(tasks.job[row])
        if job != NOWHERE:
            self.snapshot.jobs.tasks[job].append(row)
            self._count_in_job(row, job, 1)

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
            self._take_out(row)
            self.snapshot.tasks.clear_row(row)

    def promise_no_more(self, rows: Iterable[int]) -> None:
        """Forget the nodes that tasks were nominated for."""
        for row in rows:
            self._nominees.pop(row, None)

    def forget_job_if_empty(self, job: int) -> None:
        """Free the row of a job that has neither group nor pods."""
        self._jobs.forget_if_empty(job)

    def _take_out(self, row: int) -> None:
        """Undo everything that others count of a task."""
        tasks = self.snapshot.tasks
        node, job = int(tasks.node[row]), int(tasks.job[row])
        self.rounded |= self.snapshot.shapes[tasks.shape[row]].coarse
        if node != NOWHERE:
            self.count_on_node(row, node, -1)
        self._nominees.pop(row, None)
        self._wait_no_more(row)
        if job != NOWHERE:
            self._count_in_job(row, job, -1)
            self.snapshot.jobs.tasks[job].remove(row)
            self._jobs.forget_if_empty(job)
        tasks.node[row] = tasks.nominated[row] = NOWHERE

    def count_on_node(self, task: int, node: int, sign: int) -> None:
        """Add a task to the books of its node, or remove it."""
        nodes, tasks = self.snapshot.nodes, self.snapshot.tasks
        tasks.in_view[task] = sign > 0
        if sign > 0:
            nodes.tasks[node].append(task)
        else:
            nodes.tasks[node].remove(task)
        if self.counts_later:
            return
        shape = self.snapshot.shapes[tasks.shape[task]]
        books, _ = shape.step(_STEP.get(int(tasks.status[task]), "stray"), sign, live=True)
        nodes.books[:, :, node] += books
        nodes.view_pods[node] += sign
        nodes.view_nonzero[:, node] += sign * shape.nonzero[:, 0]

    def _count_in_job(self, task: int, job: int, sign: int) -> None:
        if self.counts_later:
            return
        snapshot = self.snapshot
        jobs, status = snapshot.jobs, int(snapshot.tasks.status[task])
        jobs.counts[status, job] += sign
        jobs.n_tasks[job] += sign
        step = _STEP.get(status)
        if step is None:
            return
        _, sums = snapshot.shapes[snapshot.tasks.shape[task]].step(step, sign, live=True)
        snapshot.add_to_sums(job, sums)
        if step == "wait" and snapshot.tasks.best_effort[task]:
            jobs.n_pending_best_effort[job] += sign


def _status(pod: Pod) -> Status:
    phase = pod.status.phase
    if phase in _PHASE_STATUS:
        return _PHASE_STATUS[phase]
    if pod.metadata.deletion_timestamp:
        return Status.RELEASING
    if phase == "Running":
        return Status.RUNNING
    return Status.BOUND if pod.spec.node_name else Status.PENDING
