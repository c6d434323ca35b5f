"""The clock of a simulation: arrivals, completions and cycles, in order, to the end.

Drives the deciding core without an API server in between: objects go straight into the tables, and
decisions are carried out at once.  The same workload, seed and configuration produce the same log.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from time import perf_counter

from pumice.api.conf import SchedulerConf
from pumice.api.decisions import Decisions
from pumice.api.objects import KubeObject
from pumice.scheduler import Scheduler
from pumice.sim.bounds import Shortcuts
from pumice.sim.event_log import NONE, EventKind, EventLog
from pumice.sim.job_run import EPOCH, JobRun, State
from pumice.sim.kept_fits import KeptFits
from pumice.sim.lone_start import LoneStart
from pumice.sim.options import Evicted
from pumice.sim.outcome import Outcome, SimulationCost
from pumice.sim.sim_cluster import SimCluster
from pumice.sim.simulated_scheduler import simulated_scheduler
from pumice.sim.waiting_jobs import WaitingJobs
from pumice.sim.workload import Workload

_LONGEST_PAUSE = 600.0
"""Seconds between cycles, at most, while time alone may change an answer."""
_GIVE_UP_AFTER = 7 * 86400.0
"""Seconds without any event or decision after which the jobs that still wait are given up."""
_STEPS_BETWEEN_REPORTS = 64
"""Events and cycles between two reports of progress."""
_MAX_CYCLES_SINCE_EVENT = 200
"""Cycles in a row between two events, after which evictions count as endless."""


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
        self.log = EventLog()
        self.cost = SimulationCost()
        self._period = period
        self._evicted = evicted
        self._clock = clock
        self._scheduler = scheduler or simulated_scheduler(conf, seed=seed)
        self._shortcuts = shortcuts or Shortcuts.of(conf.actions, self._scheduler.tiers())
        kept = KeptFits(self.sim_cluster.moved_nodes) if self._shortcuts.keep_fits else None
        self._placing = None if kept is None else kept.placing
        unlisted = self.sim_cluster.unlisted
        self._lone = LoneStart(self.snapshot, self._scheduler, self._shortcuts, kept, unlisted)
        self.waiting_jobs = WaitingJobs(self.sim_cluster, self._shortcuts)
        self.sim_cluster.load(cluster, (job.queue for job in workload.jobs))
        specs = {id(task.spec): task.spec for job in workload.jobs for task in job.tasks}
        self.waiting_jobs.job_classes.learn(list(specs.values()))
        self.runs: list[JobRun] = []
        self._ends: list[tuple[float, int, JobRun]] = []
        self._n_ends = 0
        self.now = 0.0
        self.n_ended = 0
        """Jobs that have ended."""
        self._next_cycle: float | None = None
        """When the next cycle runs; None: not before something happens."""
        self._last_cycle = -math.inf
        self._pause = period
        self._last_change = 0.0
        self._cycles_since_event = 0
        """Cycles since the last event."""
        self._failures: dict[str, None] = {}
        self._outdated_phases: dict[JobRun, None] = {}
        """Jobs whose pods got nodes in the last cycle: the next one will write that they run."""

    # The clock

    def run(self, progress: Callable[[int], None] | None = None) -> Outcome:
        """Run until nothing happens any more; ``progress`` receives how many jobs have ended."""
        start, steps = self._clock(), 0
        while self.step():
            steps += 1
            if progress is not None and not steps % _STEPS_BETWEEN_REPORTS:
                progress(self.n_ended)
        if progress is not None:
            progress(self.n_ended)
        self._explain_waiting()
        self.cost.seconds = self._clock() - start
        return Outcome(
            self.runs, self.log, self.snapshot, self.log.end, self.cost, tuple(self._failures)
        )

    def step(self) -> bool:
        """Process the next event; False if there is none."""
        event, cycle = self._next_event_time(), self._next_cycle
        if event is not None and (cycle is None or event <= cycle):
            self.now = event
            if self._handle_event():
                self._plan_cycle()
            return True
        if cycle is None:
            return False
        self.now = cycle
        self._cycle()
        return True

    @property
    def decides_next(self) -> bool:
        """Whether the next step is a cycle of the scheduler."""
        event, cycle = self._next_event_time(), self._next_cycle
        return cycle is not None and (event is None or event > cycle)

    def _next_event_time(self) -> float | None:
        at, jobs = len(self.runs), self.workload.jobs
        arrival = jobs[at].arrival if at < len(jobs) else None
        end = self._ends[0][0] if self._ends else None
        if arrival is None or end is None:
            return end if arrival is None else arrival
        return min(arrival, end)

    def _handle_event(self) -> bool:
        """Process one arrival, or first some pods of one job that finish; False if there is none.

        The end of a pod that was evicted before is no event: else a policy that evicts and places
        again without end would keep itself going.
        """
        if self._ends and self._ends[0][0] <= self.now:
            end, _, run = heapq.heappop(self._ends)
            if not self._finish(run, end):
                return False
            self.waiting_jobs.has_freed_room = True
        else:
            self._arrive()
        self.cost.events += 1
        self._last_change = self.now
        self._cycles_since_event = 0
        return True

    def _plan_cycle(self) -> None:
        """Schedule a cycle at the next tick of the scheduler's own clock."""
        self._pause = self._period
        planned = math.inf if self._next_cycle is None else self._next_cycle
        self._next_cycle = min(planned, max(self._tick(), self._last_cycle + self._period))

    def _tick(self) -> float:
        """Return the next tick of the scheduler: the present moment if it is one."""
        periods = self.now / self._period
        if math.isclose(periods, round(periods), rel_tol=1e-12, abs_tol=1e-6):
            return max(self.now, round(periods) * self._period)
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
        self.log.add(self.now, EventKind.ARRIVE, number)
        self.waiting_jobs.add(run)

    def _finish(self, run: JobRun, end: float) -> bool:
        """End the pods of a job whose time has come; False if there are none."""
        tasks = [i for i in run.tasks_in(State.RUNNING) if run.ends[i] == end]
        if not tasks:  # evicted before
            return False
        if run.is_unlisted:  # all its pods end together
            self.sim_cluster.unlisted.end(run, run.nodes)
        for task in tasks:
            run.move(task, State.DONE)
            self.log.add(end, EventKind.FINISH, run.number, task, run.nodes[task])
            run.nodes[task] = NONE
        if run.is_over:
            self._end_job(run)
        else:
            self.sim_cluster.finish_pods(run, tasks)
        return True

    def _end_job(self, run: JobRun) -> None:
        self.waiting_jobs.leave(run)
        run.ended = self.now
        if not run.is_finished:
            run.reason = (
                f"{run.tally[State.LOST]} of its {run.spec.size} pods were lost by evictions"
            )
        self.n_ended += 1
        if run.in_tables:
            self.sim_cluster.delete_job(run)

    # Decisions

    def _cycle(self) -> None:
        """Run one cycle, if it could change anything, and carry it out."""
        skipped = self.now > self._last_cycle + 1.5 * self._period
        self._next_cycle = None
        self._last_cycle = self.now
        if skipped:
            self._write_outdated_phases()
        self.sim_cluster.settle()
        if not self.waiting_jobs.plan():
            self.waiting_jobs.show()
            if self._outdated_phases:
                self._plan_follow_up(released=True)
                self._write_outdated_phases()
            return
        released = bool(self._outdated_phases)
        self.cost.cycles += 1
        self._cycles_since_event += 1
        if self._start_alone() or self._decide():
            self._last_change = self.now
            self._pause = self._period
            self._plan_follow_up(released=released)
        elif not self._shortcuts.await_events and self.now - self._last_change < _GIVE_UP_AFTER:
            self._next_cycle = self.now + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _start_alone(self) -> bool:
        """Start the only job that waits without a session, if that is certain to be the same."""
        run = self.waiting_jobs.alone
        if run is None:
            return False
        start = self._clock()
        nodes = self._lone.choose(run, self.waiting_jobs.bounds)
        self.cost.deciding_seconds += self._clock() - start
        if nodes is None:
            return False
        self._write_outdated_phases()
        self.waiting_jobs.start_alone(run)
        self.sim_cluster.unlisted.start(run, nodes)
        ends = {self._run_pod(run, task, node) for task, node in enumerate(nodes)}
        self._note_start(run, ends)
        self.log.add(self.now, EventKind.ENQUEUE, run.number)
        self.cost.decisions += 1 + len(nodes)
        self._outdated_phases[run] = None
        return True

    def _decide(self) -> bool:
        """Decide in a session and carry it out; return whether anything changed."""
        self.waiting_jobs.show()
        self.sim_cluster.settle()
        start = self._clock()
        decisions = self._scheduler.decide(
            self.snapshot,
            self._moment(),
            only_changes=True,
            queue_amounts=False,
            placing=self._placing,
        )
        self.cost.deciding_seconds += self._clock() - start
        self._failures.update(dict.fromkeys(decisions.failures))
        started_alone = [run for run in self._outdated_phases if run.is_unlisted]
        for run in started_alone:
            self.sim_cluster.unlisted.write_phase(run)
        self._outdated_phases.clear()
        return self._apply(decisions) or bool(started_alone)

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
            self._next_cycle = self.now + self._period

    def _write_outdated_phases(self) -> None:
        """Write the phases that skipped cycles would have: jobs with nodes run."""
        for run in self._outdated_phases:
            if run.is_unlisted:
                self.sim_cluster.unlisted.write_phase(run)
            elif run.in_tables:
                self._set_phase(run, run.settled_phase())
        self._outdated_phases.clear()

    def _apply(self, decisions: Decisions) -> bool:
        """Carry decisions out; return whether anything changed."""
        moved = self._evict(decisions.evictions)
        started = self._bind(decisions.binds, decisions.annotations)
        for run, task, node in self.sim_cluster.nominate(decisions):
            self.log.add(self.now, EventKind.NOMINATE, run.number, task, node)
        changed = bool(decisions.evictions or decisions.binds)
        touched = {**moved, **started}
        for found in self.sim_cluster.runs_of(decisions.pod_groups):
            state = decisions.pod_groups[found.key]
            found.take_in(state)
            if state.phase != found.phase:
                changed = True
                touched.pop(found, None)
                self._set_phase(found, state.phase)
            elif found not in touched:
                self.sim_cluster.write_group(found)
            found.reason = decisions.explanations.get(found.key, found.reason)
        for run in touched:
            self._set_phase(run, run.phase)
        return changed

    def _set_phase(self, run: JobRun, phase: str) -> None:
        """Write the status of a job and file it accordingly."""
        before = run.phase
        self.waiting_jobs.step_out(run)
        run.phase = phase
        self.sim_cluster.write_group(run)
        if phase == "Inqueue" and before == "Pending":
            self.cost.decisions += 1
            self.log.add(self.now, EventKind.ENQUEUE, run.number)
        self.sim_cluster.create_missing_pods(run, self.now)
        if run.waiting:
            self.waiting_jobs.put_back(run)
        else:
            self.waiting_jobs.leave(run)

    def _bind(
        self, binds: Mapping[str, str], annotations: Mapping[str, dict[str, str]]
    ) -> dict[JobRun, None]:
        """Run pods on their nodes until their time is over."""
        runs: dict[JobRun, set[float]] = {}
        owner, rows = self.sim_cluster.owner, self.snapshot.nodes.row_of
        for run, names in groupby(binds, key=lambda name: owner(name)[0]):
            theirs = {name: binds[name] for name in names}
            self.sim_cluster.run_on(theirs, self.now, annotations)
            ends = runs.setdefault(run, set())
            for name, node in theirs.items():
                ends.add(self._run_pod(run, owner(name)[1], rows[node]))
        for run, ends in runs.items():
            self._note_start(run, ends)
        self.cost.decisions += len(binds)
        started = dict.fromkeys(runs)
        self._outdated_phases |= started
        return started

    def _run_pod(self, run: JobRun, task: int, node: int) -> float:
        """Run a pod on a node; return when it will have finished."""
        run.move(task, State.RUNNING)
        run.nodes[task] = node
        end = run.ends[task] = self.now + run.seconds(task)
        self.log.add(self.now, EventKind.BIND, run.number, task, node)
        return end

    def _note_start(self, run: JobRun, ends: set[float]) -> None:
        """Note that pods of a job have started, and when they will have finished."""
        if math.isnan(run.started) and run.running >= run.spec.min_member:
            run.started = self.now
        for end in sorted(ends):
            self._n_ends += 1
            heapq.heappush(self._ends, (end, self._n_ends, run))

    def _evict(self, names: list[str]) -> dict[JobRun, None]:
        """Evict pods from their nodes; new ones wait in their place, or none."""
        runs: dict[JobRun, list[int]] = {}
        for name in names:
            run, task = self.sim_cluster.owner(name)
            if run.states[task] == State.RUNNING:
                runs.setdefault(run, []).append(task)
                self._evict_pod(run, task)
        self.cost.decisions += len(names)
        for run, tasks in runs.items():
            if self._evicted == "lose":
                self._lose(run, tasks)
            elif self._evicted == "restart" and run.settled_phase() != "Running":
                for task in run.tasks_in(State.RUNNING):
                    self._evict_pod(run, task)
        return {run: None for run in runs if run.in_tables}

    def _evict_pod(self, run: JobRun, task: int) -> None:
        """Evict a pod from its node; a new one will wait in its place."""
        run.evictions += 1
        run.ends[task] = math.inf
        self.log.add(self.now, EventKind.EVICT, run.number, task, run.nodes[task])
        run.nodes[task] = NONE
        run.move(task, State.WAITING)
        run.missing.append(task)
        self.sim_cluster.delete_pod(run, task)
        if not run.kind.late_pods:
            self.sim_cluster.create_missing_pods(run, self.now)

    def _lose(self, run: JobRun, gone: list[int]) -> None:
        """Forget evicted pods of a job, and those that can no longer start without them."""
        left = run.spec.size - run.tally[State.LOST] - len(gone)
        if left < run.spec.min_member:
            gone = sorted({*gone, *run.tasks_in(State.WAITING)})
        run.missing = [task for task in run.missing if task not in gone]
        for task in gone:
            run.move(task, State.LOST)
            self.log.add(self.now, EventKind.LOSE, run.number, task)
            self.sim_cluster.delete_pod(run, task)
        if run.is_over:
            self._end_job(run)

    # The end

    def _explain_waiting(self) -> None:
        """Ask the scheduler about all remaining jobs, and remember the reasons."""
        left = self.waiting_jobs.runs()
        if not left:
            return
        self.waiting_jobs.show_all()
        self.sim_cluster.settle()
        decisions = self._scheduler.decide(self.snapshot, self._moment())
        for run in left:
            reason = decisions.explanations.get(run.key) or run.reason
            if self._cycles_since_event >= _MAX_CYCLES_SINCE_EVENT:
                reason = f"evicted again and again; {reason}" if run.evictions else reason
            run.reason = reason or "never started"
