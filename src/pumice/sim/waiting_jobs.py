"""The waiting room: which waiting jobs the next cycle has to look at.

A job that cannot get anything, whatever is decided, is set aside; what it asks for and has
reserved still counts for its queue, so the cycle decides as if it were there.
"""

import numpy as np

from pumice.api.objects import ObjectMeta, PodGroup, PodGroupSpec, PodGroupStatus
from pumice.cache.ingest import Ingest
from pumice.core.resources import Column
from pumice.core.tables import PENDING
from pumice.sim.bounds import ALL, Bounds, Rules
from pumice.sim.job_classes import JobClass, JobClasses
from pumice.sim.job_run import JobRun
from pumice.sim.sim_cluster import SimCluster

NAMESPACE = "pumice-sim"


class Placeholder:
    """A pod group without pods that holds what the absent jobs of one queue ask for."""

    def __init__(self, ingest: Ingest, queue: str) -> None:
        self._ingest = ingest
        self._snapshot = ingest.snapshot
        group = PodGroup(
            metadata=ObjectMeta(name=queue, namespace=NAMESPACE, uid=f"{NAMESPACE}/{queue}"),
            # one member that never comes: the group stays in its queue and is never valid
            spec=PodGroupSpec(min_member=1, queue=queue, min_resources={}),
            status=PodGroupStatus(phase="Inqueue"),
        )
        ingest.upsert(group)
        ingest.settle()
        self._row = self._snapshot.jobs.row_of[f"{NAMESPACE}/{queue}"]
        self.n = 0
        self._snapshot.absent[self._row] = np.zeros((3, len(self._snapshot.resources)))
        self._list()

    def count(self, sign: int, pending: Column | None, reserved: Column | None) -> None:
        """Stand in for one job more, or one less."""
        self.n += sign
        if pending is not None:
            sums = np.zeros((3, len(pending)))
            sums[PENDING] = sign * pending
            self._snapshot.add_to_sums(self._row, sums)
            self._snapshot.absent[self._row] += sums
        if reserved is not None:
            self._snapshot.jobs.min_resources[:, self._row] += sign * reserved
        self._list()

    def _list(self) -> None:
        self._ingest.set_aside(f"{NAMESPACE}/{self._queue}", aside=self.n == 0)

    @property
    def _queue(self) -> str:
        group = self._snapshot.jobs.groups[self._row]
        return group.spec.queue  # type: ignore[attr-defined]


