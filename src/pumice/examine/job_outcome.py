"""The outcome of one cycle for one job, from the records of the code that decided.

Used by explain and by every trial that asks whether a change helps.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pumice.api.decisions import Decisions
from pumice.api.kinds import GRACE_PERIOD_S
from pumice.api.times import DAY, epoch, overdue_s, rfc3339
from pumice.api.wording import counted
from pumice.core.resources import STEP, Mask
from pumice.core.status import PHASES, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import READY, Job, count_roles
from pumice.framework.refusals import Record, Stage, Why
from pumice.framework.session import Session
from pumice.framework.waiting import given_up, waiting_reason
from pumice.scheduler import Observer

_HOURS = slice(11, 16)
"""Hours and minutes in a time as it is written."""


@dataclass(frozen=True)
class Stop:
    """A refusal on a job's path: at which stage, why, and the numbers compared."""

    stage: Stage
    why: Why
    numbers: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class JobOutcome:
    """One job in one cycle."""

    job: str
    listed: bool = False
    """Whether the session knows it: its pod group and its queue exist."""
    queue: str = ""
    phase: str = ""
    phase_before: str = ""
    min_member: int = 0
    ready: int = 0
    """Tasks with a node or finished, including those placed in this cycle."""
    waiting: int = 0
    """Tasks that were promised a node."""
    found: int = 0
    """Tasks that are ready, were promised a node, or found one and lost it with their gang.

    Waiting ones without requests are among them, as a gang counts them.
    """
    found_by_role: Mapping[str, int] = field(default_factory=dict)
    """The same by role."""
    pending: int = 0
    gated: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    """Tasks by status when the cycle ends."""
    invalid: str = ""
    stops: Mapping[Stage, Stop] = field(default_factory=dict)
    last: Stop | None = None
    sentence: str = ""
    """Why it waits, in the words of the cycle."""
    binds: Mapping[str, str] = field(default_factory=dict)
    victims: Mapping[str, str] = field(default_factory=dict)
    """Pods evicted for it, and their nodes."""
    promised: Mapping[str, str] = field(default_factory=dict)
    evicted: Mapping[str, str] = field(default_factory=dict)
    """Its own pods that this cycle evicts, and for which pod or job; empty: for none."""
    evicted_by: tuple[str, ...] = ()
    """The actions that evict them."""
    reservation: Mapping[str, Any] | None = None
    """When and on which nodes it is promised to start, if it is."""
    leaving: tuple[str, ...] = ()
    """Its own pods that are already terminating."""
    makes_way: tuple[str, ...] = ()
    """Terminating pods on nodes that its own pods are promised."""
    leaves_in_s: float = 0.0
    """Seconds within which the last of the leaving pods is gone."""
    overdue: Mapping[str, float] = field(default_factory=dict)
    """Leaving pods that should have gone by now, each with the seconds since then."""
    cycle: int = 1

    @property
    def started(self) -> bool:
        """Whether it got a node in the cycle."""
        return bool(self.binds)

    @property
    def makes_room(self) -> bool:
        """Whether it only waits for terminating pods.

        A promise for which nobody leaves does not come true by waiting, nor one for which only
        pods leave that should have gone by now.
        """
        return self._is_promised and bool({*self.making_room} - self.overdue.keys())

    @property
    def is_stuck(self) -> bool:
        """Whether it only waits for terminating pods that should have gone by now."""
        return self._is_promised and bool(self.making_room) and not self.makes_room

    @property
    def is_idly_promised(self) -> bool:
        """Whether it is promised places for which nobody has to leave."""
        return self._is_promised and not self.making_room

    @property
    def _is_promised(self) -> bool:
        return self.last is not None and self.last.why is Why.WAITING_FOR_EVICTION

    @property
    def making_room(self) -> tuple[str, ...]:
        """The pods that leave the places which it is promised."""
        return tuple(self.victims) or self.makes_way or self.leaving

    @property
    def waits(self) -> bool:
        """Whether pods of it wait for a node, or to be made, and none got one in the cycle."""
        return not self.started and bool(self.pending or self.waiting or not self.counts)

    @property
    def is_admitted(self) -> bool:
        """Whether it has no pods yet and this cycle admits it to its queue."""
        entered = self.phase_before in ("Pending", "") and self.phase == "Inqueue"
        return self.listed and not self.counts and entered

    @property
    def awaits_entry(self) -> bool:
        """Whether it has no pods because they are created only once it is admitted to its queue."""
        return self.listed and not self.counts and self.phase in ("Pending", "")


