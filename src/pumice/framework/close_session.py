"""The outcome of a session: phases and conditions of pod groups, amounts of queues, as plain data.

Phases are computed for all jobs at once; only jobs that are reported cost a step of Python.
"""

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import ALLOCATED_HYPER_NODE
from pumice.api.decisions import (
    Bind,
    BindVolumes,
    Condition,
    Decisions,
    Evict,
    JobRecord,
    LockNode,
    PodGroupState,
    Reserve,
)
from pumice.api.quantity import format_quantity
from pumice.core.resources import PODS, STEP, Mask
from pumice.core.status import PHASE_CODE, PHASES, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job
from pumice.framework.columns import all_jobs
from pumice.framework.fit_errors import fit_error
from pumice.framework.job_records import Record
from pumice.framework.queue_limits.tree import ROOT, QueueTree
from pumice.framework.refusals import Why
from pumice.framework.session import Session
from pumice.framework.waiting_reason import waiting_reason

Phases = NDArray[np.int8]
_SCHEDULED = Condition("Scheduled", "True", "tasks in gang are ready to be scheduled")
_UNSCHEDULABLE = ("Unschedulable", "True", "NotEnoughResources", "")
_STATED = [int(status) for status in (Status.RUNNING, Status.SUCCEEDED, Status.FAILED)]
_LABELS = [status.label for status in Status]
_WAITING = frozenset(PHASE_CODE[name] for name in ("Pending", "Inqueue", "Unknown"))


def close_session(
    ssn: Session, *, only_changes: bool = False, queue_amounts: bool = True
) -> Decisions:
    """Close a session and return its outcome.

    With ``only_changes`` pod groups whose status stays as the cluster has it are left out; without
    ``queue_amounts`` what queues hold is.
    """
    ssn.close()
    _tell_misplaced(ssn)
    decisions = _moves(ssn)
    phases = phases_of(ssn)
    jobs = ssn.snapshot.jobs
    reported = _changed(ssn, phases) if only_changes else jobs.listed
    counts = jobs.counts
    waits = (counts[Status.PENDING] > 0) | (counts[Status.PIPELINED] > 0) | (jobs.n_tasks == 0)
    for row in np.flatnonzero(reported).tolist():
        job = ssn.job(row)
        state = _group_state(ssn, job, PHASES[phases[row]])
        if only_changes and _is_known(job, state):
            continue
        decisions.pod_groups[job.key] = state
        decisions.task_statuses[job.key] = {
            label: n for label, n in zip(_LABELS, job.counts, strict=True) if n
        }
        if phases[row] in _WAITING and not (only_changes and ssn.scheduled[row]):
            decisions.unschedulable[job.key] = fit_error(ssn, job)
        sentence = waiting_reason(ssn, job) if waits[row] else ""
        if sentence:
            decisions.explanations[job.key] = sentence
        if row in ssn.records.by_job:
            decisions.records[job.key] = _record(ssn, ssn.records.by_job[row])
    if queue_amounts:
        decisions.queues = _queue_amounts(ssn)
    decisions.failures = ssn.failures.lines()
    decisions.failed_for = _failed_for(ssn)
    return decisions


def _failed_for(ssn: Session) -> dict[str, list[str]]:
    """Return for which jobs plugins failed: their own, their tasks' or their shapes'."""
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    lines: dict[int, dict[str, None]] = {}
    for (kind, row), told in ssn.failures.about.items():
        if kind == "shape":
            waiting = (tasks.shape == row) & (tasks.status == Status.PENDING)
            owners = np.unique(tasks.job[waiting]).tolist()
        else:
            owners = [row if kind == "job" else int(tasks.job[row])]
        for owner in owners:
            lines.setdefault(owner, {}).update(told)
    return {jobs.keys[row]: [*told] for row, told in lines.items() if row != NOWHERE}


def _record(ssn: Session, record: Record) -> JobRecord:
    """Return a record with names instead of rows."""
    numbers = dict(record.numbers)
    if "queue" in numbers:
        numbers["queue"] = ssn.snapshot.queues.names[numbers["queue"]]
    return JobRecord(record.stage.value, record.why.value, numbers)


def _tell_misplaced(ssn: Session) -> None:
    """Set the condition of jobs whose queue has no valid place, before any other."""
    for row, record in ssn.records.by_job.items():
        if record.why is Why.QUEUE_MISPLACED:
            kind, status, reason, message = ssn.conditions.get(row, _UNSCHEDULABLE)
            told = waiting_reason(ssn, ssn.job(row))
            ssn.conditions[row] = (kind, status, reason, "; ".join(filter(None, (told, message))))