class WaitingJobs:
    """All jobs that wait, by class; before a cycle it calls those in that might get something."""

    def __init__(self, cluster: SimCluster, rules: Rules) -> None:
        self._cluster = cluster
        self._ingest = cluster.ingest
        self._snapshot = cluster.snapshot
        self._rules = rules
        self.book = JobClasses(self._snapshot, self._park)
        self._waiting: dict[int, JobClass] = {}
        """Classes with jobs that wait, by identity, in the order in which they came up."""
        self._partly_running: set[JobRun] = set()
        """Jobs that have started and still have pods without a node."""
        self._stand_ins: dict[str, Placeholder] = {}
        self._bounds: Bounds | None = None
        self._with_new_jobs: set[int] = set()
        """Classes with jobs that no cycle has looked at."""
        self.has_freed_room = True
        """Whether something was given back since the last cycle: only then may a job that was
        refused be luckier."""

    def __len__(self) -> int:
        lines = ((kind.fresh, kind.entered.runs, kind.admitted.runs) for kind in self.classes())
        return len(self._partly_running) + sum(len(line) for three in lines for line in three)

    def __bool__(self) -> bool:
        return bool(self._partly_running) or any(kind.is_waiting for kind in self._waiting.values())

    def classes(self) -> list[JobClass]:
        """List the classes with jobs that wait."""
        return list(self._waiting.values())

    def runs(self) -> list[JobRun]:
        """List the jobs that wait."""
        found = list(self._partly_running)
        for kind in self.classes():
            found += [*kind.fresh, *kind.entered.runs, *kind.admitted.runs]
        return sorted(found)

    def add(self, run: JobRun) -> None:
        """Let a new job wait."""
        kind = run.kind
        self._waiting[id(kind)] = kind
        self._with_new_jobs.add(id(kind))
        kind.hide(run)
        self._stand_in(kind.queue).count(1, kind.asked_early, None)

    def put_back(self, run: JobRun) -> None:
        """Let a job wait that lost pods: in line with those of its phase, or at hand if it runs."""
        if run.line is not None:
            run.line.remove(run)
        if run.running or run.phase not in ("Pending", "Inqueue"):
            self._partly_running.add(run)  # room for one pod is enough
            return
        self._partly_running.discard(run)
        self._waiting[id(run.kind)] = run.kind
        if run.kind.late_pods:
            self._with_new_jobs.add(id(run.kind))  # no cycle has looked at the pods it just got
        (run.kind.admitted if run.phase == "Inqueue" else run.kind.entered).add(run)

    def leave(self, run: JobRun) -> None:
        """Let a job go that waits no more."""
        self._partly_running.discard(run)
        if run.line is not None:
            run.line.remove(run)

    @property
    def is_settled(self) -> bool:
        """Whether another cycle would find nothing to do: nobody waits who might be luckier."""
        steady = self._rules.settles and not self._with_new_jobs
        return steady and all(kind.is_steady for kind in self._waiting.values())

    def prepare(self) -> bool:
        """Choose who takes part in the next cycle; say whether there is anybody."""
        anybody = bool(self._partly_running)
        if self._waiting:
            if self._bounds is not None:
                self._bounds.refresh()
            elif not self._rules.shows_all:
                self._bounds = Bounds(self._snapshot, self.book, self._rules)
            # proportion: what a queue deserves follows from what all queues ask for
            anew = self.has_freed_room or self._rules.quota == "proportion"
            for kind in self.classes():
                if not kind.is_waiting:
                    del self._waiting[id(kind)]
                elif anew or not kind.is_steady or id(kind) in self._with_new_jobs:
                    self._choose(kind, self._bounds)
                    anybody |= kind.admitted.shown > 0 or kind.entered.shown > 0
                else:
                    kind.admitted.show(0)
                    kind.entered.show(0)
        for run in self._cluster.nominated_jobs():
            if run.line is not None and not run.line.shows(run):
                self._cluster.clear_nominations(run)
        self._with_new_jobs.clear()
        self.has_freed_room = not self._rules.settles
        return anybody

    def show_all(self) -> None:
        """Let every job that waits take part."""
        for kind in self.classes():
            self._choose(kind, None)

    def _choose(self, kind: JobClass, bounds: Bounds | None) -> None:
        """Show of one class as many as could start, and as many as could be admitted."""
        if kind.admitted.runs:
            kind.admitted.show(ALL if bounds is None else bounds.startable(kind))
        if not kind.entered.runs and not kind.fresh:
            return
        n = ALL if bounds is None else bounds.admissible(kind)
        while kind.fresh and len(kind.entered.runs) < n:
            run = kind.fresh.pop()
            self._stand_in(kind.queue).count(-1, kind.asked_early, None)
            self._cluster.add_job(run)
            kind.entered.add(run)
        kind.entered.show(n)

    def _park(self, run: JobRun, aside: bool) -> None:  # noqa: FBT001
        """Set a job aside, or call it back; what it reserved is stood in for."""
        if not run.in_tables:
            return
        self._ingest.set_aside(run.key, aside=aside)
        reserved = run.kind.reserve if run.phase == "Inqueue" else None
        self._stand_in(run.kind.queue).count(1 if aside else -1, None, reserved)

    def _stand_in(self, queue: str) -> Placeholder:
        known = self._stand_ins.get(queue)
        if known is None:
            known = self._stand_ins[queue] = Placeholder(self._ingest, queue)
        return known
