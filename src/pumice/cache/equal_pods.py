"""Pods of one job that differ only in name: they are added, placed and deleted at once.

Leaves the tables as the rows of tasks do one by one.  The caller vouches that the pods are equal,
so that only the first is read; where sums are not exact they are taken one by one after all.
"""

from collections.abc import Sequence

import numpy as np

from pumice.api.pods import Pod
from pumice.api.times import epoch
from pumice.cache.identity import index_of, key_of
from pumice.cache.task_rows import TaskRows
from pumice.core.status import Status
from pumice.core.tables import NOWHERE

_FEW = 3
"""Fewer pods are faster one by one."""


class EqualPods:
    """Adds, places and deletes equal pods of one job."""

    def __init__(self, tasks: TaskRows) -> None:
        self._rows = tasks
        self._snapshot = tasks.snapshot

    def add(self, pods: Sequence[Pod]) -> None:
        """Add new waiting pods that differ only in name and uid."""
        first, tasks = pods[0], self._snapshot.tasks
        self._write([first])
        like = tasks.row_of[key_of(first)]
        if len(pods) < _FEW or self._snapshot.shapes[tasks.shape[like]].coarse:
            self._write(pods[1:])
            return
        rows: list[int] = []
        for pod in pods[1:]:
            key, row = key_of(pod), tasks.new_row()
            tasks.row_of[key] = row
            tasks.keys[row] = key
            tasks.uids[row] = pod.metadata.uid or key
            tasks.pods[row] = pod
            rows.append(row)
        several = np.array(rows, dtype=np.intp)
        tasks.copy_row(like, several)
        tasks.index[several] = [index_of(pod.metadata.name) for pod in pods[1:]]
        job = int(tasks.job[like])
        self._snapshot.jobs.tasks[job] += rows
        self._count_in_job(job, like, len(rows), waiting=1)
        shape, label_class = int(tasks.shape[like]), int(tasks.label_class[like])
        for pod in pods[1:]:
            self._rows.share(pod, shape, label_class)

    def start(self, pods: Sequence[Pod]) -> None:
        """Start waiting pods, each on its node; nothing else about them has changed."""
        self.place(pods, Status.RUNNING)

    def place(self, pods: Sequence[Pod], status: Status) -> None:
        """Put waiting pods, each on its node, where they are bound or run from now on."""
        snapshot, tasks = self._snapshot, self._snapshot.tasks
        rows = [tasks.row_of[key_of(pod)] for pod in pods]
        first = rows[0]
        if len(rows) < _FEW or snapshot.shapes[tasks.shape[first]].coarse:
            self._write(pods)
            return
        several = np.array(rows, dtype=np.intp)
        on = np.array([snapshot.nodes.row_of[pod.spec.node_name] for pod in pods], dtype=np.intp)
        self._rows.promise_no_more(rows)
        tasks.node[several], tasks.nominated[several] = on, NOWHERE
        tasks.status[several], tasks.in_view[several] = status, True
        begun = pods[0].status.start_time
        tasks.started[several] = epoch(begun) if begun else np.nan
        for row, node, pod in zip(rows, on.tolist(), pods, strict=True):
            tasks.pods[row] = pod
            snapshot.nodes.tasks[node].append(row)
        job = int(tasks.job[first])
        listed, moved = snapshot.jobs.tasks[job], set(rows)
        listed[:] = [*(row for row in listed if row not in moved), *rows]
        snapshot.hold(snapshot.shapes[tasks.shape[first]], on.tolist(), 1)
        self._count_in_job(job, first, len(rows), waiting=-1, held=1, status=status)

    def delete(self, keys: Sequence[str]) -> None:
        """Forget pods, all of which run."""
        snapshot, tasks = self._snapshot, self._snapshot.tasks
        several = np.array([tasks.row_of[key] for key in keys], dtype=np.intp)
        rows, first = several.tolist(), int(several[0])
        alike = (tasks.shape[several] == tasks.shape[first]) & (
            tasks.status[several] == Status.RUNNING
        )
        coarse = snapshot.shapes[tasks.shape[first]].coarse
        if len(keys) < _FEW or coarse or not alike.all():
            for key in keys:
                self._rows.delete(key)
            return
        for key in keys:
            del tasks.row_of[key]
        on, job = tasks.node[several].astype(np.intp), int(tasks.job[first])
        for row, node in zip(rows, on.tolist(), strict=True):
            snapshot.nodes.tasks[node].remove(row)
        gone, listed = set(rows), snapshot.jobs.tasks[job]
        listed[:] = [row for row in listed if row not in gone]
        snapshot.hold(snapshot.shapes[tasks.shape[first]], on.tolist(), -1)
        self._count_in_job(job, first, len(rows), held=-1)
        self._rows.forget_job_if_empty(job)
        tasks.clear_rows(several)

    def _write(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            row = self._rows.moved_row(pod)
            if row is None:
                self._rows.write(pod, self._rows.read(pod))
            else:
                self._rows.move(row, pod)

    def _count_in_job(
        self,
        job: int,
        like: int,
        n: int,
        *,
        waiting: int = 0,
        held: int = 0,
        status: Status = Status.RUNNING,
    ) -> None:
        """Count n pods like the given one (row) that begin (+1) or cease (-1) to wait.

        The same for those that begin or cease to hold their place, with the status given.
        """
        snapshot = self._snapshot
        jobs, shape = snapshot.jobs, snapshot.shapes[snapshot.tasks.shape[like]]
        jobs.counts[Status.PENDING, job] += waiting * n
        jobs.counts[status, job] += held * n
        jobs.n_tasks[job] += (waiting + held) * n
        sums = waiting * shape.step("wait", 1, live=True)[1]
        snapshot.add_to_sums(job, n * (sums + held * shape.step("hold", 1, live=True)[1]))
        if snapshot.tasks.best_effort[like]:
            jobs.n_pending_best_effort[job] += waiting * n
