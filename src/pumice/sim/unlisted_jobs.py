"""Jobs that start alone and run to their end without rows in the tables.

Sessions see them as sums: on their nodes, in their queue and in their namespace.  That is enough
for plugins that declare ``starts_alone``, and a fraction of the cost of rows.
"""

import itertools

import msgspec
import numpy as np

from pumice.api.annotations import GROUP_NAME
from pumice.api.objects import ObjectMeta, PodGroup, PodGroupSpec, PodGroupStatus
from pumice.cache.ingest import Ingest
from pumice.core.resources import Column
from pumice.core.shapes import Delta
from pumice.core.views import Task
from pumice.sim.job_classes import JobClass
from pumice.sim.job_run import JobRun

_MOST_SAMPLES = 256
"""Classes of jobs that may have a sample before those without running jobs lose theirs."""
_SETTLED = "Completed"
"""The phase of a group without pods, so that no session reports it."""


class _Total:
    """A pod group without pods that holds the sums of jobs of one queue, namespace and phase."""

    def __init__(self, ingest: Ingest, namespace: str, queue: str, phase: str) -> None:
        self._snapshot = ingest.snapshot
        name = f"sum of {queue}, {phase}"  # no object can have this name
        group = PodGroup(
            metadata=ObjectMeta(name=name, namespace=namespace, uid=name),
            spec=PodGroupSpec(min_member=0, queue=queue, min_resources={}),
            status=PodGroupStatus(phase=phase),
        )
        ingest.upsert(group)
        ingest.settle()
        self._row = self._snapshot.jobs.row_of[f"{namespace}/{name}"]
        self._snapshot.absent[self._row] = np.zeros((3, len(self._snapshot.resources)))
        self._n = 0

    def add(self, held: Delta, needed: Column, n: int) -> None:
        """Count a job more (n is 1) or less (-1) that holds and needs these amounts."""
        snapshot, jobs, row = self._snapshot, self._snapshot.jobs, self._row
        self._n += n
        snapshot.add_to_sums(row, held)
        snapshot.absent[row] += held
        jobs.min_resources[:, row] += needed
        jobs.listed[row] = self._n > 0


class _Kind:
    """What jobs of one class have in common."""

    def __init__(self, kind: JobClass, task: Task) -> None:
        self.task = task
        """A pod like theirs that belongs to no job."""
        self.n_running = 0
        held = kind.size * task.shape.step("hold", 1, live=True)[1]
        self.amounts = {1: (held, kind.reserve), -1: (-held, -kind.reserve)}
        """What a job holds and needs, by whether it starts or ends."""


class UnlistedJobs:
    """Starts and ends jobs that have no rows."""

    def __init__(self, ingest: Ingest, moved_nodes: list[int]) -> None:
        self._ingest = ingest
        self._snapshot = ingest.snapshot
        self._moved_nodes = moved_nodes
        self._kinds: dict[JobClass, _Kind] = {}
        self._totals: dict[tuple[str, str, str], _Total] = {}
        self._uids = itertools.count()

    def sample(self, run: JobRun) -> Task:
        """Return a waiting pod like those of a job; it belongs to no job."""
        known = self._kinds.get(run.kind)
        if known is None:
            if len(self._kinds) >= _MOST_SAMPLES:
                self._remove_samples()
            known = self._kinds[run.kind] = _Kind(run.kind, self._sample(run))
        return known.task

    def _remove_samples(self) -> None:
        """Remove the samples of classes of which no job runs."""
        for kind, known in list(self._kinds.items()):
            if not known.n_running:
                self._ingest.delete(known.task.pod)
                del self._kinds[kind]

    def _sample(self, run: JobRun) -> Task:
        (_, pod), tasks = next(run.pods([0], run.created, self._uids)), self._snapshot.tasks
        marks = {key: mark for key, mark in pod.metadata.annotations.items() if key != GROUP_NAME}
        name = f"sample {pod.metadata.uid}"  # no object can have this name
        meta = msgspec.structs.replace(pod.metadata, name=name, annotations=marks)
        self._ingest.upsert(msgspec.structs.replace(pod, metadata=meta))
        return Task(self._snapshot, tasks.row_of[f"{run.spec.namespace}/{name}"])

    def start(self, run: JobRun, nodes: list[int]) -> None:
        """Count a job that was admitted and started, until its phase is written."""
        run.phase, run.is_unlisted = "Inqueue", True
        self._count_on_nodes(run, nodes, 1)
        self._count(run, "Inqueue", 1)

    def write_phase(self, run: JobRun) -> None:
        """Write that a job runs; from now on it reserves nothing."""
        self._count(run, "Inqueue", -1)
        self._count(run, _SETTLED, 1)
        run.phase = "Running"

    def end(self, run: JobRun, nodes: list[int]) -> None:
        """Forget a job that has ended on some nodes."""
        self._count_on_nodes(run, nodes, -1)
        self._count(run, "Inqueue" if run.phase == "Inqueue" else _SETTLED, -1)
        run.is_unlisted = False

    def _count(self, run: JobRun, phase: str, n: int) -> None:
        key = run.spec.namespace, run.kind.queue, phase
        total = self._totals.get(key)
        if total is None:
            total = self._totals[key] = _Total(self._ingest, *key)
        total.add(*self._kinds[run.kind].amounts[n], n)

    def _count_on_nodes(self, run: JobRun, nodes: list[int], n: int) -> None:
        self._kinds[run.kind].n_running += n
        self._moved_nodes += nodes
        self._snapshot.count_absent_pods(self._kinds[run.kind].task.shape, nodes, n)
