"""Waiting jobs, and those that the next cycle has to consider.

A job that cannot get anything, whatever is decided, is set aside; its request and
reservation still count for its queue, so the cycle decides as if it took part.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

from pumice.sim.bounds import UNBOUNDED, Bounds, Shortcuts
from pumice.sim.job_classes import JobClass, JobClasses
from pumice.sim.job_run import JobRun
from pumice.sim.placeholders import WAITING, Share
from pumice.sim.sim_cluster import SimCluster

SetAside = Callable[[JobRun, bool], None]
"""Sets a job aside (True), or calls it back (False)."""


class Line:
    """Jobs of one class in the same phase, oldest first; only the first ``shown`` take part."""

    def __init__(self, set_aside: SetAside) -> None:
        self.runs: list[JobRun] = []
        self.shown = 0
        self._set_aside = set_aside

    def add(self, run: JobRun) -> None:
        """Add a job at its place."""
        at = bisect_left(self.runs, run)
        self.runs.insert(at, run)
        if at < self.shown:
            self.shown += 1
        else:
            self._set_aside(run, True)  # noqa: FBT003

    def remove(self, run: JobRun) -> None:
        """Remove a job; it takes part from now on."""
        at = bisect_left(self.runs, run)
        del self.runs[at]
        if at < self.shown:
            self.shown -= 1
        else:
            self._set_aside(run, False)  # noqa: FBT003

    def withdraw(self, run: JobRun) -> None:
        """Remove a job that does not take part."""
        del self.runs[bisect_left(self.runs, run)]

    def shows(self, run: JobRun) -> bool:
        """Return whether one of its jobs takes part."""
        return bisect_left(self.runs, run) < self.shown

    def show(self, n: int) -> None:
        """Show the first n and no others."""
        n = min(n, len(self.runs))
        for run in self.runs[self.shown : n]:
            self._set_aside(run, False)  # noqa: FBT003
        for run in self.runs[n : self.shown]:
            self._set_aside(run, True)  # noqa: FBT003
        self.shown = n


class WaitingClass:
    """The jobs of one class that wait, by phase."""

    def __init__(self, kind: JobClass, set_aside: SetAside) -> None:
        self.kind = kind
        self.fresh: list[JobRun] = []
        """Not known to the scheduler yet, newest first."""
        self.entered = Line(set_aside)
        """Waiting to be admitted, and known to the scheduler."""
        self.admitted = Line(set_aside)
        """Admitted, and waiting for nodes."""

    def __len__(self) -> int:
        return len(self.fresh) + len(self.entered.runs) + len(self.admitted.runs)

    def __iter__(self) -> Iterator[JobRun]:
        yield from self.fresh
        yield from self.entered.runs
        yield from self.admitted.runs

    def hide(self, run: JobRun) -> None:
        """Make a job wait unseen."""
        insort(self.fresh, run, key=lambda each: -each.number)


_NAMESPACE = "pumice-sim"
"""Where jobs count that wait without taking part."""


class WaitingJobs:
    """All jobs that wait, by class; before a cycle it shows those that might get something."""

    def __init__(self, cluster: SimCluster, shortcuts: Shortcuts) -> None:
        self._cluster = cluster
        self._ingest = cluster.ingest
        self._snapshot = cluster.snapshot
        self._placeholders = cluster.placeholders
        self._shortcuts = shortcuts
        self.job_classes = JobClasses(self._snapshot)
        self._waiting: dict[JobClass, WaitingClass] = {}
        """Classes with jobs that wait, in the order in which they came up."""
        self._line_of: dict[JobRun, Line] = {}
        """Where each job waits that is known to the scheduler and has not started."""
        self._partly_running: set[JobRun] = set()
        """Jobs that have started and still have pods without a node."""
        self._shares: dict[tuple[JobClass, bool, bool], Share] = {}
        """What a job counts that takes no part, by whether it has rows and whether it reserves."""
        self.bounds: Bounds | None = None
        """Those of the last cycle, None if every job takes part in every cycle."""
        self._with_new_jobs: set[JobClass] = set()
        """Classes with jobs that no cycle has considered."""
        self._planned: list[tuple[WaitingClass, int, int]] = []
        """How many jobs of each class take part in the next cycle: admitted, and not yet."""
        self.has_freed_room = True
        """Whether something was released since the last cycle: only then may a job that was
        refused succeed."""

    def __len__(self) -> int:
        return len(self._partly_running) + sum(len(waiting) for waiting in self._waiting.values())

    def __bool__(self) -> bool:
        return bool(self._partly_running) or any(self._waiting.values())

    def runs(self) -> list[JobRun]:
        """List the jobs that wait."""
        found = [run for waiting in self._waiting.values() for run in waiting]
        return sorted([*self._partly_running, *found])

    def add(self, run: JobRun) -> None:
        """Add a new job."""
        kind = run.kind
        self._with_new_jobs.add(kind)
        self._waiting_class(kind).hide(run)
        self._cluster.learn_amounts(kind)
        self._hold(run, 1)

    def put_back(self, run: JobRun) -> None:
        """Make a job wait that lost pods: with those of its phase, or apart if it runs."""
        self.step_out(run)
        if run.running or run.phase not in ("Pending", "Inqueue"):
            self._partly_running.add(run)  # room for one pod is enough
            return
        self._partly_running.discard(run)
        if run.kind.late_pods:
            self._with_new_jobs.add(run.kind)  # no cycle has considered its new pods
        waiting = self._waiting_class(run.kind)
        self._line_up(run, waiting.admitted if run.phase == "Inqueue" else waiting.entered)

    def leave(self, run: JobRun) -> None:
        """Remove a job that no longer waits."""
        self._partly_running.discard(run)
        self.step_out(run)

    def step_out(self, run: JobRun) -> None:
        """Remove a job from its line, if any; it takes part from now on."""
        line = self._line_of.pop(run, None)
        if line is not None:
            line.remove(run)

    @property
    def is_settled(self) -> bool:
        """Whether another cycle would find nothing to do: no waiting job might succeed."""
        steady = self._shortcuts.refusals_last and not self._with_new_jobs
        return steady and all(kind.is_steady for kind in self._waiting)

    def plan(self) -> bool:
        """Choose the jobs of the next cycle; return whether there are any."""
        self._planned.clear()
        n_planned = len(self._partly_running)
        if self._waiting:
            bounds = self._fresh_bounds()
            anew = self.has_freed_room or (bounds is not None and bounds.follow_demand)
            for kind, waiting in list(self._waiting.items()):
                if not waiting:
                    del self._waiting[kind]
                    continue
                admitted = new = 0
                if anew or not kind.is_steady or kind in self._with_new_jobs:
                    admitted, new = self._count(waiting, bounds)
                self._planned.append((waiting, admitted, new))
                n_planned += admitted + new
        self._with_new_jobs.clear()
        self.has_freed_room = not self._shortcuts.refusals_last
        return n_planned > 0

    def planned_jobs(self) -> tuple[list[JobRun], list[JobRun]] | None:
        """List the jobs of the next cycle, admitted and new ones; None if some run in part."""
        if self._partly_running:
            return None
        admitted: list[JobRun] = []
        new: list[JobRun] = []
        for waiting, n_admitted, n_new in self._planned:
            admitted += waiting.admitted.runs[:n_admitted]
            if n_new:
                entered, more = waiting.entered.runs, n_new - len(waiting.entered.runs)
                unseen = waiting.fresh[: -more - 1 : -1] if more > 0 else []
                new += sorted([*entered, *unseen])[:n_new]
        return admitted, new

    def show(self) -> None:
        """Show the jobs that were planned, and no others."""
        for waiting, admitted, new in self._planned:
            waiting.admitted.show(admitted)
            while waiting.fresh and len(waiting.entered.runs) < new:
                run = waiting.fresh.pop()
                self._hold(run, -1)
                self._cluster.add_job(run)
                self._line_up(run, waiting.entered)
            waiting.entered.show(new)
        for run in self._cluster.nominated_jobs():
            line = self._line_of.get(run)
            if line is not None and not line.shows(run):
                self._cluster.clear_nominations(run)

    def show_all(self) -> None:
        """Show every waiting job."""
        self._planned = [(waiting, UNBOUNDED, UNBOUNDED) for waiting in self._waiting.values()]
        self.show()

    def hide_all(self) -> None:
        """Keep every job out of the next cycle, which runs without a session."""
        if self._cluster.has_rows:
            self._planned = [(waiting, 0, 0) for waiting, *_ in self._planned]
            self.show()

    def start(self, run: JobRun) -> None:
        """Remove a job that starts without a session; none takes part."""
        if run.in_tables:
            self.leave(run)
            self._cluster.unlist_job(run)
        else:
            self._withdraw(run)

    def admit(self, run: JobRun) -> None:
        """Queue a job without rows for nodes: it was admitted without a session."""
        self._withdraw(run)
        run.phase = "Inqueue"
        self._line_up(run, self._waiting_class(run.kind).admitted)

    def _withdraw(self, run: JobRun) -> None:
        """Remove a job that has no rows."""
        line = self._line_of.pop(run, None)
        if line is None:
            self._waiting[run.kind].fresh.remove(run)
        else:
            line.withdraw(run)
        self._hold(run, -1)

    def _fresh_bounds(self) -> Bounds | None:
        """Return the bounds of this moment, None if every job has to take part."""
        if self.bounds is not None:
            self.bounds.refresh()
        elif self._shortcuts.leave_jobs_out:
            self.bounds = Bounds(self._cluster, self.job_classes, self._shortcuts)
        return self.bounds

    def _count(self, waiting: WaitingClass, bounds: Bounds | None) -> tuple[int, int]:
        """Return how many of one class could start, and how many could be admitted."""
        admitted, new = len(waiting.admitted.runs), len(waiting.entered.runs) + len(waiting.fresh)
        if bounds is None:
            return admitted, new
        kind = waiting.kind
        return (
            min(admitted, bounds.startable(kind)) if admitted else 0,
            min(new, bounds.admissible(kind)) if new else 0,
        )

    def _line_up(self, run: JobRun, line: Line) -> None:
        line.add(run)
        self._line_of[run] = line

    def _set_aside(self, run: JobRun, aside: bool) -> None:  # noqa: FBT001
        """Set a job aside, or call it back; one that has no rows gets them then."""
        self._hold(run, 1 if aside else -1)
        if run.in_tables:
            self._ingest.set_aside(run.key, aside=aside)
        elif not aside:
            self._cluster.add_job(run)

    def _hold(self, run: JobRun, n: int) -> None:
        """Add what a job that takes no part counts to a placeholder (n is 1), or remove it."""
        kind, has_rows, reserves = run.kind, run.in_tables, run.phase == "Inqueue"
        share = self._shares.get((kind, has_rows, reserves))
        if share is None:
            share = Share(None if has_rows else kind.waits, kind.reserve if reserves else None)
            self._shares[kind, has_rows, reserves] = share
        self._placeholders.count(n, (_NAMESPACE, kind.queue, WAITING), share)

    def _waiting_class(self, kind: JobClass) -> WaitingClass:
        known = self._waiting.get(kind)
        if known is None:
            known = self._waiting[kind] = WaitingClass(kind, self._set_aside)
        return known
