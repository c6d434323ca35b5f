"""The outcome of a session: phases and conditions of pod groups, amounts of queues, as plain data.

Phases are computed for all jobs at once; only jobs that are reported cost a step of Python.
"""

from typing import Any

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
from pumice.core.resources import PODS, STEP, IndexArray, Mask
from pumice.core.status import PHASE_CODE, PHASES, Status
from pumice.core.tables import NOWHERE, JobTable
from pumice.framework.columns import all_jobs
from pumice.framework.fit_errors import fit_error
from pumice.framework.job_records import Record
from pumice.framework.queue_limits.tree import ROOT, QueueTree
from pumice.framework.refusals import Why
from pumice.framework.session import Session
from pumice.framework.waiting_reason import waiting_reason

Phases = NDArray[np.int8]
SCHEDULED = Condition("Scheduled", "True", "tasks in gang are ready to be scheduled")
_UNSCHEDULABLE = ("Unschedulable", "True", "NotEnoughResources", "")
_STATED = [int(status) for status in (Status.RUNNING, Status.SUCCEEDED, Status.FAILED)]
_LABELS = [status.label for status in Status]
_PENDING, _INQUEUE, _RUNNING, _COMPLETED, _UNKNOWN = (
    np.int8(PHASE_CODE[name]) for name in ("Pending", "Inqueue", "Running", "Completed", "Unknown")
)
_IS_WAITING = np.isin(np.arange(len(PHASES)), (_PENDING, _INQUEUE, _UNKNOWN))
"""Phases (by code) of groups that wait for their tasks."""


def close_session(
    ssn: Session, *, only_changes: bool = False, queue_amounts: bool = True
) -> Decisions:
    """Close a session and return its outcome.

    With ``only_changes`` pod groups whose status stays as the cluster has it are left out; without
    ``queue_amounts`` what queues hold is.
    """
    ssn.close()
    _report_misplaced(ssn)
    decisions = _moves(ssn)
    phases = phases_of(ssn)
    reported = _changed(ssn, phases) if only_changes else ssn.snapshot.jobs.listed
    _report_groups(ssn, decisions, phases, np.flatnonzero(reported), only_changes=only_changes)
    if queue_amounts:
        decisions.queues = _queue_amounts(ssn)
    decisions.failures = ssn.failures.lines()
    decisions.failed_for = _failed_for(ssn)
    return decisions


def _report_groups(
    ssn: Session, decisions: Decisions, phases: Phases, rows: IndexArray, *, only_changes: bool
) -> None:
    """Report pod groups; what those of equal numbers have in common is made once."""
    jobs, by_job = ssn.snapshot.jobs, ssn.records.by_job
    states = _GroupStates(ssn, phases, rows)
    may_be_known = ~_differs(jobs, phases)[rows] if only_changes else np.zeros(len(rows), np.bool_)
    is_stuck = _IS_WAITING[phases[rows]]
    if only_changes:
        is_stuck &= ~ssn.scheduled[rows]
    counts = jobs.counts
    waits = (counts[Status.PENDING] > 0) | (counts[Status.PIPELINED] > 0) | (jobs.n_tasks == 0)
    columns = (rows, may_be_known, is_stuck, waits[rows])
    for i, (row, may_be, stuck, waiting) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        state, statuses = states.of(i, row)
        if may_be and _is_known(jobs.groups[row], state):
            continue
        key = jobs.keys[row]
        decisions.pod_groups[key] = state
        decisions.task_statuses[key] = statuses
        if stuck:
            decisions.unschedulable[key] = fit_error(ssn, ssn.job(row))
        if waiting and (sentence := waiting_reason(ssn, ssn.job(row))):
            decisions.explanations[key] = sentence
        if row in by_job:
            decisions.records[key] = _record(ssn, by_job[row])


def _failed_for(ssn: Session) -> dict[str, list[str]]:
    """Return for which jobs plugins failed: their own, their tasks' or their shapes'."""
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    lines: dict[int, dict[str, None]] = {}
    for (kind, row), reasons in ssn.failures.about.items():
        if kind == "shape":
            waiting = (tasks.shape == row) & (tasks.status == Status.PENDING)
            owners = np.unique(tasks.job[waiting]).tolist()
        else:
            owners = [row if kind == "job" else int(tasks.job[row])]
        for owner in owners:
            lines.setdefault(owner, {}).update(reasons)
    return {jobs.keys[row]: [*reasons] for row, reasons in lines.items() if row != NOWHERE}


def _record(ssn: Session, record: Record) -> JobRecord:
    """Return a record with names instead of rows."""
    numbers = dict(record.numbers)
    if "queue" in numbers:
        numbers["queue"] = ssn.snapshot.queues.names[numbers["queue"]]
    return JobRecord(record.stage.value, record.why.value, numbers)


