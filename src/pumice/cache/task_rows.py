"""Rows of tasks: what a pod asks for, where it is, and whose it is."""

import contextlib
from collections.abc import Iterable
from operator import attrgetter

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from pumice.api.annotations import (
    GROUP_NAME,
    NUMA_POLICY,
    PREEMPTABLE,
    REVOCABLE_ZONE,
    STRATEGY_TYPE,
    STRATEGY_WEIGHT,
    TASK_SPEC,
)
from pumice.api.meta import epoch, is_true
from pumice.api.pods import Pod
from pumice.cache.job_rows import JobRows
from pumice.cache.marks import index_of, key_of, time_of
from pumice.cache.requests import learn, pod_nonzero, pod_request, resource_lists
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE

TASK_PRIORITY = "volcano.sh/task-priority"
_SHAPE_ANNOTATIONS = (
    NUMA_POLICY,
    STRATEGY_TYPE,
    STRATEGY_WEIGHT,
    REVOCABLE_ZONE,
    PREEMPTABLE,
)
"""Pod annotations that node hooks look at; pods that differ in them differ in shape."""

_SHARED = (
    "containers",
    "init_containers",
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
    "resources",
    "priority",
    "priority_class_name",
    "preemption_policy",
    "volumes",
    "host_network",
)
"""Parts of a pod's specification that must be as before for its row to stay as it is."""

_PHASE_STATUS = {
    "Succeeded": Status.SUCCEEDED,
    "Failed": Status.FAILED,
    "Unknown": Status.UNKNOWN,
}
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
"""What a task that was found counts as; others count on their node only."""


