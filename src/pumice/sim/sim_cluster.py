"""The scheduler's view of a simulation: objects as an API server would hold them, in tables.

Used by the engine.  Decides nothing and has no clock.
"""

import itertools
from collections.abc import Iterable, Mapping

import msgspec

from pumice.api.decisions import Decisions
from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.objects import KubeObject, ObjectMeta, Pod, PodGroup, Queue, QueueSpec, QueueStatus
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.sim.job_classes import JobClass
from pumice.sim.job_run import EPOCH, BoundPods, JobRun, State, nominated, time_text
from pumice.sim.sessionless_jobs import Placeholders, QueueLedger, UnlistedJobs

_ROOT = "root"


class SimCluster:
    """The tables, and the runs whose objects are in them."""

    def __init__(self, epoch: float = EPOCH) -> None:
        self.epoch = epoch
        """Second 0 on the clock of the scheduler, in seconds since 1970."""
        self.snapshot = Snapshot()
        self.ingest = Ingest(self.snapshot)
        self._bound = BoundPods()
        self._uids = itertools.count()
        self._owner: dict[str, tuple[JobRun, int]] = {}
        """Pods that the scheduler knows, by name."""
        self._runs: dict[str, JobRun] = {}
        """Jobs that the scheduler knows, by name."""
        self._nominated: dict[str, str] = {}
        """Waiting pods that were promised a node, with their job."""
        self.has_own_groups = False
        """Whether the cluster brings pod groups that no job of the workload has."""
        self.placeholders = Placeholders(self.ingest)
        self.unlisted = UnlistedJobs(self.ingest, self.placeholders)

    def load(self, cluster: Iterable[KubeObject], queues: Iterable[str]) -> None:
        """Load a cluster; queues without a description get a share like any other."""
        things = [thing for thing in cluster if not isinstance(thing, Pod)]
        self.has_own_groups = any(isinstance(thing, PodGroup) for thing in things)
        known = {thing.metadata.name for thing in things if isinstance(thing, Queue)}
        missing = dict.fromkeys(
            name for name in (_ROOT, DEFAULT_QUEUE, *queues) if name and name not in known
        )
        things += [open_queue(name) for name in missing]
        self.ingest.load([opened(thing) for thing in things])

    def ledger(self) -> QueueLedger | None:
        """Return what all jobs hold, ask for and reserve; None if some have rows."""
        return None if self._runs or self.has_own_groups else self.placeholders.ledger()

    @property
    def has_rows(self) -> bool:
        """Whether some jobs have rows in the tables."""
        return bool(self._runs)

    def learn_amounts(self, kind: JobClass) -> None:
        """Note jobs of a class: from now on sums may be rounded if it asks for very much."""
        if kind.is_coarse:
            self.write_due()
            self.placeholders.is_exact = False

    def settle(self) -> None:
        """Bring links of jobs with rows to other objects up to date; before each cycle."""
        self.ingest.settle()

    def prepare_session(self) -> None:
        """Bring everything in the tables up to date."""
        self.write_due()
        self.settle()

    def write_due(self) -> None:
        """Write what jobs without rows hold and ask for into the tables, before they are read."""
        self.placeholders.write_due()

    def owner(self, pod: str) -> tuple[JobRun, int]:
        """Find the job of a pod, and which of its pods it is."""
        return self._owner[pod]

    def runs_on(self, node: int) -> list[tuple[JobRun, int]]:
        """Find the pods with rows on a node (row)."""
        found = sorted(self._runs.values())
        return [(run, task) for run in found for task, on in enumerate(run.nodes) if on == node]

    def runs_of(self, jobs: Iterable[str]) -> list[JobRun]:
        """Find those of some jobs that the scheduler knows, oldest first."""
        return sorted(self._runs[job] for job in jobs if job in self._runs)

    def add_job(self, run: JobRun) -> None:
        """Show a job to the scheduler for the first time; its pods too, if they exist by now."""
        self.write_group(run)
        self._runs[run.key] = run
        run.in_tables = True
        self.create_missing_pods(run, run.spec.arrival)

    def create_missing_pods(self, run: JobRun, seconds: float) -> None:
        """Create the pods that a job lacks, unless it must be admitted first."""
        if not run.missing:
            return
        if run.kind.late_pods:
            if run.phase == "Pending":
                return
            run.missing.sort()
        made = time_text(self.epoch + seconds)
        for number, pod in run.pods(run.missing, made, self._uids):
            self._owner[f"{run.spec.namespace}/{pod.metadata.name}"] = (run, number)
            self.ingest.upsert(pod)
        run.missing = []

    def write_group(self, run: JobRun) -> None:
        """Write the status of a job."""
        self.ingest.upsert(run.group())

    def run_on(
        self, binds: Mapping[str, str], seconds: float, marks: Mapping[str, dict[str, str]]
    ) -> None:
        """Run pods of one job on their nodes."""
        moment = self.epoch + seconds
        for name, node in binds.items():
            self._nominated.pop(name, None)
            self.ingest.upsert(self._bound.running(self._pod(name), node, moment, marks.get(name)))

    def finish_pods(self, run: JobRun, tasks: Iterable[int]) -> None:
        """Make some pods of a job succeed."""
        for task in tasks:
            self.ingest.upsert(self._bound.finished(self._pod(run.pod_key(task))))
        self.write_group(run)

    def delete_pod(self, run: JobRun, task: int) -> None:
        """Forget a pod."""
        key = run.pod_key(task)
        self._nominated.pop(key, None)
        if self._owner.pop(key, None) is not None:
            self.ingest.delete(self._pod(key))

    def terminate_pod(self, run: JobRun, task: int, seconds: float) -> None:
        """Mark a pod as about to go."""
        pod = self._pod(run.pod_key(task))
        meta = msgspec.structs.replace(
            pod.metadata, deletion_timestamp=time_text(self.epoch + seconds)
        )
        self.ingest.upsert(msgspec.structs.replace(pod, metadata=meta))

    def delete_job(self, run: JobRun) -> None:
        """Forget a job that has rows, and all its pods."""
        for task in range(len(run.states)):
            self.delete_pod(run, task)
        self.ingest.delete(run.group())
        self._runs.pop(run.key, None)
        run.in_tables = False

    def unlist_job(self, run: JobRun) -> None:
        """Remove the rows of a job that waits."""
        self.delete_job(run)
        run.missing = list(range(run.kind.size))

    def unlist_running_job(self, run: JobRun) -> None:
        """Remove the rows of a job that runs: it goes on without them."""
        self.delete_job(run)
        self.unlisted.take_over(run)

    def nominate(self, decisions: Decisions) -> list[tuple[JobRun, int, int]]:
        """Write promises of nodes on pods that wait, and remove those that no longer apply.

        Return the new ones: job, pod and row of the node.
        """
        for pod, job in list(self._nominated.items()):
            if job in decisions.unschedulable and pod not in decisions.pipelined:
                self._clear_nomination(pod)
        new = []
        for name, node in decisions.nominated.items():
            run, task = self._owner[name]
            known = self._pod(name)
            if run.states[task] == State.WAITING and known.status.nominated_node_name != node:
                self.ingest.upsert(nominated(known, node))
                self._nominated[name] = run.key
                new.append((run, task, self.snapshot.nodes.row_of[node]))
        return new

    def nominated_jobs(self) -> list[JobRun]:
        """List the jobs that were promised nodes."""
        return [self._runs[job] for job in dict.fromkeys(self._nominated.values())]

    def clear_nominations(self, run: JobRun) -> None:
        """Remove the nodes promised to a job that no cycle considers any more."""
        for pod, job in list(self._nominated.items()):
            if job == run.key:
                self._clear_nomination(pod)

    def _clear_nomination(self, pod: str) -> None:
        self.ingest.upsert(nominated(self._pod(pod), ""))
        del self._nominated[pod]

    def _pod(self, key: str) -> Pod:
        """Return a pod as the scheduler knows it."""
        tasks = self.snapshot.tasks
        pod = tasks.pods[tasks.row_of[key]]
        assert isinstance(pod, Pod)  # noqa: S101
        return pod


def open_queue(name: str) -> Queue:
    """Make a queue with a share like any other."""
    return Queue(
        metadata=ObjectMeta(name=name),
        spec=QueueSpec(weight=1, reclaimable=name != _ROOT),
        status=QueueStatus(state="Open"),
    )


def opened(thing: KubeObject) -> KubeObject:
    """Open a queue without a state, and place it in the tree, as its controller would."""
    if not isinstance(thing, Queue):
        return thing
    spec, status = thing.spec, thing.status
    if not spec.parent and thing.metadata.name != _ROOT:
        spec = msgspec.structs.replace(spec, parent=_ROOT)
    if not status.state:
        status = QueueStatus(state="Open")
    return Queue(metadata=thing.metadata, spec=spec, status=status)
