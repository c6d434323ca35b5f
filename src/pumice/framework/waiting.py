"""Why a job waits: one sentence, the message to its pod group, the condition of each waiting pod.

The message to the group is in Volcano's words, rendered from counts.  Nothing is decided here.
"""

import itertools
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from pumice.api.decisions import CLUSTER, RESOURCE_QUOTA, Short, WaitingPod, short_of
from pumice.api.pod_resources import is_pod_count
from pumice.api.quantity import amount_text, grouped
from pumice.api.wording import first_of, span
from pumice.core.resources import IndexArray, Mask
from pumice.core.status import N_STATUS, PENDING, Status
from pumice.core.tables import NOWHERE, wait_number
from pumice.core.views import Job
from pumice.framework.refusals import Place, Stage, Why
from pumice.framework.session_state import SessionState


def gang_message(state: SessionState, job: Job) -> str:
    """Describe how many tasks a gang lacks, and why."""
    lacking = lacking_tasks(state, job)
    return f"{lacking}/{len(job.tasks)} tasks in gang unschedulable: {fit_error(state, job)}"


def lacking_tasks(state: SessionState, job: Job) -> int:
    """Return the number of tasks that a gang lacks: those for which a node was found do not count.

    Below zero for a job that waits for a role although it has enough tasks.
    """
    return int(job.min_member - job.ready - len(_schedulable(state, job)))


def fit_error(state: SessionState, job: Job) -> str:
    """Count a job's tasks by status, its pending ones by reason, and name the first reason.

    Once actions are over, the text is written once: gang's condition and the outcome state it.
    """
    if state.fit_errors is None:
        return _fit_error(state, job)
    key = job.row, state.journal.mark()
    text = state.fit_errors.get(key)
    if text is None:
        text = state.fit_errors[key] = _fit_error(state, job)
    return text


def _fit_error(state: SessionState, job: Job) -> str:
    counts = tuple(job.counts)
    placeable = len(_schedulable(state, job)) if counts[PENDING] else 0
    standing = _standing(counts, job.min_member, placeable, is_ready=_is_ready(job))
    return standing + _origin(state, job)


@lru_cache(maxsize=1024)  # most jobs that wait have the same numbers as others
def _standing(counts: tuple[int, ...], min_member: int, placeable: int, *, is_ready: bool) -> str:
    """Count tasks by status, pending ones by whether a node was found for them."""
    numbers = {Status(code).label: n for code, n in enumerate(counts) if n}
    standing = "pod group is ready" if is_ready else "pod group is not ready"
    text = f"{standing}, {_histogram({**numbers, 'minAvailable': min_member})}"
    pending = counts[PENDING]
    if pending:
        reasons = {"Schedulable": placeable, "Unschedulable": pending - placeable}
        text += f"; Pending: {_histogram({name: n for name, n in reasons.items() if n})}"
    return text


def _schedulable(state: SessionState, job: Job) -> list[int]:
    """List pending tasks for which a node was found before the gang was given up."""
    status = state.snapshot.tasks.status
    return [row for row in state.records.schedulable(job.tasks) if status[row] == PENDING]


def _origin(state: SessionState, job: Job) -> str:
    """Describe why the first task that found no node found none, and in which network domain."""
    no_fit, tasks = state.records.no_fit, state.snapshot.tasks
    found = [row for row in job.tasks if row in no_fit]
    found.sort(key=lambda row: (int(tasks.index[row]), tasks.keys[row]))
    row = next((row for row in found if no_fit[row]), found[0] if found else None)
    if row is None:
        return ""
    return f". Origin reason is {_name(state, row)}: {no_node_text(state, job, row)}"


def no_node_text(state: SessionState, job: Job, row: int) -> str:
    """Describe why a task of a job found no node."""
    reasons = state.records.no_fit[row]
    if reasons:
        return f"{_domain(state, job)}{_unavailable(reasons)}"
    if not state.snapshot.nodes.n:
        return "0/0 nodes are unavailable"
    role = state.task(row).role
    return f"Task {_name(state, row)} with role spec {role} has already predicated failed, skip"


def _unavailable(reasons: Mapping[str, int]) -> str:
    return f"0/{sum(reasons.values())} nodes are unavailable: {_histogram(reasons)}."


def _name(state: SessionState, row: int) -> str:
    return state.snapshot.tasks.keys[row].partition("/")[2]


def _domain(state: SessionState, job: Job) -> str:
    """Name the network domain in which a job was placed; one that was given up tried them all."""
    domain = state.topology.allocated(job) if _is_ready(job) else None
    return f"In hyperNode {domain.name}: " if domain is not None and domain.parent else ""


