"""The clock of a simulation: arrivals, completions and cycles, in order, to the end.

Drives the deciding core without an API server in between: objects go straight into the tables, and
decisions are carried out at once.  The same workload, seed and configuration produce the same log.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from time import perf_counter

from pumice.api.conf import SchedulerConf
from pumice.api.decisions import Decisions
from pumice.api.objects import KubeObject
from pumice.framework.arguments import MinimalVictimsArguments, PreemptArguments, arguments_of
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session
from pumice.plugins.extender import UnaskedExtender
from pumice.scheduler import Observer, Scheduler
from pumice.sim.cluster_changes import ClusterChanges
from pumice.sim.direct_cycle import DirectCycle
from pumice.sim.execution import Execution
from pumice.sim.job_run import EPOCH, JobRun, Outcome
from pumice.sim.kept_placing import KeptPlacings
from pumice.sim.options import Evicted
from pumice.sim.quiet_cycles import Outlook
from pumice.sim.shortcuts import Shortcuts
from pumice.sim.sim_cluster import SimCluster
from pumice.sim.waiting_jobs import WaitingJobs
from pumice.sim.workload import Workload


def simulated_scheduler(
    conf: SchedulerConf, *, seed: int = 0, plugins: Mapping[str, type[Plugin]] | None = None
) -> Scheduler:
    """Make a scheduler that asks no outside service; an extender abstains."""
    known: dict[str, type[Plugin]] = {"extender": UnaskedExtender, **(plugins or {})}
    return Scheduler(conf, seed=seed, plugins=known)


_SAME_S = 1e-6
"""Seconds by which sums of equal times may differ: plugins reckon in seconds since 1970."""
_GAP_BY_EVENT = 0.001
"""Seconds between a cycle and one that follows from it, where cycles begin with events."""
_PAUSE_BY_EVENT = 1.0
"""The first pause while time alone may change an answer, where cycles begin with events."""
_LONGEST_PAUSE = 600.0
"""Seconds between cycles, at most, while time alone may change an answer."""
_GIVE_UP_AFTER = 7 * 86400.0
"""Seconds without any event or decision after which the jobs that still wait are given up, also
where a plugin states times for ever, such as windows of each day."""
_STEPS_BETWEEN_REPORTS = 64
"""Events and cycles between two reports of progress."""
_MAX_CYCLES_SINCE_EVENT = 200
"""Cycles in a row between two events, after which evictions count as endless."""
_MAX_ALARMS_SINCE_EVENT = 2000
"""The same where plugins state the times of cycles: 1,000 windows that open and close."""


class Engine:
    """One workload on one cluster under one configuration."""

    def __init__(
        self,
        workload: Workload,
        cluster: Iterable[KubeObject],
        conf: SchedulerConf,
        *,
        seed: int = 0,
        period: float = 1.0,
        evicted: Evicted = "requeue",
        start: float | None = None,
        shortcuts: Shortcuts | None = None,
        scheduler: Scheduler | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.workload = workload
        stated = workload.start if start is None else start
        self.sim_cluster = SimCluster(EPOCH if stated is None else stated)
        self.snapshot = self.sim_cluster.snapshot
        self._period = period
        self._gap = period or _GAP_BY_EVENT
        """The least time between two cycles of which the second follows from the first."""
        self._clock = clock
        self._scheduler = scheduler or simulated_scheduler(conf, seed=seed)
        allowed = shortcuts or Shortcuts.of(conf.actions, self._scheduler.tiers())
        self._shortcuts = _lasting(allowed, conf, workload)
        kept = KeptPlacings(self.snapshot) if self._shortcuts.keep_placing else None
        self._placing = None if kept is None else kept.open
        self.waiting_jobs = WaitingJobs(self.sim_cluster, self._shortcuts)
        self.sim_cluster.load(cluster, (job.queue for job in workload.jobs))
        if self.sim_cluster.has_own_groups:  # they are admitted, and reserve, in sessions only
            kept = None
        self._direct = DirectCycle(self._scheduler, self._shortcuts, kept, self.sim_cluster)
        self.waiting_jobs.job_classes.learn(workload.jobs)
        self._execution = Execution(
            self.sim_cluster,
            self.waiting_jobs,
            evicted,
            self._direct.may_go_on_unlisted,
            grace=workload.grace,
            learned=self._scheduler.learned_seconds(self.snapshot),
        )
        self._changes = ClusterChanges(workload.changes, self.sim_cluster, self._execution)
        self.log, self.cost = self._execution.log, self._execution.cost
        self.runs: list[JobRun] = []
        self._alarm = math.inf
        """When time alone changes a decision next, as plugins state."""
        self._next_cycle: float | None = None
        """When the next cycle runs; None: not before something happens."""
        self._last_cycle = -math.inf
        self._pause = period or _PAUSE_BY_EVENT
        self._last_change = 0.0
        self._cycles_since_event = 0
        """Cycles since the last event."""
        self._failures: dict[str, None] = {}

    # The clock

    def run(self, progress: Callable[[int], None] | None = None) -> Outcome:
        """Run until nothing happens any more; ``progress`` receives how many jobs have ended."""
        start, steps = self._clock(), 0
        while self.step():
            steps += 1
            if progress is not None and not steps % _STEPS_BETWEEN_REPORTS:
                progress(self._execution.n_ended)
        if progress is not None:
            progress(self._execution.n_ended)
        self._explain_waiting()
        self.cost.seconds = self._clock() - start
        end = self.log.end
        return Outcome(
            self.runs, self.log, self.snapshot, end, self.cost, tuple(self._failures),
            self._changes.offered(end),
        )  # fmt: skip

    def step(self) -> bool:
        """Process the next event; False if there is none."""
        event, cycle = self._next_event_time(), self._next_cycle
        if event is not None and (cycle is None or event <= cycle):
            self._execution.now = event
            if self._handle_event():
                self._plan_cycle()
            return True
        if cycle is None:
            return False
        self._execution.now = cycle
        self._cycle()
        return True

    @property
    def now(self) -> float:
        """Seconds since the simulation began."""
        return self._execution.now

    @property
    def decides_next(self) -> bool:
        """Whether the next step is a cycle of the scheduler."""
        event, cycle = self._next_event_time(), self._next_cycle
        return cycle is not None and (event is None or event > cycle)

    def _next_event_time(self) -> float | None:
        at, jobs = len(self.runs), self.workload.jobs
        arrival = jobs[at].arrival if at < len(jobs) else None
        execution = self._execution
        times = (arrival, execution.next_end, execution.next_leave, self._changes.next_at)
        return min((at for at in times if at is not None), default=None)

    def _handle_event(self) -> bool:
        """Process pods of one job that finish, else a change, else an arrival; False if none was.

        The end of a pod that was evicted before is no event: else a policy that evicts and places
        again without end would keep itself going.
        """
        end, now, change = self._execution.next_end, self._execution.now, self._changes.next_at
        leaves = self._execution.next_leave
        if leaves is not None and leaves <= now:
            self._execution.leave()
            if self._cycles_since_event < _MAX_CYCLES_SINCE_EVENT:
                self._plan_cycle()
            return False
        if end is not None and end <= now:
            if not self._execution.finish():
                return False
            self.waiting_jobs.has_freed_room = True
        elif change is not None and change <= now:
            self._changes.carry_out()
        else:
            self._arrive()
        self.cost.events += 1
        self._last_change = now
        self._cycles_since_event = 0
        return True

    def _plan_cycle(self) -> None:
        """Schedule a cycle at the next tick of the scheduler's own clock."""
        self._pause = self._period or _PAUSE_BY_EVENT
        planned = math.inf if self._next_cycle is None else self._next_cycle
        self._next_cycle = min(planned, max(self._tick(self.now), self._last_cycle + self._period))

    def _tick(self, now: float) -> float:
        """Return the next tick of the scheduler from a moment on: that moment if it is one."""
        if not self._period:
            return now
        periods = now / self._period
        if periods.is_integer():
            return max(now, periods * self._period)
        if math.isclose(periods, round(periods), rel_tol=1e-12, abs_tol=1e-6):
            return max(now, round(periods) * self._period)
        return math.ceil(periods) * self._period

    def _moment(self) -> float:
        """Read the clock of the scheduler, in seconds since 1970."""
        return self.sim_cluster.epoch + self.now

    # Events

    def _arrive(self) -> None:
        number = len(self.runs)
        job = self.workload.jobs[number]
        kind = self.waiting_jobs.job_classes.of(job)
        run = JobRun(number, job, kind, self.sim_cluster.epoch)
        self.runs.append(run)
        if self.workload.changes:
            self._changes.runs[run.key] = run
        if any(task.node for task in job.tasks):
            rows, nodes = self.snapshot.nodes.row_of, [job.tasks[at].node for at, _ in kind.places]
            placed = {run.pod_key(i): node for i, node in enumerate(nodes) if node in rows}
            self._execution.arrive_running(run, placed)
        else:
            self._execution.arrive(run)

    # Decisions

    def _cycle(self) -> None:
        """Run one cycle, if it could change anything, and carry it out."""
        now = self._execution.now
        skipped = now > self._last_cycle + 1.5 * self._gap
        self._next_cycle = None
        self._last_cycle = now
        if skipped:
            self._execution.write_outdated_phases()
        if self.sim_cluster.has_rows and self.waiting_jobs:
            self.sim_cluster.settle()
        if not self.waiting_jobs.plan():
            self.waiting_jobs.show()
            if self._shortcuts.count_time:
                self._decide(evicts=True)
            if self._execution.has_outdated_phases:
                self._plan_follow_up(released=True)
                self._execution.write_outdated_phases()
            return
        released = self._execution.has_outdated_phases
        self.cost.cycles += 1
        self._cycles_since_event += 1
        if self._decide_at_least_cost():
            self._last_change = now
            self._pause = self._period or _PAUSE_BY_EVENT
            self._plan_follow_up(released=released)
        elif not self._shortcuts.await_events and now - self._last_change < _GIVE_UP_AFTER:
            self._next_cycle = now + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        if self._alarm < math.inf and self._waits_for_alarms():
            event, due = self._next_event_time(), self._tick(self._alarm)
            if event is not None and abs(event - due) < _SAME_S:
                due = event
            due = max(due, now + self._gap)
            self._next_cycle = due if self._next_cycle is None else min(due, self._next_cycle)

    def _waits_for_alarms(self) -> bool:
        """Return whether a time that plugins state may still change what becomes of jobs."""
        is_recent = self.now - self._last_change < _GIVE_UP_AFTER
        return is_recent and self._cycles_since_event < _MAX_ALARMS_SINCE_EVENT

    def _decide_at_least_cost(self) -> bool:
        """Decide in a session only if it takes one; return whether anything changed."""
        changed = self._decide_directly()
        if changed is not None:
            return changed
        outlook = self.waiting_jobs.outlook()
        if outlook is Outlook.NOTHING:
            return self._execution.pass_over()
        return self._decide(evicts=outlook is Outlook.ANYTHING)

    def _decide_directly(self) -> bool | None:
        """Decide without a session and carry it out; None if it takes one."""
        planned = self.waiting_jobs.planned_jobs()
        if planned is None:
            return None
        start = self._clock()
        decisions = self._direct.decide(*planned, self.waiting_jobs.bounds)
        self.cost.deciding_seconds += self._clock() - start
        return None if decisions is None else self._execution.apply_directly(decisions)

    def _decide(self, *, evicts: bool) -> bool:
        """Decide in a session and carry it out; return whether anything changed."""
        rules = self._shortcuts.evictions
        alarm = _Alarm() if self._shortcuts.alarms else None
        self.waiting_jobs.show()
        self.sim_cluster.prepare_session()
        start = self._clock()
        decisions = self._scheduler.decide(
            self.snapshot,
            self._moment(),
            only_changes=True,
            statuses=False,
            placing=self._placing,
            idle=() if evicts or rules is None else rules.actions,
            observer=alarm,
        )
        self.cost.deciding_seconds += self._clock() - start
        self._failures.update(dict.fromkeys(decisions.failures))
        if alarm is not None:
            self._alarm = alarm.at - self.sim_cluster.epoch
        return self._execution.apply(decisions)

    def _plan_follow_up(self, *, released: bool) -> None:
        """Schedule another cycle if it might find more than this one.

        A job refused because of a reservation that ends with this cycle may succeed.
        """
        self.waiting_jobs.has_freed_room |= released
        if (
            self._cycles_since_event < _MAX_CYCLES_SINCE_EVENT
            and (released or not self.waiting_jobs.is_settled)
            and self.waiting_jobs
        ):
            self._next_cycle = self.now + self._gap

    # The end

    def _explain_waiting(self) -> None:
        """Ask the scheduler about all remaining jobs, and remember the reasons."""
        left = self.waiting_jobs.runs()
        if not left:
            return
        self.waiting_jobs.show_all()
        self.sim_cluster.prepare_session()
        decisions = self._scheduler.decide(self.snapshot, self._moment())
        for run in left:
            reason = decisions.explanations.get(run.key) or run.reason
            if self._cycles_since_event >= _MAX_CYCLES_SINCE_EVENT:
                reason = f"evicted again and again; {reason}" if run.evictions else reason
            run.reason = reason or "never started"