def _moves(ssn: Session) -> Decisions:
    """Return where tasks go."""
    tasks = ssn.snapshot.tasks
    decisions = Decisions(opened_gates=[tasks.keys[row] for row in ssn.queue_gates.opened])
    for intent in ssn.intents.made:
        if isinstance(intent, Bind):
            decisions.binds[intent.pod] = intent.node
        elif isinstance(intent, Evict):
            _evicted(decisions, intent)
        elif isinstance(intent, Reserve):
            decisions.reservations[intent.pod] = intent.claims
        elif isinstance(intent, LockNode):
            decisions.node_locks[intent.pod] = intent.locks
        elif isinstance(intent, BindVolumes):
            decisions.volumes[intent.pod] = intent
        else:
            decisions.annotations[intent.pod] = dict(intent.annotations)
    decisions.released_claims = ssn.intents.released_claims
    if ssn.snapshot.jobs.counts[Status.PIPELINED].any():
        _tell_promises(ssn, decisions)
    return decisions


def _tell_promises(ssn: Session, decisions: Decisions) -> None:
    """Record which tasks wait for room, and for which of them pods are evicted."""
    tasks, names = ssn.snapshot.tasks, ssn.snapshot.nodes.names
    for row in np.flatnonzero(tasks.status == Status.PIPELINED).tolist():
        decisions.pipelined[tasks.keys[row]] = names[tasks.node[row]]
    for row, node in ssn.intents.nominations.items():
        if node != NOWHERE and tasks.status[row] == Status.PIPELINED:
            decisions.nominated[tasks.keys[row]] = names[node]


def _evicted(decisions: Decisions, intent: Evict) -> None:
    decisions.evictions.append(intent.pod)
    decisions.evicted_by[intent.pod] = intent.action
    if intent.beneficiary:
        decisions.beneficiaries[intent.pod] = intent.beneficiary


def phases_of(ssn: Session) -> Phases:
    """Return the phase of each group, from the status of its tasks (n,)."""
    table, jobs = ssn.snapshot.jobs, all_jobs(ssn.snapshot)
    counts = table.counts
    finished = counts[Status.SUCCEEDED] + counts[Status.FAILED]
    scheduled = jobs.settled + jobs.leaving
    inqueue = table.phase == PHASE_CODE["Inqueue"]
    phases = np.where(inqueue, PHASE_CODE["Inqueue"], PHASE_CODE["Pending"])
    started = np.where(scheduled == finished, PHASE_CODE["Completed"], PHASE_CODE["Running"])
    phases = np.where(scheduled >= table.min_member, started, phases)
    broken = np.zeros(len(phases), dtype=bool)
    broken[list(ssn.unschedulable)] = True
    broken &= counts[Status.RUNNING] > 0
    return np.where(broken, PHASE_CODE["Unknown"], phases).astype(np.int8)


def _changed(ssn: Session, phases: Phases) -> Mask:
    """Mark jobs whose status differs from that in the cluster (n,)."""
    jobs = ssn.snapshot.jobs
    changed = phases != jobs.stated_phase
    changed |= (jobs.counts[_STATED] != jobs.stated_counts).any(axis=0)
    changed |= ssn.scheduled & ~jobs.stated_scheduled
    changed[[*ssn.conditions, *ssn.topology.placed_jobs()]] = True
    return changed & jobs.listed


def _is_known(job: Job, state: PodGroupState) -> bool:
    """Return whether a group's own status is the same."""
    said, marks = job.group.status, job.group.metadata.annotations
    old = PodGroupState(
        phase=said.phase,
        conditions=[Condition(c.type, c.status, c.reason, c.message) for c in said.conditions],
        hyper_node=marks.get(ALLOCATED_HYPER_NODE),
        running=said.running,
        succeeded=said.succeeded,
        failed=said.failed,
    )
    return old == state


def _group_state(ssn: Session, job: Job, phase: str) -> PodGroupState:
    counts = job.counts
    domain = ssn.topology.allocated(job)
    return PodGroupState(
        phase=phase,
        conditions=_conditions(ssn, job),
        hyper_node=None if domain is None else domain.name,
        running=counts[Status.RUNNING],
        succeeded=counts[Status.SUCCEEDED],
        failed=counts[Status.FAILED],
    )


def _conditions(ssn: Session, job: Job) -> list[Condition]:
    """Join old conditions and the new one; one of each type."""
    out = {
        c.type: Condition(c.type, c.status, c.reason, c.message)
        for c in job.group.status.conditions
    }
    if ssn.scheduled[job.row]:
        out[_SCHEDULED.type] = _SCHEDULED
    new = ssn.conditions.get(job.row)
    if new is not None:
        out[new[0]] = Condition(*new)
    return list(out.values())


def _queue_amounts(ssn: Session) -> dict[str, dict[str, str]]:
    """Return what each queue holds; in a tree it counts for all ancestors, too."""
    queues, names = ssn.snapshot.queues, ssn.snapshot.resources.names
    allocated = queues.allocated
    if ROOT in queues.row_of:
        allocated = QueueTree.of(ssn.snapshot).sum_up(allocated)
    return {
        queues.names[row]: {
            name: _format(i, name, amount)
            for i, (name, amount) in enumerate(zip(names, allocated[:, row].tolist(), strict=True))
            if amount >= STEP
        }
        for row in np.flatnonzero(queues.listed).tolist()
    }


def _format(row: int, name: str, amount: float) -> str:
    """Write an amount; scalars beyond cpu, memory and pods are kept in milli-units."""
    return format_quantity(name, amount / 1000 if row > PODS else amount)