def _is_ready(job: Job) -> bool:
    return bool(job.ready + job.pending_best_effort >= job.min_member)


def _histogram(numbers: Mapping[str, int]) -> str:
    """Write numbers with their names, sorted as text."""
    return ", ".join(sorted(f"{n} {name}" for name, n in numbers.items()))


Numbers = Mapping[str, Any]
_NAMED = 3
"""Maximum number of victims that are named."""
_FOR_WANT_OF_ROOM = (Why.NO_NODE_FITS, Why.NO_DOMAIN_FITS, Why.OVER_QUOTA)


def waiting_reason(ssn: SessionState, job: Job) -> str:
    """Return why a job still waits; empty if nothing is pending and all its pods exist."""
    pending = job.counts[Status.PENDING]
    unmade = not len(job.tasks) and ssn.is_pending(job.row)
    if not pending and not job.waiting and not unmade:
        return ""
    record = ssn.records.by_job.get(job.row)
    if record is None:
        return _not_reached(ssn, job)
    sentence = _SENTENCES[record.why](ssn, record.numbers)
    if record.stage is Stage.ENQUEUE and record.why is not Why.NOT_ENQUEUED:
        return f"not enqueued: {sentence}"
    found = job.ready + job.waiting + len(given_up(ssn, job))
    if 1 < job.min_member > found and record.why in _FOR_WANT_OF_ROOM:
        sentence += f"; the gang of {job.min_member} is short by {job.min_member - found}"
    return sentence


def delay_text(numbers: Numbers) -> str:
    """Write whose promised start a job would delay, and by how long if it started now."""
    by_s = numbers["by_s"]
    longer = "" if by_s is None or by_s <= 0 else f" by {span(by_s)}"
    return f"{_delay(numbers)}{longer}"


def _delay(numbers: Numbers) -> str:
    """Write whom a job would delay; not by how long: each cycle would write another status."""
    if numbers["start"] is None:
        return f"it waits behind {numbers['delayed']}, which finds no room"
    return f"it would delay {numbers['delayed']}"


def given_up(ssn: SessionState, job: Job) -> list[int]:
    """Return the tasks of a job that found a node and lost it as their gang was not complete."""
    return ssn.records.schedulable(job.tasks)


def _not_reached(ssn: SessionState, job: Job) -> str:
    if ssn.is_pending(job.row) and "enqueue" in ssn.actions:
        return "not enqueued yet"
    if ssn.snapshot.tasks.gated[job.tasks].any():
        return "pods are held back by scheduling gates"
    return "no configured action places its pods"


def _quota(ssn: SessionState, numbers: Numbers) -> str:
    if "resource" not in numbers:
        return f"queue {_queue(ssn, numbers)} takes no more"
    shorts = short_of(numbers)
    compared = "; ".join(map(compared_amounts, shorts))
    absent = [each.resource for each in shorts if not each.limit and not _is_offered(ssn, each)]
    nowhere = f"; no node has any {' or '.join(absent)}" if absent else ""
    return f"{_limit(numbers)}: {compared}{nowhere}"


def _limit(numbers: Numbers) -> str:
    """Describe the limit that refused a job: of the cluster, a resource quota or a queue."""
    at = str(numbers["at"])
    if at == CLUSTER:
        return f"jobs may reserve {numbers.get('factor', 1.0):g} times the cluster"
    return f"over {at}" if at.startswith(RESOURCE_QUOTA) else f"over the limit of queue {at}"


def _is_offered(ssn: SessionState, short: Short) -> bool:
    """Return whether a node has some of a resource; of other things than resources it is open."""
    names = ssn.snapshot.resources.names
    return short.resource not in names or bool(ssn.total[names.index(short.resource)])


@lru_cache(maxsize=1024)  # a queue that is full refuses many jobs with the same numbers
def compared_amounts(short: Short) -> str:
    """Write what is asked for and left of a resource that is short."""
    name, left = short.resource, short.limit - short.used
    request, limit = amount_text(name, short.request), grouped(amount_text(name, short.limit))
    if is_pod_count(name):
        needs = f"needs {request} more {'pod' if request == '1' else 'pods'}"
    else:
        needs = f"needs {grouped(request)} {'CPU' if name == 'cpu' else name}"
    if not short.used:
        return f"{needs}, limit {limit}"
    if left > 0:
        return f"{needs}, {grouped(amount_text(name, left))} of {limit} left"
    over = f" ({grouped(amount_text(name, short.used))} in use or reserved)" if left else ""
    return f"{needs}, none of {limit} left{over}"