class _Alarm(Observer):
    """Asks plugins at the end of a cycle when they will decide otherwise."""

    at = math.inf

    def decided(self, ssn: Session, decisions: Decisions) -> None:  # noqa: ARG002
        told = (each for each in ssn.plugins if each.simulator is not None)
        times = [each.changes_at(ssn) for each in told]
        self.at = min((at for at in times if at is not None), default=math.inf)


def _lasting(shortcuts: Shortcuts, conf: SchedulerConf, workload: Workload) -> Shortcuts:
    """Return the shortcuts that hold under a configuration, for a workload."""
    if _promises_more(conf):
        waits = shortcuts.await_events and not _remembers_victims(conf)
        shortcuts = replace(shortcuts, evictions=None, await_events=waits)
    if workload.changes or (workload.grace and shortcuts.evicts):
        return shortcuts.of_changing_clusters()
    return shortcuts


def _promises_more(conf: SchedulerConf) -> bool:
    """Return whether nodes are promised, or compared, in ways of which nothing is foretold."""
    preempt = arguments_of(conf.configurations, "preempt", PreemptArguments)
    return preempt.by_dry_run or bool(conf.queue_gates) or _remembers_victims(conf)


def _remembers_victims(conf: SchedulerConf) -> bool:
    """Return whether time alone may allow evictions."""
    arguments = [
        arguments_of(conf.configurations, action, MinimalVictimsArguments)
        for action in ("preempt", "reclaim")
    ]
    return any(each.minimal_victims for each in arguments)
