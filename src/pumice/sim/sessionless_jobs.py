"""Jobs without rows in the tables: those that start without a session, and waiting ones set aside.

Sessions see them as sums: on their nodes, in their queue and in their namespace.  That is enough
for the plugins under which they start so, and a fraction of the cost of rows.
"""

import itertools
from collections.abc import Hashable, Mapping
from typing import Final

import msgspec

from pumice.api.annotations import GROUP_NAME
from pumice.api.objects import ObjectMeta, PodGroup, PodGroupSpec, PodGroupStatus
from pumice.cache.ingest import Ingest
from pumice.core.resources import Column
from pumice.core.tables import ALLOCATED, BOOKED, PENDING, Delta, Shape
from pumice.core.views import Task
from pumice.sim.job_classes import Amounts, JobClass, above_zero
from pumice.sim.job_run import JobRun


class QueueAmounts:
    """The sums of one queue (R,)."""

    __slots__ = ("asked", "held", "n_jobs", "reserved")

    def __init__(self, n_resources: int) -> None:
        self.n_jobs = 0
        self.held = [0.0] * n_resources
        self.asked = [0.0] * n_resources
        """What jobs hold, were promised or ask for."""
        self.reserved = [0.0] * n_resources
        """What jobs that wait have reserved; others hold what they need."""


class QueueLedger:
    """The sums of all queues."""

    def __init__(self, n_resources: int) -> None:
        self._queues: dict[str, QueueAmounts] = {}
        self.held = [0.0] * n_resources
        """What all jobs hold (R,)."""
        self.reserved = [0.0] * n_resources
        """What all jobs reserve (R,): those that wait, and those whose phase is to be written."""

    def of(self, queue: str) -> QueueAmounts:
        """Return the sums of a queue."""
        known = self._queues.get(queue)
        if known is None:
            known = self._queues[queue] = QueueAmounts(len(self.held))
        return known

    def busy(self) -> Mapping[str, QueueAmounts]:
        """Return the sums of queues that have jobs."""
        return {queue: sums for queue, sums in self._queues.items() if sums.n_jobs}

    def add_asked(self, queue: str, n: int, amounts: Amounts) -> None:
        """Count n jobs of a queue more, or less, that hold or ask for amounts."""
        sums = self.of(queue)
        sums.n_jobs += n
        _add(sums.asked, n, amounts)

    def add_held(self, queue: str, n: int, amounts: Amounts) -> None:
        """Count what n jobs more, or less, hold."""
        _add(self.held, n, amounts)
        _add(self.of(queue).held, n, amounts)

    def add_reserved(self, queue: str, n: int, amounts: Amounts, *, waits: bool) -> None:
        """Count what n jobs more, or less, reserve, which wait or have started."""
        _add(self.reserved, n, amounts)
        if waits:
            _add(self.of(queue).reserved, n, amounts)


def _add(sums: list[float], n: int, amounts: Amounts) -> None:
    for at, amount in amounts:
        sums[at] += n * amount


WAITING: Final = "waiting"
"""Jobs that wait, in the phase Inqueue: those that do not reserve anything add nothing to it."""
STARTED: Final = "started"
"""Jobs that have started, whose phase is still to be written: they reserve what they need."""
RUNNING: Final = "running"
"""Jobs that run; the group has the phase Completed, so that no session reports it."""
_PHASES = {WAITING: "Inqueue", STARTED: "Inqueue", RUNNING: "Completed"}
Place = tuple[str, str, str]
"""A namespace, a queue and a state of jobs."""


class Share:
    """What one job adds to a placeholder."""

    __slots__ = ("asked", "held", "needed", "reserved", "sums")

    def __init__(self, sums: Delta | None, reserved: Column | None) -> None:
        self.sums = sums
        """What it holds, was promised and asks for (3, R)."""
        self.reserved = reserved
        """What it needs to start (R,)."""
        self.held = () if sums is None else above_zero(sums[ALLOCATED])
        self.asked = () if sums is None else above_zero(sums[BOOKED] + sums[PENDING])
        """What it holds, was promised or asks for."""
        self.needed = () if reserved is None else above_zero(reserved)


