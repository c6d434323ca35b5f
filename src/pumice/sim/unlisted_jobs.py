"""Jobs that start without a session and run to their end without rows in the tables.

Sessions see them as sums: on their nodes, in their queue and in their namespace.  That is enough
for plugins that declare ``starts_alone``, and a fraction of the cost of rows.
"""

import itertools

import msgspec

from pumice.api.annotations import GROUP_NAME
from pumice.cache.ingest import Ingest
from pumice.core.views import Task
from pumice.sim.job_classes import JobClass
from pumice.sim.job_run import JobRun
from pumice.sim.placeholders import RUNNING, STARTED, Placeholders, Share

_MOST_SAMPLES = 256
"""Classes of jobs that may have a sample before those without running jobs lose theirs."""


class _Kind:
    """What jobs of one class have in common."""

    def __init__(self, kind: JobClass, task: Task) -> None:
        self.task = task
        """A pod like theirs that belongs to no job."""
        self.n_running = 0
        held = kind.size * task.shape.step("hold", 1, live=True)[1]
        self.share = Share(held, kind.reserve)
        """What a job holds and needs."""


class UnlistedJobs:
    """Starts and ends jobs that have no rows."""

    def __init__(self, ingest: Ingest, placeholders: Placeholders, moved_nodes: list[int]) -> None:
        self._ingest = ingest
        self._snapshot = ingest.snapshot
        self._moved_nodes = moved_nodes
        self._kinds: dict[JobClass, _Kind] = {}
        self._placeholders = placeholders
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

    def start(self, run: JobRun) -> None:
        """Count a job that has started on nodes, until its phase is written."""
        run.phase, run.is_unlisted = "Inqueue", True
        self._count(run, STARTED, 1)

    def write_phase(self, run: JobRun) -> None:
        """Write that a job runs; from now on it reserves nothing."""
        share = self._kinds[run.kind].share
        self._placeholders.settle(run.spec.namespace, run.kind.queue, share)
        run.phase = "Running"

    def end(self, run: JobRun, nodes: list[int]) -> None:
        """Forget a job that has ended on some nodes."""
        self.count_on_nodes(run, nodes, -1)
        self._count(run, STARTED if run.phase == "Inqueue" else RUNNING, -1)
        run.is_unlisted = False

    def _count(self, run: JobRun, state: str, n: int) -> None:
        place = run.spec.namespace, run.kind.queue, state
        self._placeholders.count(n, place, self._kinds[run.kind].share)

    def count_on_nodes(self, run: JobRun, nodes: list[int], n: int) -> None:
        """Count the pods of a job on their nodes (n is 1), or remove them (-1)."""
        kind = self._kinds[run.kind]
        kind.n_running += n
        self._moved_nodes += nodes
        self._snapshot.count_absent_pods(kind.task.shape, nodes, n)