def _report_misplaced(ssn: Session) -> None:
    """Set the condition of jobs whose queue has no valid place, before any other."""
    for row, record in ssn.records.by_job.items():
        if record.why is Why.QUEUE_MISPLACED:
            kind, status, reason, message = ssn.conditions.get(row, _UNSCHEDULABLE)
            sentence = waiting_reason(ssn, ssn.job(row))
            ssn.conditions[row] = (
                kind,
                status,
                reason,
                "; ".join(filter(None, (sentence, message))),
            )


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
        _report_promises(ssn, decisions)
    return decisions


def _report_promises(ssn: Session, decisions: Decisions) -> None:
    """Record which tasks wait for room, and for which of them pods are evicted."""
    tasks, names = ssn.snapshot.tasks, ssn.snapshot.nodes.names
    rows = np.flatnonzero(tasks.status == Status.PIPELINED)
    promised = dict(zip(rows.tolist(), tasks.node[rows].tolist(), strict=True))
    for row, node in promised.items():
        decisions.pipelined[tasks.keys[row]] = names[node]
    for row, node in ssn.intents.nominations.items():
        if node != NOWHERE and row in promised:
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
    phases = np.where(table.phase == _INQUEUE, _INQUEUE, _PENDING)
    started = np.where(scheduled == finished, _COMPLETED, _RUNNING)
    phases = np.where(scheduled >= table.min_member, started, phases)
    if ssn.unschedulable:
        rows = np.array(list(ssn.unschedulable), dtype=np.intp)
        phases[rows[counts[Status.RUNNING, rows] > 0]] = _UNKNOWN
    return phases


def _differs(jobs: JobTable, phases: Phases) -> Mask:
    """Mark jobs whose phase or numbers differ from those in the cluster (n,)."""
    changed = phases != jobs.stated_phase
    changed |= (jobs.counts[_STATED] != jobs.stated_counts).any(axis=0)
    return changed


def _changed(ssn: Session, phases: Phases) -> Mask:
    """Mark jobs whose status may differ from that in the cluster (n,)."""
    jobs = ssn.snapshot.jobs
    changed = _differs(jobs, phases)
    changed |= ssn.scheduled & ~jobs.stated_scheduled
    changed[[*ssn.conditions, *ssn.topology.placed_jobs()]] = True
    return changed & jobs.listed


def _is_known(group: Any, state: PodGroupState) -> bool:
    """Return whether a group's own status says the same."""
    said = group.status
    return (
        said.phase == state.phase
        and (said.running, said.succeeded, said.failed)
        == (state.running, state.succeeded, state.failed)
        and group.metadata.annotations.get(ALLOCATED_HYPER_NODE) == state.hyper_node
        and [_condition(each) for each in said.conditions] == state.conditions
    )


class _GroupStates:
    """States of pod groups; groups without other conditions and domains share equal ones."""

    def __init__(self, ssn: Session, phases: Phases, rows: IndexArray) -> None:
        self._ssn = ssn
        self._has_topology = ssn.snapshot.jobs.has_topology
        columns = (phases[rows], ssn.scheduled[rows], *ssn.snapshot.jobs.counts[:, rows])
        self._numbers = np.stack(columns, axis=1, dtype=np.int32)
        """Of each group its phase, whether it is scheduled, and its tasks by status."""
        self._bytes, self._width = self._numbers.tobytes(), self._numbers.strides[0]
        self._shared: dict[tuple[bytes, bool], tuple[PodGroupState, dict[str, int]]] = {}

    def of(self, i: int, row: int) -> tuple[PodGroupState, dict[str, int]]:
        """Return the state of a group, the i-th, and its tasks by status."""
        group: Any = self._ssn.snapshot.jobs.groups[row]
        known = group.status.conditions
        is_plain = not known or (len(known) == 1 and _condition(known[0]) == SCHEDULED)
        if not is_plain or row in self._ssn.conditions or self._has_topology[row]:
            return self._state(i, row)
        key = (self._bytes[i * self._width : (i + 1) * self._width], bool(known))
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._state(i, row)
        return found

    def _state(self, i: int, row: int) -> tuple[PodGroupState, dict[str, int]]:
        phase, _, *counts = self._numbers[i].tolist()
        domain = None
        if self._has_topology[row]:
            domain = self._ssn.topology.allocated(self._ssn.job(row))
        stated = [counts[status] for status in _STATED]
        name = None if domain is None else domain.name
        by_status = {_LABELS[status]: n for status, n in enumerate(counts) if n}
        conditions = _conditions(self._ssn, row)
        return PodGroupState(PHASES[phase], conditions, name, *stated), by_status


def _conditions(ssn: Session, row: int) -> list[Condition]:
    """Join old conditions and the new one; one of each type."""
    group: Any = ssn.snapshot.jobs.groups[row]
    out = {each.type: _condition(each) for each in group.status.conditions}
    if ssn.scheduled[row]:
        out[SCHEDULED.type] = SCHEDULED
    new = ssn.conditions.get(row)
    if new is not None:
        out[new[0]] = Condition(*new)
    return list(out.values())


def _condition(said: Any) -> Condition:
    return Condition(said.type, said.status, said.reason, said.message)


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