def _nodes(ssn: SessionState, numbers: Numbers) -> str:
    nodes, need, idle = numbers["nodes"], numbers["need"], numbers["idle"]
    counted = ", ".join(f"{n} {text}" for text, n in sorted(nodes.items()))
    sentence = f"no node fits {numbers['task']}: 0 of {ssn.snapshot.nodes.n} nodes"
    compared = "".join(
        f"; it asks for {name} {amount_text(name, need[name])}, and "
        + _most_idle(nodes[f"Insufficient {name}"], amount_text(name, max(idle[name], 0.0)))
        for name in need
        if f"Insufficient {name}" in nodes and name in idle
    )
    claim = numbers.get("claim")
    lacking = f"; {claim_reason(claim)}" if claim and "request" in claim else ""
    return f"{sentence} ({counted or 'none was tried'}){compared}{lacking}"


def _most_idle(n: int, amount: str) -> str:
    """Write how much of a resource some nodes have idle, at most."""
    if n == 1:
        return f"that node has {'none' if amount == '0' else amount} idle"
    return "none of those has any idle" if amount == "0" else f"those have at most {amount} idle"


def claim_reason(claim: Numbers) -> str:
    """Describe what a resource claim lacks on the node that comes nearest."""
    found = f"resource claim {claim['claim']}"
    if claim["request"]:
        wanted = claim["wanted"] or "all"
        found += f", request {claim['request']}: asks for {wanted} of {claim['class_name']}"
        found += f"; {claim['node']} has {claim['matching']} that match, {claim['free']} free"
    else:
        found += f" on {claim['node']}"
    return f"{found}: {claim['problem']}" if claim["problem"] else found


def _leaving(_: SessionState, numbers: Numbers) -> str:
    victims = numbers["victims"]
    named = f": {first_of(victims, _NAMED)}" if victims else ""
    return f"waiting for terminating pods{named}"


def _domains(_: SessionState, numbers: Numbers) -> str:
    limit = numbers["limit"]
    reach = "" if limit is None else f" up to tier {limit}"
    large, total = numbers["large"], numbers["total"]
    return f"no network domain{reach} takes it: {large} of {total} look large enough"


def _queue(ssn: SessionState, numbers: Numbers) -> str:
    queue = numbers.get("queue")
    return "its queue" if queue is None else ssn.snapshot.queues.names[queue]


_SENTENCES: dict[Why, Callable[[SessionState, Numbers], str]] = {
    Why.NOT_VALID: lambda _, n: f"not valid: {n['problem']}",
    Why.PLUGIN_FAILED: lambda _, n: n["problem"],
    Why.NOT_ENQUEUED: lambda ssn, n: f"not enqueued: queue {_queue(ssn, n)} or the cluster is full",
    Why.NOT_TAKEN: lambda *_: "no configured action places its pods",
    Why.QUEUE_OVERUSED: lambda ssn, n: f"queue {_queue(ssn, n)} already has its share",
    Why.QUEUE_CLOSED: lambda ssn, n: f"queue {_queue(ssn, n)} is not open",
    Why.QUEUE_MISPLACED: lambda ssn, n: f"queue {_queue(ssn, n)} is misplaced: {n['problem']}",
    Why.WOULD_DELAY: lambda _, n: _delay(n),
    Why.QUEUE_POSITION: lambda ssn, n: f"jobs before it in queue {_queue(ssn, n)} take the room",
    Why.OVER_QUOTA: _quota,
    Why.NO_NODE_FITS: _nodes,
    Why.NO_DOMAIN_FITS: _domains,
    Why.GANG_SHORT: lambda _, n: (
        f"not ready with the {n['placed']} tasks that found a place; it needs {n['needed']}"
    ),
    Why.WAITING_FOR_EVICTION: _leaving,
    Why.SCHEDULED: lambda *_: "placed as far as its gang needs; further pods wait",
}


UNSCHEDULABLE = "Unschedulable"
"""The reason by which autoscalers find pods."""
SCHEDULABLE = "Schedulable"
_PROMISED = [int(status) for status in (Status.ALLOCATED, Status.PIPELINED)]
_UNPLACED = [PENDING, *_PROMISED]
_WAITS = np.isin(np.arange(N_STATUS), _UNPLACED)
_NONE = -1