class Watcher(Observer):
    """Observes one job in one session."""

    def __init__(self, key: str, cycle: int, *, beside: int | None = None) -> None:
        """Observe a job; actions take so many other jobs ``beside`` it, None: all that wait."""
        self._key = key
        self._cycle = cycle
        self._beside = beside
        self.in_detail = True
        """Whether all jobs are tried, so that all refusals are recorded; else some are left out."""
        self.skipped: frozenset[str] = frozenset()
        """Other waiting jobs that no action takes."""
        self.outcome = JobOutcome(job=key, cycle=cycle)
        self.decisions = Decisions()

    def opened(self, ssn: Session) -> None:
        """Request more detail about the job."""
        jobs = ssn.snapshot.jobs
        row = jobs.row_of.get(self._key)
        if row is not None and jobs.listed[row] and self.in_detail:
            ssn.records.watched = frozenset({row})
        if self._beside is not None:
            self._consider(ssn, NOWHERE if row is None else row, self._beside)

    def _consider(self, ssn: Session, row: int, beside: int) -> None:
        """Show actions a job and the first others in line only, those of its own queue first."""
        jobs = ssn.snapshot.jobs
        considered = np.arange(len(jobs.listed)) == row
        if beside:
            lines, own = waiting_lines(ssn), int(jobs.queue[row])
            queues = sorted(ssn.ordering.sort_queues(lines), key=lambda queue: queue != own)
            line = [job for queue in queues for job in ssn.ordering.sort_jobs(lines[queue])]
            considered[line[:beside]] = True
            self.skipped = frozenset(jobs.keys[job] for job in line if not considered[job])
        ssn.considered = considered

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Copy the records of the job."""
        snapshot, self.decisions = ssn.snapshot, decisions
        row = snapshot.jobs.row_of.get(self._key)
        if row is None or snapshot.jobs.groups[row] is None:
            return
        job, records = ssn.job(row), ssn.records
        listed = bool(snapshot.jobs.listed[row])
        state = decisions.pod_groups.get(self._key)
        stated = PHASES[snapshot.jobs.stated_phase[row]] or "Pending"
        pods = [snapshot.tasks.keys[each] for each in job.tasks]
        own = set(pods)
        last = records.by_job.get(row)
        gone = {snapshot.tasks.row_of[pod] for pod in decisions.evictions}
        self.outcome = JobOutcome(
            job=self._key,
            listed=listed,
            queue=job.group.spec.queue,
            phase=state.phase if state is not None else stated,
            phase_before=stated,
            min_member=job.min_member,
            ready=job.ready,
            waiting=job.waiting,
            found=job.ready + job.waiting + job.pending_best_effort + _lost(ssn, job),
            found_by_role=_found_by_role(ssn, job),
            pending=job.counts[Status.PENDING],
            gated=sum(bool(snapshot.tasks.gated[each]) for each in job.tasks),
            counts={Status(code).label: n for code, n in enumerate(job.counts) if n},
            invalid=ssn.policy.job_valid(row) if listed else "",
            stops={each: _stop(ssn, one) for each, one in records.stops.get(row, {}).items()},
            last=None if last is None else _stop(ssn, last),
            sentence=waiting_reason(ssn, job) if listed else "",
            binds=_those_of(pods, decisions.binds),
            victims=_victims(ssn, decisions, own | {self._key}),
            promised=_those_of(pods, decisions.pipelined),
            evicted={
                p: decisions.beneficiaries.get(p, "") for p in decisions.evictions if p in own
            },
            evicted_by=_distinct(decisions.evicted_by.get(p, "") for p in own),
            reservation=reservation(ssn, row),
            leaving=_leaving(ssn, [each for each in job.tasks if each not in gone]),
            makes_way=_making_way(ssn, decisions, own),
            leaves_in_s=_leaves_in(ssn, decisions, own),
            overdue=_overdue(ssn, [*_making_way(ssn, decisions, own), *pods]),
            cycle=self._cycle,
        )


def reservation(ssn: Session, job: int) -> dict[str, Any] | None:
    """Return when and where a waiting job (row) is promised to start; None if it is not."""
    own = ssn.promises.get(job)
    if own is None or math.isinf(own.start):
        return None
    rows, table = sorted(set(ssn.promised_places.get(job, ()))), ssn.snapshot.nodes
    idle = table.idle[:, rows] - own.demand.need[:, np.newaxis] > -STEP
    free, wait = int(np.count_nonzero(idle.all(axis=0))), max(own.start - ssn.now, 0.0)
    nodes = [table.names[row] for row in rows]
    when = rfc3339(own.start)[_HOURS] if wait < DAY else rfc3339(own.start)
    text = f"reserved: {counted(len(nodes), 'node')} from {when}, {free} of them free now"
    return {"start": rfc3339(own.start), "in_s": wait, "nodes": nodes, "text": text}


def waiting_lines(ssn: Session) -> dict[int, list[int]]:
    """Return the jobs of each queue that wait to be admitted or to be placed, by queue row.

    A job takes part if this scheduler could place a pod of it, or if its group waits for admission
    and has no pods here; an admitted job whose pods are all gated or foreign does not count.
    """
    jobs, placeable = ssn.snapshot.jobs, _placeable(ssn)
    lines: dict[int, list[int]] = {}
    unmade = {row for row in ssn.pending_jobs() if not jobs.tasks[row]}
    for row in sorted({*ssn.pending_jobs(), *ssn.waiting_jobs()}):
        if placeable[row] or row in unmade:
            lines.setdefault(int(jobs.queue[row]), []).append(row)
    return lines


def _placeable(ssn: Session) -> Mask:
    """Mark the jobs with a pending task that no scheduling gate holds back (n,)."""
    tasks = ssn.snapshot.tasks
    free = (tasks.status == Status.PENDING) & ~tasks.gated & (tasks.job != NOWHERE)
    free[list(ssn.queue_gates.held)] = True
    return np.bincount(tasks.job[free], minlength=len(ssn.snapshot.jobs.phase)) > 0


def _lost(ssn: Session, job: Job) -> int:
    """Count the tasks that found a node and lost it with their gang; others than best-effort."""
    best_effort = ssn.snapshot.tasks.best_effort
    return sum(not best_effort[row] for row in given_up(ssn, job))


def _found_by_role(ssn: Session, job: Job) -> dict[str, int]:
    if not job.group.spec.min_task_member:
        return {}
    names, role = ssn.snapshot.roles, ssn.snapshot.tasks.role
    found = Counter(count_roles(job, READY | {Status.PIPELINED}, pending_best_effort=True))
    found.update(names[role[row]] for row in given_up(ssn, job) if role[row] != NOWHERE)
    return dict(found)


def _stop(ssn: Session, record: Record) -> Stop:
    numbers = dict(record.numbers)
    if numbers.get("queue") is not None:
        numbers["queue"] = ssn.snapshot.queues.names[numbers["queue"]]
    return Stop(record.stage, record.why, numbers)


def _those_of(pods: Iterable[str], nodes: Mapping[str, str]) -> dict[str, str]:
    """Return the nodes of some pods; a cycle may decide about many more."""
    return {pod: nodes[pod] for pod in pods if pod in nodes}


def _victims(ssn: Session, decisions: Decisions, own: set[str]) -> dict[str, str]:
    tasks, names = ssn.snapshot.tasks, ssn.snapshot.nodes.names
    return {
        pod: names[int(tasks.node[tasks.row_of[pod]])]
        for pod in decisions.evictions
        if decisions.beneficiaries.get(pod, "") in own
    }


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))


def _leaving(ssn: Session, rows: Iterable[int]) -> tuple[str, ...]:
    tasks = ssn.snapshot.tasks
    return tuple(tasks.keys[row] for row in rows if int(tasks.status[row]) == Status.RELEASING)


def _leaves_in(ssn: Session, decisions: Decisions, own: set[str]) -> float:
    """Return the seconds until all pods are gone that leave for a job."""
    tasks = ssn.snapshot.tasks
    waits = [0.0]
    for key in (*_victims(ssn, decisions, own), *_making_way(ssn, decisions, own)):
        pod: Any = tasks.pods[tasks.row_of[key]]
        if pod.metadata.deletion_timestamp:
            waits.append(epoch(pod.metadata.deletion_timestamp) - ssn.now)
        else:
            grace = pod.spec.termination_grace_period_seconds
            waits.append(float(GRACE_PERIOD_S if grace is None else grace))
    return max(waits)


def _overdue(ssn: Session, pods: Iterable[str]) -> dict[str, float]:
    """Return the pods that should have gone by now, each with the seconds since then."""
    tasks = ssn.snapshot.tasks
    found = {}
    for key in pods:
        pod: Any = tasks.pods[tasks.row_of[key]]
        late = overdue_s(pod.metadata.deletion_timestamp, ssn.now)
        if late:
            found[key] = late
    return found


def _making_way(ssn: Session, decisions: Decisions, own: set[str]) -> tuple[str, ...]:
    """Name the pods that leave the nodes promised to a job's pods, evicted now or earlier."""
    nodes = {node for pod, node in decisions.pipelined.items() if pod in own}
    table = ssn.snapshot.nodes
    return tuple(
        pod
        for node in sorted(nodes)
        for pod in _leaving(ssn, table.tasks[table.row_of[node]])
        if pod not in own
    )
