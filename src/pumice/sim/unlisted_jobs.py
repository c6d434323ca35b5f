"""Jobs that start without a session and run to their end without rows in the tables.

Sessions see them as sums: on their nodes, in their queue and in their namespace.  That is enough
for the plugins under which they start so, and a fraction of the cost of rows.
"""

import itertools
from collections.abc import Hashable

import msgspec

from pumice.api.annotations import GROUP_NAME
from pumice.cache.ingest import Ingest
from pumice.core.views import Task
from pumice.sim.job_classes import JobClass
from pumice.sim.job_run import JobRun
from pumice.sim.node_states import NodeStates
from pumice.sim.placeholders import RUNNING, STARTED, Placeholders, Share

_MOST_SAMPLES = 256
"""Samples that there may be before those without running jobs are removed."""


class _Sample:
    """A pod that belongs to no job."""

    __slots__ = ("n_running", "task")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.n_running = 0
        """How many jobs of such pods run."""


class _Kind:
    """What jobs of one class have in common."""

    __slots__ = ("sample", "share")

    def __init__(self, kind: JobClass, sample: _Sample) -> None:
        self.sample = sample
        held = kind.size * sample.task.shape.step("hold", 1, live=True)[1]
        self.share = Share(held, kind.reserve)
        """What a job holds and needs."""


class UnlistedJobs:
    """Starts and ends jobs that have no rows."""

    def __init__(self, ingest: Ingest, placeholders: Placeholders, states: NodeStates) -> None:
        self._ingest = ingest
        self._snapshot = ingest.snapshot
        self._states = states
        self._kinds: dict[JobClass, _Kind] = {}
        self._samples: dict[Hashable, _Sample] = {}
        self._placeholders = placeholders
        self._uids = itertools.count()

    def sample(self, run: JobRun) -> Task:
        """Return a waiting pod like those of a job; it belongs to no job."""
        return self._kind(run).sample.task

    def _kind(self, run: JobRun) -> _Kind:
        known = self._kinds.get(run.kind)
        if known is None:
            task = run.spec.tasks[0]
            marks = tuple(task.labels.items()), tuple(task.annotations.items())
            key = run.spec.namespace, id(run.kind.specs[0]), task.role, *marks
            sample = self._samples.get(key)
            if sample is None:
                if len(self._samples) >= _MOST_SAMPLES:
                    self._remove_samples()
                sample = self._samples[key] = _Sample(self._new_sample(run))
            known = self._kinds[run.kind] = _Kind(run.kind, sample)
        return known

    def _remove_samples(self) -> None:
        """Remove the samples of pods of which no job runs."""
        for key, sample in list(self._samples.items()):
            if not sample.n_running:
                self._ingest.delete(sample.task.pod)
                del self._samples[key]
        left = {*self._samples.values()}
        self._kinds = {kind: each for kind, each in self._kinds.items() if each.sample in left}

    def _new_sample(self, run: JobRun) -> Task:
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

    def take_over(self, run: JobRun) -> None:
        """Count a job that runs, and no longer has rows."""
        self._kind(run)
        self.count_on_nodes(run, run.nodes, 1)
        run.is_unlisted = True
        self._count(run, RUNNING, 1)

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
        sample = self._kinds[run.kind].sample
        sample.n_running += n
        self._states.count(sample.task.shape, nodes, n)

    def keep_on_nodes(self, run: JobRun) -> None:
        """Note that the pods of a job, which count on their nodes by now, stay there."""
        self._kinds[run.kind].sample.n_running += 1