def waiting_pods(ssn: SessionState, *, only_changes: bool) -> dict[str, WaitingPod]:
    """Return why pods of jobs in the session wait; gated ones are the cluster's to report.

    With ``only_changes`` only those whose own status says something else, or that still name a
    node that was promised to them before.
    """
    tasks = ssn.snapshot.tasks
    rows = _waiting_rows(ssn, ssn.left_out & only_changes)
    if not len(rows):
        return {}
    texts = _Texts(ssn)
    texts.find(rows)
    which = texts.which[rows]
    if only_changes:
        numbers = np.array([wait_number(*each) for each in texts.made], dtype=np.int64)
        stale = (tasks.nominated[rows] != NOWHERE) & (tasks.status[rows] == PENDING)
        changed = (numbers[which] != tasks.stated_wait[rows]) | stale
        rows, which = rows[changed], which[changed]
    return {
        tasks.keys[row]: WaitingPod(*texts.made[text])
        for row, text in zip(rows.tolist(), which.tolist(), strict=True)
    }


def _waiting_rows(ssn: SessionState, left_out: Mask) -> IndexArray:
    """Return the pods without a node of jobs that the session contains, but for gated ones."""
    tasks, jobs = ssn.snapshot.tasks, ssn.snapshot.jobs
    owners = np.flatnonzero(jobs.listed & jobs.counts[_UNPLACED].any(axis=0) & ~left_out)
    found = itertools.chain.from_iterable(jobs.tasks[job] for job in owners.tolist())
    rows = np.sort(np.fromiter(found, dtype=np.intp))
    return rows[_WAITS[tasks.status[rows]] & ~tasks.gated[rows]]


class _Texts:
    """The reasons and messages of a session's pods, each made once."""

    def __init__(self, ssn: SessionState) -> None:
        self._ssn = ssn
        self.which = np.full(ssn.snapshot.tasks.n, _NONE, dtype=np.int64)
        """The text of each task that waits (n,)."""
        self.made: list[tuple[str, str]] = []
        """Reason and message by text."""

    def find(self, rows: IndexArray) -> None:
        """Find the texts of tasks: what they found, why they found nothing, or the job's."""
        tasks = self._ssn.snapshot.tasks
        self._failed(rows)
        self._promised(rows[tasks.status[rows] != PENDING])
        self._lost()
        self._of_jobs(rows[self.which[rows] == _NONE])

    def _add(self, reason: str, message: str) -> int:
        self.made.append((reason, message))
        return len(self.made) - 1

    def _failed(self, tried: IndexArray) -> None:
        """Tasks that found no node; equal ones share their numbers of nodes by reason."""
        ssn, no_fit = self._ssn, self._ssn.records.no_fit
        rows = [row for row in tried.tolist() if row in no_fit]
        owners = ssn.snapshot.tasks.job[rows].tolist()
        has_topology = ssn.snapshot.jobs.has_topology
        known: dict[int, int] = {}
        texts = []
        for row, job in zip(rows, owners, strict=True):
            reasons = no_fit[row]
            text = known.get(id(reasons))
            if text is None:
                text = self._add(UNSCHEDULABLE, no_node_text(ssn, ssn.job(job), row))
                if reasons and not has_topology[job]:  # else the text is of its pod or job
                    known[id(reasons)] = text
            texts.append(text)
        self.which[rows] = texts

    def _promised(self, rows: IndexArray) -> None:
        """Tasks that have a place in this session, but are not bound to it."""
        tasks = self._ssn.snapshot.tasks
        for row in rows.tolist():
            pipelined = int(tasks.status[row]) == Status.PIPELINED
            self._place(row, Place(int(tasks.node[row]), pipelined))

    def _lost(self) -> None:
        """Tasks that had a place until their gang was given up."""
        for row, place in self._ssn.records.given_up.items():
            self._place(row, place)

    def _place(self, row: int, place: Place) -> None:
        snapshot = self._ssn.snapshot
        found = f"Pod {snapshot.tasks.keys[row]} can possibly be assigned to "
        found += snapshot.nodes.names[place.node]
        if place.pipelined:
            once = "once resource is released and minAvailable is satisfied"
            self.which[row] = self._add(UNSCHEDULABLE, f"{found}, {once}")
        else:
            self.which[row] = self._add(SCHEDULABLE, f"{found}, once minAvailable is satisfied")

    def _of_jobs(self, rows: IndexArray) -> None:
        """Tasks that were not tried: their text is that of their job."""
        ssn, owners = self._ssn, self._ssn.snapshot.tasks.job[rows]
        jobs, at = np.unique(owners, return_inverse=True)
        texts = [self._add(UNSCHEDULABLE, fit_error(ssn, ssn.job(job))) for job in jobs.tolist()]
        self.which[rows] = np.array(texts, dtype=np.int64)[at]