class TaskRows:
    """Keeps tasks, and what nodes and jobs count of them, in step with pods."""

    def __init__(self, snapshot: Snapshot, jobs: JobRows, scheduler_names: Iterable[str]) -> None:
        self.snapshot = snapshot
        self._jobs = jobs
        self._scheduler_names = frozenset(scheduler_names)
        self._shapes: dict[bytes, int] = {}
        self._label_classes: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
        self._roles: dict[str, int] = {}
        self._marks: dict[frozenset[tuple[str, str]], dict[str, str]] = {}
        self.counts_later = False
        """Whether books and sums are left to one sweep at the end."""
        self.homeless: dict[str, set[int]] = {}
        """Tasks whose node is not known yet, by its name."""
        self._nominees: dict[int, str] = {}
        """Tasks with a nominated node, by its name: the node may come, go and move."""

    @property
    def n_marks(self) -> int:
        """How many sets of annotations are kept."""
        return len(self._marks)

    def upsert(self, pod: Pod) -> None:
        """Add a pod or replace it."""
        key = key_of(pod)
        ours = pod.spec.scheduler_name in self._scheduler_names
        if not ours and not pod.spec.node_name:
            self.delete(key)
            return
        learn(self.snapshot, *resource_lists(pod.spec))
        tasks = self.snapshot.tasks
        row = tasks.row_of.get(key, NOWHERE)
        if row == NOWHERE:
            row = tasks.row_of[key] = tasks.new_row()
        elif self._only_moved(row, pod):
            self._move(row, pod)
            return
        else:
            self._take_out(row)
        tasks.keys[row] = key
        tasks.uids[row] = pod.metadata.uid or key
        tasks.pods[row] = pod
        shape = self._shape(pod)
        tasks.shape[row] = shape
        tasks.best_effort[row] = self.snapshot.shapes[shape].best_effort
        tasks.label_class[row] = self._label_class(pod)
        self._set_marks(row, pod)
        job = self._job_key(pod) if ours else ""
        tasks.job[row] = self._jobs.row(job) if job else NOWHERE
        tasks.status[row] = _status(pod)
        self._settle_in(row, pod.spec.node_name)
        self._share(row, pod)

    def _job_key(self, pod: Pod) -> str:
        """Name the job of a pod, or nothing if it has none."""
        group = pod.metadata.annotations.get(GROUP_NAME, "")
        return f"{pod.metadata.namespace}/{group}" if group else ""

    def _only_moved(self, row: int, pod: Pod) -> bool:
        """Say whether a pod is known and differs in its node and its status at most."""
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
        status, known, new = int(tasks.status[row]), tasks.node[row], _status(pod)
        stays = known != NOWHERE and snapshot.nodes.names[known] == node_name
        if stays and status in _HOLDS and new in _HOLDS:
            job = int(tasks.job[row])
            if job != NOWHERE and status != new:
                snapshot.jobs.counts[status, job] -= 1
                snapshot.jobs.counts[new, job] += 1
            tasks.status[row] = new
            self._nominees.pop(row, None)
            tasks.nominated[row] = NOWHERE
        else:
            job = int(tasks.job[row])
            self._take_out(row)
            if job != NOWHERE:  # may be forgotten with its last task
                tasks.job[row] = self._jobs.row(self._job_key(pod))
            tasks.status[row] = new
            self._settle_in(row, node_name)
        tasks.pods[row] = pod
        tasks.gated[row] = bool(pod.spec.scheduling_gates)
        tasks.started[row] = epoch(pod.status.start_time) if pod.status.start_time else np.nan
        if pod.status.nominated_node_name:
            self._nominees[row] = pod.status.nominated_node_name
        self._share(row, pod)

    def _share(self, row: int, pod: Pod) -> None:
        """Let equal parts of equal pods be one object: 100,000 pods are a few dozen shapes."""
        tasks = self.snapshot.tasks
        like = self.snapshot.shapes[tasks.shape[row]].spec
        namespace, labels = self.snapshot.label_classes[tasks.label_class[row]]
        for name in _SHARED:
            force_setattr(pod.spec, name, getattr(like, name))
        marks = pod.metadata.annotations
        marks = self._marks.setdefault(frozenset(marks.items()), marks)
        force_setattr(pod.metadata, "annotations", marks)
        force_setattr(pod.metadata, "labels", labels)
        force_setattr(pod.metadata, "namespace", namespace)
        if tasks.node[row] != NOWHERE:
            force_setattr(pod.spec, "node_name", self.snapshot.nodes.names[tasks.node[row]])

    def _set_marks(self, row: int, pod: Pod) -> None:
        tasks, marks, labels = self.snapshot.tasks, pod.metadata.annotations, pod.metadata.labels
        priority = 1 if pod.spec.priority is None else pod.spec.priority
        with contextlib.suppress(ValueError):
            priority = int(marks.get(TASK_PRIORITY, priority))
        tasks.priority[row] = priority
        mark = marks.get(PREEMPTABLE, labels.get(PREEMPTABLE))
        tasks.preemptable[row] = mark is None or is_true(mark)
        role = marks.get(TASK_SPEC) or labels.get(TASK_SPEC) or ""
        tasks.role[row] = self._role(role) if role else NOWHERE
        tasks.gated[row] = bool(pod.spec.scheduling_gates)
        tasks.created[row] = time_of(pod.metadata.creation_timestamp)
        tasks.started[row] = epoch(pod.status.start_time) if pod.status.start_time else np.nan
        tasks.index[row] = index_of(pod.metadata.name)
        if pod.status.nominated_node_name:
            self._nominees[row] = pod.status.nominated_node_name

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
                self.homeless.setdefault(node_name, set()).add(row)
            else:
                tasks.node[row] = node
                self.count_on_node(row, node, 1)
        job = int(tasks.job[row])
        if job != NOWHERE:
            self.snapshot.jobs.tasks[job].append(row)
            self._count_in_job(row, job, 1)

    def delete(self, key: str) -> None:
        """Forget a pod."""
        row = self.snapshot.tasks.row_of.pop(key, None)
        if row is not None:
            self._take_out(row)
            self.snapshot.tasks.clear_row(row)

    def _take_out(self, row: int) -> None:
        """Undo all that others count of a task."""
        tasks = self.snapshot.tasks
        node, job = int(tasks.node[row]), int(tasks.job[row])
        if node != NOWHERE:
            self.count_on_node(row, node, -1)
        self._nominees.pop(row, None)
        for waiting in self.homeless.values():
            waiting.discard(row)
        if job != NOWHERE:
            self._count_in_job(row, job, -1)
            self.snapshot.jobs.tasks[job].remove(row)
            self._jobs.forget_if_empty(job)
        tasks.node[row] = tasks.nominated[row] = NOWHERE

    def count_on_node(self, task: int, node: int, sign: int) -> None:
        """Add a task to the books of its node, or take it off."""
        nodes, tasks = self.snapshot.nodes, self.snapshot.tasks
        tasks.in_view[task] = sign > 0
        if sign > 0:
            nodes.tasks[node].append(task)
        else:
            nodes.tasks[node].remove(task)
        if self.counts_later:
            return
        shape = self.snapshot.shapes[tasks.shape[task]]
        books, _ = shape.step(_STEP.get(int(tasks.status[task]), "hold"), sign, live=True)
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

    def _shape(self, pod: Pod) -> int:
        spec, marks = pod.spec, pod.metadata.annotations
        kept = {name: marks[name] for name in _SHAPE_ANNOTATIONS if name in marks}
        # only claims matter; every pod also mounts a token under a name of its own
        claiming = [each for each in spec.volumes if each.persistent_volume_claim or each.ephemeral]
        key = msgspec.json.encode(
            (
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                claiming,
                pod.metadata.namespace,
                kept,
            )
        )
        known = self._shapes.get(key)
        if known is None:
            resources = self.snapshot.resources
            known = self._shapes[key] = len(self.snapshot.shapes)
            self.snapshot.shapes.append(
                Shape(
                    id=known,
                    request=pod_request(spec, resources)[:, None],
                    nonzero=pod_nonzero(spec, resources)[:, None],
                    namespace=pod.metadata.namespace,
                    spec=spec,
                    annotations=kept,
                )
            )
        return known

    def _label_class(self, pod: Pod) -> int:
        labels, namespace = pod.metadata.labels, pod.metadata.namespace
        key = (namespace, frozenset(labels.items()))
        known = self._label_classes.get(key)
        if known is None:
            known = self._label_classes[key] = len(self.snapshot.label_classes)
            self.snapshot.label_classes.append((namespace, labels))
        return known

    def _role(self, name: str) -> int:
        known = self._roles.get(name)
        if known is None:
            known = self._roles[name] = len(self.snapshot.roles)
            self.snapshot.roles.append(name)
        return known


def _status(pod: Pod) -> Status:
    phase = pod.status.phase
    if phase in _PHASE_STATUS:
        return _PHASE_STATUS[phase]
    if pod.metadata.deletion_timestamp:
        return Status.RELEASING
    if phase == "Running":
        return Status.RUNNING
    return Status.BOUND if pod.spec.node_name else Status.PENDING