class Placeholder:
    """The pod group of jobs of one namespace, queue and state."""

    def __init__(self, ingest: Ingest, namespace: str, queue: str, state: str) -> None:
        self._ingest = ingest
        self._snapshot = ingest.snapshot
        name = f"{state} in {queue}"  # no object can have this name
        # one member that never arrives: a group of waiting jobs is never valid
        spec = PodGroupSpec(min_member=int(state == WAITING), queue=queue, min_resources={})
        ingest.upsert(
            PodGroup(
                metadata=ObjectMeta(name=name, namespace=namespace, uid=name),
                spec=spec,
                status=PodGroupStatus(phase=_PHASES[state]),
            )
        )
        ingest.settle()
        self._key = f"{namespace}/{name}"
        self._row = self._snapshot.jobs.row_of[self._key]
        self._snapshot.absent.jobs.add(self._row)
        ingest.set_aside(self._key, aside=True)
        self._n = 0

    def count(self, n: int, share: Share) -> None:
        """Count n jobs more, or less if n is below zero."""
        if share.sums is not None:
            self._snapshot.add_to_sums(self._row, share.sums * n)
        self._note(n, share.reserved)

    def move_in(self, n: int, share: Share) -> None:
        """Do the same where the sums of queue and namespace stay: another one does the opposite."""
        if share.sums is not None:
            self._snapshot.jobs.sums[:, :, self._row] += share.sums * n
        self._note(n, share.reserved)

    def _note(self, n: int, reserved: Column | None) -> None:
        was_empty = self._n == 0
        self._n += n
        is_empty = self._n == 0
        if is_empty != was_empty:
            self._ingest.set_aside(self._key, aside=is_empty)
        if reserved is not None:
            self._snapshot.jobs.min_resources[:, self._row] += reserved * n


class Placeholders:
    """All of them, made as they are needed.

    Sums that every cycle asks for are in a ledger.  The tables learn of jobs when they are read
    (``write_due``), or at once as soon as sums are not exact: then their order counts.
    """

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest
        self._made: dict[Place, Placeholder] = {}
        self._due: dict[tuple[Placeholder, Share], int] = {}
        """Jobs that the tables do not have yet, or still have."""
        self._ledger: QueueLedger | None = None
        self.is_exact = True
        """Whether sums are exact: all amounts are whole numbers of moderate size."""

    def ledger(self) -> QueueLedger | None:
        """Return what their jobs hold, ask for and reserve; None if sums may be rounded."""
        return self._the_ledger() if self.is_exact else None

    def _the_ledger(self) -> QueueLedger:
        if self._ledger is None:  # all resources are known by now
            self._ledger = QueueLedger(len(self._ingest.snapshot.resources))
        return self._ledger

    def count(self, n: int, place: Place, share: Share) -> None:
        """Count a job more (n is 1) or less (-1) in a namespace, queue and state."""
        self._note(n, self._placeholder(place), share)
        _, queue, state = place
        ledger = self._ledger or self._the_ledger()
        ledger.add_asked(queue, n, share.asked)
        if state != WAITING:
            ledger.add_held(queue, n, share.held)
        if state != RUNNING:
            ledger.add_reserved(queue, n, share.needed, waits=state == WAITING)
        if not self.is_exact:
            self.write_due()

    def settle(self, namespace: str, queue: str, share: Share) -> None:
        """Count a job that has started as one that runs; from now on it reserves nothing."""
        started = self._placeholder((namespace, queue, STARTED))
        running = self._placeholder((namespace, queue, RUNNING))
        if self.is_exact:
            self._note(-1, started, share)
            self._note(1, running, share)
        else:
            started.move_in(-1, share)
            running.move_in(1, share)
        self._the_ledger().add_reserved(queue, -1, share.needed, waits=False)

    def write_due(self) -> None:
        """Write into the tables what they do not have yet."""
        for (placeholder, share), n in self._due.items():
            placeholder.count(n, share)
        self._due.clear()

    def _note(self, n: int, placeholder: Placeholder, share: Share) -> None:
        key = placeholder, share
        now = self._due.pop(key, 0) + n
        if now:
            self._due[key] = now

    def _placeholder(self, place: Place) -> Placeholder:
        known = self._made.get(place)
        if known is None:
            known = self._made[place] = Placeholder(self._ingest, *place)
        return known


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

    def __init__(self, ingest: Ingest, placeholders: Placeholders) -> None:
        self._ingest = ingest
        self._snapshot = ingest.snapshot
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
        self.count_on(sample.task.shape, nodes, n)

    def count_on(self, shape: Shape, nodes: list[int], n: int) -> None:
        """Count a pod of a shape on each of some nodes (n is 1), or remove it (-1)."""
        if nodes:
            self._snapshot.count_absent_pods(shape, nodes, n)

    def keep_on_nodes(self, run: JobRun) -> None:
        """Note that the pods of a job, which count on their nodes by now, stay there."""
        self._kinds[run.kind].sample.n_running += 1
