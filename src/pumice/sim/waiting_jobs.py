"""Waiting jobs by class, and the classes of which a cycle might give some job something."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from pumice.sim.bounds import UNBOUNDED, Bounds
from pumice.sim.job_classes import Amounts, JobClass, JobClasses
from pumice.sim.job_run import JobRun
from pumice.sim.quiet_cycles import Outlook, QuietCycles
from pumice.sim.sessionless_jobs import WAITING, Share
from pumice.sim.shortcuts import Shortcuts
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

    def __init__(self, kind: JobClass, number: int, set_aside: SetAside) -> None:
        self.kind = kind
        self.number = number
        """Where its class comes in the order of all of them."""
        self.fresh: deque[JobRun] = deque()
        """Not known to the scheduler yet, oldest first."""
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

    @property
    def n_new(self) -> int:
        """How many wait to be admitted."""
        return len(self.entered.runs) + len(self.fresh)

    def oldest_new(self, n: int) -> list[JobRun]:
        """List n that wait to be admitted, oldest first: those that the scheduler knows, if any."""
        entered = self.entered.runs
        if n <= len(entered):
            return entered[:n]
        return sorted([*entered, *islice(self.fresh, n - len(entered))])


class WaitingClasses:
    """All classes with jobs that wait, in the order in which they came up."""

    def __init__(self, set_aside: SetAside) -> None:
        self._set_aside = set_aside
        self._classes: dict[JobClass, WaitingClass] = {}
        self._n_made = 0
        self._unsteady: dict[JobClass, WaitingClass] = {}
        self._emptied: list[WaitingClass] = []
        """Those whose last job left; they keep their place until the next cycle."""
        self._with_admitted: dict[JobClass, WaitingClass] = {}
        """Those with admitted jobs, and some that had any."""
        self._by_reserve: dict[Amounts, dict[JobClass, WaitingClass]] = {}
        """Those whose jobs reserve the same, together."""

    def __iter__(self) -> Iterator[WaitingClass]:
        return iter(self._classes.values())

    def __bool__(self) -> bool:
        return any(self._classes.values())

    @property
    def are_steady(self) -> bool:
        """Whether the jobs of all classes stay without nodes as long as nothing is released."""
        return not self._unsteady

    def of(self, kind: JobClass) -> WaitingClass:
        """Return the jobs of one class that wait."""
        known = self._classes.get(kind)
        if known is None:
            known = self._classes[kind] = WaitingClass(kind, self._n_made, self._set_aside)
            self._n_made += 1
            self._by_reserve.setdefault(kind.reserved_amounts, {})[kind] = known
            if not kind.is_steady:
                self._unsteady[kind] = known
        return known

    def admitted(self, kind: JobClass) -> Line:
        """Return the line of admitted jobs of a class, to add one."""
        waiting = self._with_admitted[kind] = self.of(kind)
        return waiting.admitted

    def note_removal(self, kind: JobClass) -> None:
        """Take note that a job of a class was removed."""
        waiting = self._classes[kind]
        if not waiting:
            self._emptied.append(waiting)

    def forget_empty(self) -> None:
        """Forget classes without jobs."""
        for waiting in self._emptied:
            kind = waiting.kind
            if not waiting and self._classes.get(kind) is waiting:
                del self._classes[kind]
                self._unsteady.pop(kind, None)
                self._with_admitted.pop(kind, None)
                del self._by_reserve[kind.reserved_amounts][kind]
        self._emptied.clear()

    def unsettled(self, new: Iterable[JobClass]) -> Iterable[WaitingClass]:
        """List those that may get something although nothing was released, in their order.

        That are classes with new jobs, and those that do not depend on room alone.
        """
        found = self._unsteady | {k: self._classes[k] for k in new if k in self._classes}
        return sorted(found.values(), key=_number)

    def promising(self, bounds: Bounds) -> Iterable[WaitingClass]:
        """List those of which a job might start or be admitted within bounds, in their order."""
        found = {}
        for kind, waiting in list(self._with_admitted.items()):
            if waiting.admitted.runs:
                found[kind] = waiting
            else:
                del self._with_admitted[kind]
        for reserved, group in self._by_reserve.items():
            if group and bounds.may_admit(reserved):
                found |= group
        return sorted(found.values(), key=_number)


def _number(waiting: WaitingClass) -> int:
    return waiting.number


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
        self.learn(kind)
        self._hold(run, 1)

    def learn(self, kind: JobClass) -> None:
        """Note a class of which there are jobs."""
        self._cluster.learn_amounts(kind)
        if self._quiet is not None:
            self._quiet.learn(kind)

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
        steady = self._shortcuts.settles and not self._with_new_jobs
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
            self.withdraw(run)

    def admit(self, run: JobRun) -> None:
        """Queue a job without rows for nodes: it was admitted without a session."""
        self.withdraw(run)
        run.phase = "Inqueue"
        self._line_up(run, self._waiting.admitted(run.kind))

    def withdraw(self, run: JobRun) -> None:
        """Remove a job that waits and has no rows."""
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
