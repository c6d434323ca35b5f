"""The clock of a simulation: arrivals, completions and cycles, in order, to the end.

Drives the deciding core without an API server in between: objects go straight into the tables, and
what is decided is done at once.  The same workload, seed and configuration give the same log.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal

from pumice.api.conf import SchedulerConf
from pumice.api.decisions import Decisions
from pumice.api.objects import (
    KubeObject,
    ObjectMeta,
    Pod,
    PodSpec,
    Queue,
    QueueSpec,
    QueueStatus,
)
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.scheduler import Scheduler
from pumice.sim.bounds import Rules
from pumice.sim.log import NONE, Log, What
from pumice.sim.runs import EPOCH, Bound, Run, State, nominated
from pumice.sim.waiting import WaitingRoom
from pumice.sim.workload import Workload

Evicted = Literal["requeue", "lose"]
"""What becomes of an evicted pod: a new one waits in its place, or it is gone."""

_LONGEST_PAUSE = 600.0
"""Seconds between cycles, at most, while time alone may change an answer."""
_PATIENCE = 7 * 86400.0
"""Seconds without any event or decision after which the jobs that still wait are given up."""


@dataclass(slots=True)
class Effort:
    """What a simulation cost: numbers of steps, and seconds on the real clock."""

    events: int = 0
    cycles: int = 0
    decisions: int = 0
    deciding_seconds: float = 0.0
    seconds: float = 0.0


@dataclass(slots=True)
class Outcome:
    """A finished simulation: who ran when, and the tables at the end."""

    runs: list[Run]
    log: Log
    snapshot: Snapshot
    end: float
    """When the last thing happened."""
    effort: Effort = field(default_factory=Effort)


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
        rules: Rules | None = None,
        scheduler: Scheduler | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.workload = workload
        self.snapshot = Snapshot()
        self.log = Log()
        self.effort = Effort()
        self._conf = conf
        self._period = period
        self._evicted = evicted
        self._clock = clock
        self._scheduler = scheduler or Scheduler(conf, seed=seed)
        self._rules = rules or Rules.of(conf)
        self._ingest = Ingest(self.snapshot)
        self.room = WaitingRoom(self._ingest, self._rules, self._enter)
        self._load(cluster)
        self._bound = Bound()
        self._owner: dict[str, tuple[Run, int]] = {}
        """Pods that the scheduler knows, by name."""
        self.runs: list[Run] = []
        self._arrivals = workload.jobs
        self._ends: list[tuple[float, int, Run]] = []
        self._n_ends = 0
        self.now = 0.0
        self.n_over = 0
        """Jobs that have ended."""
        self._due: float | None = None
        """When the next cycle runs; None: not before something happens."""
        self._last_cycle = -math.inf
        self._pause = period
        self._last_change = 0.0

    def _load(self, cluster: Iterable[KubeObject]) -> None:
        """Take the cluster in; queues that only the workload names get a share like any other."""
        things = list(cluster)
        known = {thing.metadata.name for thing in things if isinstance(thing, Queue)}
        named = dict.fromkeys(job.queue for job in self.workload.jobs)
        things += [open_queue(name) for name in named if name not in known]
        self._ingest.load([_opened(thing) for thing in things if not isinstance(thing, Pod)])
        specs = {id(task.spec): task.spec for job in self.workload.jobs for task in job.tasks}
        distinct: list[PodSpec] = list(specs.values())
        self.room.book.learn(distinct)

    # The clock

    def run(self, progress: Callable[[int], None] | None = None) -> Outcome:
        """Go on until nothing happens any more; ``progress`` is told how many jobs are over."""
        start, told = self._clock(), 0
        while self.step():
            if progress is not None and self.effort.events >= told + 256:
                told = self.effort.events
                progress(self.n_over)
        if progress is not None:
            progress(self.n_over)
        for run in self.room.runs():
            run.reason = run.reason or "never started"
        self.effort.seconds = self._clock() - start
        return Outcome(self.runs, self.log, self.snapshot, self.now, self.effort)

    def step(self) -> bool:
        """Let the next thing happen; False if there is nothing left to happen."""
        event = self._next_event()
        if event is not None and (self._due is None or event <= self._due):
            self.now = event
            self._happen()
            self._call_cycle()
            return True
        if self._due is None:
            return False
        self.now = self._due
        self._cycle()
        return True

    def _next_event(self) -> float | None:
        at = len(self.runs)
        arrival = self._arrivals[at].arrival if at < len(self._arrivals) else None
        end = self._ends[0][0] if self._ends else None
        if arrival is None or end is None:
            return end if arrival is None else arrival
        return min(arrival, end)

    def _happen(self) -> None:
        """Let one job arrive or some pods of one job finish, those first."""
        self.effort.events += 1
        self._last_change = self.now
        if self._ends and self._ends[0][0] <= self.now:
            end, _, run = heapq.heappop(self._ends)
            self.room.has_gained = True
            self._finish(run, end)
        else:
            self._arrive()

    def _call_cycle(self) -> None:
        """Let a cycle run at the next tick of the scheduler's own clock."""
        self._pause = self._period
        if self._due is None or self._due > self.now + self._period:
            tick = math.ceil(self.now / self._period) * self._period
            self._due = max(tick, self._last_cycle + self._period)

    # What happens by itself

    def _arrive(self) -> None:
        number = len(self.runs)
        job = self._arrivals[number]
        run = Run(number, job, self.room.book.of(job))
        self.runs.append(run)
        self.log.add(self.now, What.ARRIVE, number)
        self.room.add(run)

    def _enter(self, run: Run) -> None:
        """Show a job to the scheduler for the first time."""
        self._ingest.upsert(run.group())
        for number, pod in run.pods():
            self._ingest.upsert(pod)
            self._owner[run.pod_key(number)] = (run, number)
        run.in_tables = True

    def _finish(self, run: Run, end: float) -> None:
        """End the pods of a job whose time has come."""
        tasks = [i for i in run.tasks_in(State.RUNNING) if run.ends[i] == end]
        if not tasks:  # evicted before
            return
        for task in tasks:
            run.move(task, State.DONE)
            self.log.add(end, What.FINISH, run.number, task, run.nodes[task])
            run.nodes[task] = NONE
        if run.is_over:
            self._end(run)
            return
        for task in tasks:
            self._ingest.upsert(self._bound.finished(self._pod(run.pod_key(task))))
        self._ingest.upsert(run.group())

    def _end(self, run: Run) -> None:
        """Forget a job none of whose pods waits or runs."""
        self.room.leave(run)
        run.ended = self.now
        self.n_over += 1
        for number in range(len(run.states)):
            key = run.pod_key(number)
            if self._owner.pop(key, None) is not None:
                self._ingest.delete(self._pod(key))
        self._ingest.delete(run.group())
        run.in_tables = False

    def _pod(self, key: str) -> Pod:
        """Give a pod as the scheduler knows it."""
        tasks = self.snapshot.tasks
        pod = tasks.pods[tasks.row_of[key]]
        assert isinstance(pod, Pod)  # noqa: S101
        return pod

    # What the scheduler decides

    def _cycle(self) -> None:
        """Run one cycle, if it could change anything, and do what it decides."""
        self._due = None
        self._last_cycle = self.now
        self._ingest.settle()
        if not self.room.prepare():
            return
        self._ingest.settle()
        start = self._clock()
        decisions = self._scheduler.decide(self.snapshot, EPOCH + self.now, only_changes=True)
        self.effort.deciding_seconds += self._clock() - start
        self.effort.cycles += 1
        if self._apply(decisions):
            self._last_change = self.now
            self._pause = self._period
            if not self._rules.settles:
                self._due = self.now + self._period
        elif self._rules.ticks and self.now - self._last_change < _PATIENCE:
            self._due = self.now + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _apply(self, decisions: Decisions) -> bool:
        """Do what was decided; say whether anything changed."""
        moved = self._evict(decisions.evictions)
        started = self._bind(decisions.binds, decisions.annotations)
        for name, node in decisions.nominated.items():
            self._nominate(name, node)
        changed = bool(decisions.evictions or decisions.binds)
        for key, state in decisions.pod_groups.items():
            run = self._run_of(key)
            if run is None:
                continue
            run.hyper_node = state.hyper_node or run.hyper_node
            if run in started:
                continue
            if state.phase != run.phase or run in moved:
                changed = True
                self._to_phase(run, state.phase)
            else:
                run.reason = decisions.explanations.get(key, run.reason)
        for run in (*moved, *started):
            self._to_phase(run, run.settled_phase())
        return changed

    def _run_of(self, key: str) -> Run | None:
        row = self.snapshot.jobs.row_of.get(key)
        tasks = self.snapshot.jobs.tasks[row] if row is not None else []
        found = self._owner.get(self.snapshot.tasks.keys[tasks[0]]) if tasks else None
        return None if found is None else found[0]

    def _to_phase(self, run: Run, phase: str) -> None:
        """Write the status of a job and put it where it belongs."""
        before = run.phase
        if run.line is not None:
            run.line.remove(run)
        run.phase = phase
        self._ingest.upsert(run.group())
        if phase == "Inqueue" and before == "Pending":
            self._note_enqueued(run)
        if run.waiting:
            self.room.put_back(run)
        else:
            self.room.leave(run)

    def _note_enqueued(self, run: Run) -> None:
        self.effort.decisions += 1
        self.log.add(self.now, What.ENQUEUE, run.number)

    def _bind(
        self, binds: Mapping[str, str], annotations: Mapping[str, dict[str, str]]
    ) -> dict[Run, None]:
        """Let pods run on their nodes until their time is over."""
        rows = self.snapshot.nodes.row_of
        runs: dict[Run, set[float]] = {}
        for name, node in binds.items():
            run, task = self._owner[name]
            if run.phase == "Pending" and run not in runs:
                self._note_enqueued(run)  # and given nodes in the same cycle
            marks = annotations.get(name)
            self._ingest.upsert(self._bound.running(self._pod(name), node, self.now, marks))
            run.move(task, State.RUNNING)
            run.nodes[task] = rows[node]
            end = run.ends[task] = self.now + run.seconds(task)
            runs.setdefault(run, set()).add(end)
            self.log.add(self.now, What.BIND, run.number, task, rows[node])
        for run, ends in runs.items():
            if math.isnan(run.started) and run.running >= run.spec.min_member:
                run.started = self.now
            for end in sorted(ends):
                self._n_ends += 1
                heapq.heappush(self._ends, (end, self._n_ends, run))
        self.effort.decisions += len(binds)
        return dict.fromkeys(runs)

    def _nominate(self, name: str, node: str) -> None:
        run, task = self._owner[name]
        pod = self._pod(name)
        if run.states[task] == State.WAITING and pod.status.nominated_node_name != node:
            self._ingest.upsert(nominated(pod, node))
            row = self.snapshot.nodes.row_of[node]
            self.log.add(self.now, What.NOMINATE, run.number, task, row)

    def _evict(self, names: list[str]) -> dict[Run, None]:
        """Take pods off their nodes; new ones take their place in the queue, or nobody does."""
        runs: dict[Run, None] = {}
        for name in names:
            run, task = self._owner[name]
            if run.states[task] != State.RUNNING:
                continue
            runs[run] = None
            run.evictions += 1
            run.ends[task] = math.inf
            run.turns[task] += 1
            self.log.add(self.now, What.EVICT, run.number, task, run.nodes[task])
            run.nodes[task] = NONE
            run.move(task, State.WAITING)
            self._ingest.upsert(run.pod(task))
        self.effort.decisions += len(names)
        if self._evicted == "lose":
            for run in runs:
                self._lose(run, names)
        return {run: None for run in runs if run.in_tables}

    def _lose(self, run: Run, names: list[str]) -> None:
        """Forget evicted pods of a job, and those that can no longer start without them."""
        gone = [task for name in names for owner, task in (self._owner[name],) if owner is run]
        left = run.spec.size - run.tally[State.LOST] - len(gone)
        if left < run.spec.min_member:
            gone = sorted({*gone, *run.tasks_in(State.WAITING)})
        for task in gone:
            run.move(task, State.LOST)
            self.log.add(self.now, What.LOSE, run.number, task)
            key = run.pod_key(task)
            self._ingest.delete(self._pod(key))
            del self._owner[key]
        if run.is_over:
            self._end(run)


def open_queue(name: str) -> Queue:
    """Make a queue with a share like any other."""
    return Queue(
        metadata=ObjectMeta(name=name),
        spec=QueueSpec(weight=1),
        status=QueueStatus(state="Open"),
    )


def _opened(thing: KubeObject) -> KubeObject:
    """Open a queue whose state nobody has written yet, as the queue controller would."""
    if isinstance(thing, Queue) and not thing.status.state:
        return Queue(metadata=thing.metadata, spec=thing.spec, status=QueueStatus(state="Open"))
    return thing
