"""The outcome of a session: phases and conditions of pod groups, amounts of queues, as plain data.

Phases are computed for all jobs at once; only jobs that are reported cost a step of Python.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import ALLOCATED_HYPER_NODE
from pumice.api.decisions import (
    SCHEDULED,
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
from pumice.core.status import PENDING, PHASE_CODE, PHASES, Status
from pumice.core.tables import NOWHERE
from pumice.framework.columns import all_jobs
from pumice.framework.fit_errors import fit_error
from pumice.framework.job_records import Record
from pumice.framework.queue_limits.device_quota import held_devices
from pumice.framework.queue_limits.limits import ROOT, QueueTree
from pumice.framework.refusals import Why
from pumice.framework.session import Session
from pumice.framework.waiting import waiting_pods, waiting_reason

Phases = NDArray[np.int8]
_UNSCHEDULABLE = ("Unschedulable", "True", "NotEnoughResources", "")
_STATED = [int(status) for status in (Status.RUNNING, Status.SUCCEEDED, Status.FAILED)]
_LABELS = [status.label for status in Status]
_PENDING, _INQUEUE, _RUNNING, _COMPLETED, _UNKNOWN = (
    np.int8(PHASE_CODE[name]) for name in ("Pending", "Inqueue", "Running", "Completed", "Unknown")
)
_IS_WAITING = np.isin(np.arange(len(PHASES)), (_PENDING, _INQUEUE, _UNKNOWN))
_UNPLACED = [int(status) for status in (Status.PENDING, Status.PIPELINED)]


def close_session(ssn: Session, *, only_changes: bool = False, statuses: bool = True) -> Decisions:
    """Close a session and return its outcome.

    With ``only_changes`` pod groups and pods whose status stays as the cluster has it are left
    out; without ``statuses`` what queues hold and why pods wait is.
    """
    ssn.close()
    _report_misplaced(ssn)
    decisions = _moves(ssn)
    phases = phases_of(ssn)
    differs = _differs(ssn, phases)
    reported = _changed(ssn, differs) if only_changes else ssn.snapshot.jobs.listed
    rows = reported.nonzero()[0]
    if len(rows):
        _report_groups(ssn, decisions, phases, rows, differs[rows] if only_changes else None)
    if statuses:
        decisions.queues = _queue_amounts(ssn)
        decisions.waiting_pods = waiting_pods(ssn, only_changes=only_changes)
        decisions.promises = ssn.promise_changes()
    decisions.failures = ssn.failures.lines()
    decisions.failed_for = _failed_for(ssn)
    return decisions


def _report_groups(
    ssn: Session, decisions: Decisions, phases: Phases, rows: IndexArray, differs: Mask | None
) -> None:
    """Report pod groups; what those of equal numbers have in common is made once.

    ``differs`` marks those whose numbers are not as stated (n,): of the others only those with
    other conditions are reported.  None: all of them.
    """
    jobs, states = ssn.snapshot.jobs, _GroupStates(ssn, phases)
    groups, keys = jobs.groups, jobs.keys
    is_new = [True] * len(rows) if differs is None else differs.tolist()
    for row, kind, new in zip(rows.tolist(), states.kinds(rows), is_new, strict=True):
        state, statuses = states.made.get(kind) or states.make(row, kind)
        if new or not _is_known(groups[row], state):
            decisions.pod_groups[keys[row]] = state
            decisions.task_statuses[keys[row]] = statuses
    _explain_groups(ssn, decisions, phases, rows, only_changes=differs is not None)


def _explain_groups(
    ssn: Session, decisions: Decisions, phases: Phases, rows: IndexArray, *, only_changes: bool
) -> None:
    """Report why those of the reported pod groups that wait do so, and the records of jobs."""
    jobs, by_job = ssn.snapshot.jobs, ssn.records.by_job
    short = _IS_WAITING[phases]
    if only_changes:
        short &= ~ssn.scheduled
    waits = (jobs.counts[_UNPLACED] > 0).any(axis=0) | (jobs.n_tasks == 0)
    explained = short | waits
    explained[[*by_job]] = True
    for row in rows[explained[rows]].tolist():
        key = jobs.keys[row]
        if key not in decisions.pod_groups:
            continue
        if short[row]:
            decisions.unschedulable[key] = fit_error(ssn, ssn.job(row))
        sentence = waiting_reason(ssn, ssn.job(row)) if waits[row] else ""
        if sentence:
            decisions.explanations[key] = sentence
        if row in by_job:
            decisions.records[key] = _record(ssn, by_job[row])


def _failed_for(ssn: Session) -> dict[str, list[str]]:
    """Return for which jobs plugins failed: their own, their tasks' or their shapes'."""
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    lines: dict[int, dict[str, None]] = {}
    for (kind, row), reasons in ssn.failures.about.items():
        if kind == "shape":
            waiting = (tasks.shape == row) & (tasks.status == PENDING)
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
    decisions.stored = dict(ssn.intents.stored)  # the journal puts the mapping back
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
    if intent.note:
        decisions.eviction_notes[intent.pod] = intent.note


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


def _differs(ssn: Session, phases: Phases) -> Mask:
    """Mark jobs whose phase or numbers differ from those in the cluster (n,)."""
    jobs = ssn.snapshot.jobs
    return (phases != jobs.stated_phase) | (jobs.counts[_STATED] != jobs.stated_counts).any(axis=0)


def _changed(ssn: Session, differs: Mask) -> Mask:
    """Mark jobs whose status differs from that in the cluster, or whose conditions may (n,)."""
    jobs = ssn.snapshot.jobs
    changed = differs | (ssn.scheduled & ~jobs.stated_scheduled)
    changed[[*ssn.conditions, *ssn.topology.placed_jobs()]] = True
    return changed & jobs.listed & ~ssn.left_out


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

    def __init__(self, ssn: Session, phases: Phases) -> None:
        self._ssn = ssn
        self._phases = phases
        self._has_topology = ssn.snapshot.jobs.has_topology
        self.made: dict[bytes, tuple[PodGroupState, dict[str, int]]] = {}
        """States and numbers of tasks by status, for each kind of group."""

    def kinds(self, rows: IndexArray) -> list[bytes]:
        """Return the kind of each group: its phase, its numbers and whether it is or was ready.

        A group with other conditions or a domain is of a kind of its own.  Bytes are the fastest
        key where there are thousands of groups.
        """
        jobs, conditions = self._ssn.snapshot.jobs, self._ssn.conditions
        is_own = jobs.has_other_conditions | self._has_topology
        is_own[[*conditions]] = True
        own = np.where(is_own, np.arange(len(is_own)), -1)[rows]
        counts = jobs.counts[:, rows]
        ready = self._ssn.scheduled[rows], jobs.stated_scheduled[rows]
        parts = own, self._phases[rows], *ready, *counts
        numbers = np.stack(parts, axis=1, dtype=counts.dtype, casting="same_kind")
        kinds: list[bytes] = numbers.view(f"V{numbers.strides[0]}")[:, 0].tolist()
        return kinds

    def make(self, row: int, kind: bytes) -> tuple[PodGroupState, dict[str, int]]:
        """Return the state of the first group of a kind, and its tasks by status."""
        found = self.made[kind] = self._state(row)
        return found

    def _state(self, row: int) -> tuple[PodGroupState, dict[str, int]]:
        domain = None
        if self._has_topology[row]:
            domain = self._ssn.topology.allocated(self._ssn.job(row))
        counts = self._ssn.snapshot.jobs.counts[:, row].tolist()
        stated = [counts[status] for status in _STATED]
        name, phase = None if domain is None else domain.name, PHASES[self._phases[row]]
        by_status = {_LABELS[status]: n for status, n in enumerate(counts) if n}
        return PodGroupState(phase, _conditions(self._ssn, row), name, *stated), by_status


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
    tree = QueueTree.of(ssn.snapshot) if ROOT in queues.row_of else None
    if tree is not None:
        allocated = tree.sum_up(allocated)
    devices = held_devices(ssn.snapshot, tree) if ssn.snapshot.kind("ResourceClaim") else {}
    return {
        queues.names[row]: {
            name: _format(i, name, amount)
            for i, (name, amount) in enumerate(zip(names, allocated[:, row].tolist(), strict=True))
            if amount >= STEP
        }
        | {
            name: format_quantity(name, amount / 1000)
            for name, amount in devices.get(row, {}).items()
            if amount
        }
        for row in queues.listed.nonzero()[0].tolist()
    }


def _format(row: int, name: str, amount: float) -> str:
    """Write an amount; scalars beyond cpu, memory and pods are kept in milli-units."""
    return format_quantity(name, amount / 1000 if row > PODS else amount)
