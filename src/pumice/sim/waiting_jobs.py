"""Waiting jobs, and those that the next cycle has to consider.

A job that cannot get anything, whatever is decided, is set aside; its request and
reservation still count for its queue, so the cycle decides as if it took part.
"""

from collections.abc import Iterable

from pumice.sim.bounds import UNBOUNDED, Bounds
from pumice.sim.job_classes import JobClass, JobClasses
from pumice.sim.job_run import JobRun
from pumice.sim.placeholders import WAITING, Share
from pumice.sim.quiet_cycles import Outlook, QuietCycles
from pumice.sim.shortcuts import Shortcuts
from pumice.sim.sim_cluster import SimCluster
from pumice.sim.waiting_classes import Line, WaitingClass, WaitingClasses

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
        self._waiting = WaitingClasses(self._set_aside)
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
        """Classes of which jobs take part in the next cycle, and how many: admitted, not yet."""
        self._shown: dict[WaitingClass, None] = {}
        """Classes of which jobs take part at present."""
        self._quiet: QuietCycles | None = None
        if shortcuts.leave_jobs_out and shortcuts.evictions is not None:
            self._quiet = QuietCycles(cluster, self.job_classes, shortcuts, shortcuts.evictions)
        self.has_freed_room = True
        """Whether something was released since the last cycle: only then may a job that was
        refused succeed."""

    def __len__(self) -> int:
        return len(self._partly_running) + sum(map(len, self._waiting))

    def __bool__(self) -> bool:
        return bool(self._partly_running or self._waiting)

    def runs(self) -> list[JobRun]:
        """List the jobs that wait."""
        found = [run for waiting in self._waiting for run in waiting]
        return sorted([*self._partly_running, *found])

    def add(self, run: JobRun) -> None:
        """Add a new job."""
        kind = run.kind
        self._with_new_jobs.add(kind)
        self._waiting.of(kind).fresh.append(run)
        self._cluster.learn_amounts(kind)
        if self._quiet is not None:
            self._quiet.learn(kind)
        self._hold(run, 1)

    def put_back(self, run: JobRun) -> None:
        """Make a job wait that lost pods: with those of its phase, or apart if it runs."""
        self.step_out(run)
        if run.running or run.phase not in ("Pending", "Inqueue"):
            self._partly_running.add(run)  # room for one pod is enough
            return
        self._partly_running.discard(run)
        kind = run.kind
        if kind.late_pods:
            self._with_new_jobs.add(kind)  # no cycle has considered its new pods
        waiting = self._waiting
        is_admitted = run.phase == "Inqueue"
        self._line_up(run, waiting.admitted(kind) if is_admitted else waiting.of(kind).entered)

    def leave(self, run: JobRun) -> None:
        """Remove a job that no longer waits."""
        self._partly_running.discard(run)
        self.step_out(run)

    def step_out(self, run: JobRun) -> None:
        """Remove a job from its line, if any; it takes part from now on."""
        line = self._line_of.pop(run, None)
        if line is not None:
            line.remove(run)
            self._waiting.note_removal(run.kind)

    @property
    def is_settled(self) -> bool:
        """Whether another cycle would find nothing to do: no waiting job might succeed."""
        steady = self._shortcuts.refusals_last and not self._with_new_jobs
        return steady and self._waiting.are_steady

    def plan(self) -> bool:
        """Choose the jobs of the next cycle; return whether there are any."""
        self._planned.clear()
        n_planned = len(self._partly_running)
        self._waiting.forget_empty()
        bounds = self._fresh_bounds() if self._waiting else None
        for waiting in self._candidates(bounds):
            admitted, new = self._count(waiting, bounds)
            if admitted or new:
                self._planned.append((waiting, admitted, new))
                n_planned += admitted + new
        self._with_new_jobs.clear()
        self.has_freed_room = not self._shortcuts.refusals_last
        return n_planned > 0

    def outlook(self) -> Outlook:
        """Return what the jobs that were planned may get at most.

        Where nobody is evicted, those take no part that make no difference.
        """
        quiet = self._quiet
        if quiet is None or self._partly_running:
            return Outlook.ANYTHING
        found = quiet.outlook([(waiting.kind, new > 0) for waiting, _, new in self._planned])
        if found is Outlook.NO_EVICTIONS:
            self._planned = [
                (waiting, quiet.count(waiting.kind, admitted), new)
                for waiting, admitted, new in self._planned
            ]
        return found

    def _candidates(self, bounds: Bounds | None) -> Iterable[WaitingClass]:
        """Return the classes of which the next cycle may give some job something, in order."""
        if self.has_freed_room or (bounds is not None and bounds.follow_demand):
            return self._waiting if bounds is None else self._waiting.promising(bounds)
        return self._waiting.unsettled(self._with_new_jobs)

    def planned_jobs(self) -> tuple[list[JobRun], list[JobRun]] | None:
        """List the jobs of the next cycle, admitted and new ones; None if some run in part."""
        if self._partly_running:
            return None
        admitted: list[JobRun] = []
        new: list[JobRun] = []
        for waiting, n_admitted, n_new in self._planned:
            admitted += waiting.admitted.runs[:n_admitted]
            new += waiting.oldest_new(n_new)
        return admitted, new

    def show(self) -> None:
        """Show the jobs that were planned, and no others."""
        planned = {**dict.fromkeys(self._shown, (0, 0)), **{w: (a, n) for w, a, n in self._planned}}
        for waiting in sorted(planned, key=lambda each: each.number):
            admitted, new = planned[waiting]
            waiting.admitted.show(admitted)
            while waiting.fresh and len(waiting.entered.runs) < new:
                run = waiting.fresh.popleft()
                self._hold(run, -1)
                self._cluster.add_job(run)
                self._line_up(run, waiting.entered)
            waiting.entered.show(new)
        self._shown = dict.fromkeys(waiting for waiting, *_ in self._planned)
        for run in self._cluster.nominated_jobs():
            line = self._line_of.get(run)
            if line is not None and not line.shows(run):
                self._cluster.clear_nominations(run)

    def show_all(self) -> None:
        """Show every waiting job."""
        self._planned = [(waiting, UNBOUNDED, UNBOUNDED) for waiting in self._waiting]
        self.show()

    def hide_all(self) -> None:
        """Keep every job out of the next cycle, which runs without a session."""
        self._planned.clear()
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
        self._line_up(run, self._waiting.admitted(run.kind))

    def _withdraw(self, run: JobRun) -> None:
        """Remove a job that has no rows."""
        line = self._line_of.pop(run, None)
        if line is None:
            self._waiting.of(run.kind).fresh.remove(run)
        else:
            line.withdraw(run)
        self._waiting.note_removal(run.kind)
        self._hold(run, -1)

    def _fresh_bounds(self) -> Bounds | None:
        """Return the bounds of this moment, None if every job has to take part."""
        if self.bounds is not None:
            self.bounds.refresh()
        elif self._shortcuts.leave_jobs_out:
            self.bounds = Bounds(self._cluster, self.job_classes, self._shortcuts)
        return self.bounds

    def _count(self, waiting: WaitingClass, bounds: Bounds | None) -> tuple[int, int]:
        """Return how many of one class could start, and how many could be admitted.

        Which of them do, an unknown order decides: then all take part if one of them does.
        """
        admitted, new = len(waiting.admitted.runs), waiting.n_new
        if bounds is None:
            return admitted, new
        kind = waiting.kind
        most = (
            min(admitted, bounds.startable(kind)) if admitted else 0,
            min(new, bounds.admissible(kind)) if new else 0,
        )
        if self._shortcuts.oldest_first:
            return most
        return admitted if most[0] else 0, new if most[1] else 0

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
