"""What a session leaves: phases and conditions of pod groups, amounts of queues, as plain data."""

from pumice.api.decisions import Condition, Decisions, PodGroupState
from pumice.api.intents import Bind, Evict
from pumice.api.quantity import format_quantity
from pumice.core.resources import PODS, STEP
from pumice.core.status import PHASES, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job
from pumice.framework.session import Session


def outcome(ssn: Session) -> Decisions:
    """Close a session and write its outcome down."""
    ssn.close()
    snapshot = ssn.snapshot
    decisions = Decisions()
    for intent in ssn.intents:
        if isinstance(intent, Bind):
            decisions.binds[intent.pod] = intent.node
        elif isinstance(intent, Evict):
            decisions.evictions.append(intent.pod)
    tasks, names = snapshot.tasks, snapshot.nodes.names
    for row in range(tasks.n):
        if tasks.status[row] == Status.PIPELINED:
            decisions.pipelined[tasks.keys[row]] = names[tasks.node[row]]
    for row, node in ssn.nominations.items():
        if node != NOWHERE:
            decisions.nominated[tasks.keys[row]] = names[node]
    for row in ssn.jobs():
        job = ssn.job(row)
        decisions.pod_groups[job.key] = _group_state(ssn, job)
        decisions.task_statuses[job.key] = {
            Status(s).label: n for s, n in enumerate(job.counts) if n
        }
    decisions.queues = _queue_amounts(ssn)
    return decisions


def _group_state(ssn: Session, job: Job) -> PodGroupState:
    counts = job.counts
    return PodGroupState(
        phase=phase_of(ssn, job),
        conditions=_conditions(ssn, job),
        hyper_node=_domain_name(ssn, job),
        running=counts[Status.RUNNING],
        succeeded=counts[Status.SUCCEEDED],
        failed=counts[Status.FAILED],
    )


def _domain_name(ssn: Session, job: Job) -> str | None:
    domain = ssn.topology.allocated(job)
    return None if domain is None else domain.name


def phase_of(ssn: Session, job: Job) -> str:
    """Say how far a group is, by what its tasks do now."""
    counts, tasks = job.counts, ssn.snapshot.tasks
    if counts[Status.RUNNING] and job.row in ssn.unschedulable:
        return "Unknown"
    finished = counts[Status.SUCCEEDED] + counts[Status.FAILED]
    leaving = sum(
        1
        for row in job.tasks
        if tasks.status[row] == Status.RELEASING and tasks.node[row] != NOWHERE
    )
    scheduled = counts[Status.BOUND] + counts[Status.RUNNING] + finished + leaving
    if scheduled >= job.min_member:
        return "Completed" if scheduled == finished else "Running"
    phase = PHASES[ssn.snapshot.jobs.phase[job.row]]
    return phase if phase == "Inqueue" else "Pending"


def _conditions(ssn: Session, job: Job) -> list[Condition]:
    """Join old conditions and the new one; one of each type."""
    out = {
        c.type: Condition(c.type, c.status, c.reason, c.message)
        for c in job.group.status.conditions
    }
    new = ssn.conditions.get(job.row)
    if new is not None:
        out[new[0]] = Condition(*new)
    return list(out.values())


def _queue_amounts(ssn: Session) -> dict[str, dict[str, str]]:
    queues, names = ssn.snapshot.queues, ssn.snapshot.resources.names
    totals = {row: queues.allocated[:, row].copy() for row in _listed(ssn)}
    root = queues.row_of.get("root")
    if root is not None:
        for row in _listed(ssn):
            for ancestor in _ancestors(ssn, row, root):
                totals[ancestor] += queues.allocated[:, row]
    return {
        queues.names[row]: {
            name: _format(i, name, amount)
            for i, (name, amount) in enumerate(zip(names, total.tolist(), strict=True))
            if amount >= STEP
        }
        for row, total in totals.items()
    }


def _format(row: int, name: str, amount: float) -> str:
    """Write an amount; scalars beyond cpu, memory and pods are kept in milli-units."""
    return format_quantity(name, amount / 1000 if row > PODS else amount)


def _listed(ssn: Session) -> list[int]:
    queues = ssn.snapshot.queues
    return [row for row in range(queues.n) if queues.listed[row]]


def _ancestors(ssn: Session, row: int, root: int) -> list[int]:
    """Walk up to the root; a queue without parent hangs under it."""
    queues, out = ssn.snapshot.queues, []
    while row != root and len(out) <= queues.n:
        parent = int(queues.parent[row])
        row = root if parent == NOWHERE else parent
        out.append(row)
    return out
