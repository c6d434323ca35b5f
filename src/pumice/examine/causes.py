"""Why a job waits, from the session that decides: every gate, and the causes in their order."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Final

import numpy as np

from pumice.api.codes import Cause
from pumice.api.decisions import Decisions
from pumice.api.quantity import amount_text, base_units
from pumice.api.wording import counted, first_of, part_of_its, span, verb
from pumice.core.status import PHASE_CODE, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import count_roles, minima
from pumice.examine.findings import EXTENDER, Finding, ObjectRef, Position, failed_in
from pumice.examine.gang_needs import (
    gang_refused,
    gang_request,
    held_back,
    incomplete_parts,
    pending_rows,
    pod_refused,
    still_needed,
)
from pumice.examine.job_outcome import JobOutcome, Watcher
from pumice.examine.limits import closed, further_limits, overused, refused, refused_by_quotas
from pumice.examine.node_causes import NO_NODES, finding_of
from pumice.examine.node_constraints import Funnel
from pumice.examine.order_keys import OrderBook
from pumice.examine.placement import Trial, at_its_turn, placement_findings, try_alone
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import PERMIT, REJECT, Record, Refusal, Stage, Why
from pumice.framework.session import Session
from pumice.framework.waiting import delay_text

_NAMED: Final = 3
_IN_ITS_QUEUE = (Stage.QUEUE, Stage.QUOTA)
_ALLOCATE: Final = "allocate"
_EVICTING: Final = ("preempt", "gangpreempt", "reclaim", "gangreclaim")


# Gates as the cycle begins, other jobs aside


@dataclass
class Examination:
    """The findings at the beginning of the cycle."""

    invalid: list[Finding] = field(default_factory=list)
    admission: list[Finding] = field(default_factory=list)
    queue: list[Finding] = field(default_factory=list)
    """Its queue's answer when its pods are to be placed."""
    nodes: list[Finding] = field(default_factory=list)
    holds_when_empty: bool = False
    """Whether the nodes would refuse in an empty cluster, too."""
    funnel: Funnel | None = None
    starts: bool = False
    """Whether it would start as the only job."""

    def findings(self, refused: Sequence[Finding] = (), *, unmade: bool = False) -> list[Finding]:
        """List all, the decisive one first: the one order of causes.

        Pods that quotas ``refused`` are missing, so that is not a cause beside the quotas.  A quota
        that keeps the job from being admitted is named once.

        A job gets its pods once it is admitted.  While they are ``unmade``, a scheduler knows of no
        node that refuses them, so what keeps the job from being admitted is decisive, also for
        those who know the pods that it will have; unless no node can ever meet their requests.
        """
        invalid = self.invalid
        if refused:
            invalid = [each for each in invalid if each.code not in (*_MISSING, *_OF_MISSING)]
            known = {each.about for each in self.admission}
            refused = [each for each in refused if each.about not in known]
        if unmade and self.admission and not self._is_unmeetable:
            return _joined_limits([*invalid, *self.admission, *refused, *self._in_order()])
        return _joined_limits([*invalid, *refused, *self._in_order()])

    @property
    def _is_unmeetable(self) -> bool:
        """Whether no node is large enough for pods that the job needs, even when empty."""
        numbers = self.nodes[0].numbers if self.nodes and self.holds_when_empty else {}
        return "resources" in numbers and not numbers["left"]

    def _in_order(self) -> list[Finding]:
        """List what is wrong with its queue and its nodes; of the two, what holds longer first."""
        own = [each for each in self.admission + self.queue if not self._follows(each)]
        closed = [each for each in own if each.code in _CLOSED]
        others = [each for each in own if each.code not in _CLOSED]
        # a queue without a limit of its own is full because the nodes are
        echoes = [each for each in others if each.numbers.get("wholeCluster") and self.nodes]
        others = [each for each in others if each not in echoes]
        echoes = [each for each in echoes if each.code is Cause.NOT_ADMITTED]
        # but a gang larger than the cluster is refused when the nodes are empty, too
        too_large = [e for e in echoes if e.numbers["request"] > e.numbers["limit"]]
        echoes = [each for each in echoes if each not in too_large]
        lasting, now = (self.nodes, []) if self.holds_when_empty else ([], self.nodes)
        return [*closed, *lasting, *too_large, *others, *now, *echoes]

    def _follows(self, finding: Finding) -> bool:
        """Return whether limits of zero follow from resources that no node has at all."""
        numbers = finding.numbers
        if self.nodes and not self.nodes[0].numbers.get("nodes", 1):
            return finding.code not in _CLOSED  # a cluster without nodes has nothing to share
        if "limit" not in numbers:
            return False
        absent = {
            name
            for node in self.nodes
            for name, amounts in node.numbers.get("resources", {}).items()
            if not amounts["largest"]
        }
        shorts = [numbers, *numbers.get("more", ())]
        return all(each["resource"] in absent and not each["limit"] for each in shorts)


_MISSING: Final = (Cause.NO_PODS, Cause.TOO_FEW_PODS, Cause.ROLE_SHORT)
_OF_MISSING: Final = (Cause.QUOTA_EXCEEDED,)
"""Why pods are missing."""
_CLOSED: Final = (Cause.QUEUE_CLOSED, Cause.QUEUE_MISPLACED)


def _joined_limits(findings: list[Finding]) -> list[Finding]:
    """Leave out repeated findings; the first limit of a queue lists those above it."""
    found = distinct(findings)
    limits = [
        (each.about.name, each)
        for each in found
        if each.code is Cause.QUEUE_OVER_CAPABILITY and each.about and "limit" in each.numbers
    ]
    above = [{"queue": name, **each.numbers} for name, each in limits[1:]]
    if not above:
        return found
    first = limits[0][1]
    joined = replace(first, numbers={**first.numbers, "above": above})
    return [joined if each is first else each for each in found]


def distinct(findings: list[Finding]) -> list[Finding]:
    """Leave out repeated findings: the same code about the same object."""
    kept: dict[Any, Finding] = {}
    for each in findings:
        kept.setdefault((each.code, each.about if each.code not in _NODE_LIKE else None), each)
    return list(kept.values())


_NODE_LIKE: Final = frozenset({Cause.INSUFFICIENT_RESOURCE, Cause.TAINT, Cause.NODE_SELECTOR})


def examine(ssn: Session, job: int) -> Examination:
    """Ask every gate that a job has to pass, at this moment of a session."""
    found = Examination(invalid=list(_invalid(ssn, job)) + list(_gated(ssn, job)))
    incomplete = None if found.invalid else incomplete_parts(ssn, job)
    found.invalid += [] if incomplete is None else [incomplete]
    found.invalid += _unplaced_by(ssn, job)
    if ssn.is_pending(job) and "enqueue" in ssn.actions:
        found.admission = list(_admission(ssn, job))
        if any(each.code is Cause.QUEUE_CLOSED for each in found.admission):
            with _opened(ssn, job):
                found.admission += _admission(ssn, job)
    if not pending_rows(ssn, job):
        found.queue += closed(ssn, job)
        found.holds_when_empty = not ssn.snapshot.nodes.n
        found.nodes = [NO_NODES] if found.holds_when_empty else []
        return found
    queue = int(ssn.snapshot.jobs.queue[job])
    if ssn.policy.overused(queue):
        found.queue.append(overused(ssn, queue))
    trial = try_alone(ssn, job)
    found.starts = trial.starts and not found.queue
    if not trial.starts:
        found.queue += _quota(ssn, job, trial)
        if any(each.code is Cause.QUEUE_CLOSED for each in found.queue):
            with _opened(ssn, job):
                found.queue += _quota(ssn, job, try_alone(ssn, job))
        found.nodes = list(placement_findings(ssn, job, trial))
        found.funnel = trial.funnels[0] if trial.funnels else None
        found.holds_when_empty = trial.is_hopeless
    return found


@contextmanager
def _opened(ssn: Session, job: int) -> Iterator[None]:
    """Open a job's queue temporarily, to find further causes."""
    queues, row = ssn.snapshot.queues, int(ssn.snapshot.jobs.queue[job])
    state, queues.open[row] = bool(queues.open[row]), True
    try:
        yield
    finally:
        queues.open[row] = state


# Validity


def _invalid(ssn: Session, job: int) -> Iterator[Finding]:
    """Yield the objections of plugins to the job as such."""
    view = ssn.job(job)
    if not view.tasks and ssn.is_pending(job) and "enqueue" in ssn.actions:
        return  # its pods are created once it is admitted
    for plugin, ask in ssn.hooks.bound(Plugin.job_valid):
        problem = ask(view)
        if not problem:
            continue
        failed = failed_in(ssn, plugin, "job_valid")
        fallback = Finding(
            Cause.INVALID, f"{plugin.name}: {problem}", None, {"plugin": plugin.name}
        )
        missing = None if failed else _too_few(ssn, job) or incomplete_parts(ssn, job)
        quotas = [] if missing is None else _quotas_of_missing(ssn, job, missing)
        yield from quotas or [failed or missing or fallback]


def _quotas_of_missing(ssn: Session, job: int, missing: Finding) -> list[Finding]:
    """List the resource quotas that keep a gang from getting the pods that it lacks."""
    needed = int(missing.numbers.get("needed") or ssn.job(job).min_member)
    return list(refused_by_quotas(ssn, job, needed - int(missing.numbers["pods"])))


def _too_few(ssn: Session, job: int) -> Finding | None:
    """Return the finding of a gang that lacks pods, None for other problems."""
    view = ssn.job(job)
    alive = [Status(code) for code in range(len(view.counts)) if Status(code) is not Status.FAILED]
    statuses = [each for each in alive if each not in (Status.RELEASING, Status.UNKNOWN)]
    there = sum(view.counts[each] for each in statuses)
    pods = count_roles(view, set(statuses))
    about = ObjectRef.of_key("PodGroup", view.key)
    for role, least in minima(view).items():
        if pods.get(role, 0) < least and there >= view.min_member:
            numbers = {"role": role, "pods": pods.get(role, 0), "needed": least}
            text = f"role {role} has {counted(pods.get(role, 0), 'pod')} and needs {least}"
            return Finding(Cause.ROLE_SHORT, text, about, numbers)
    if not there and not view.tasks:
        return Finding(Cause.NO_PODS, "its pod group has no pods", about, {"pods": 0})
    if there < view.min_member:
        numbers = {"pods": there, "minMember": view.min_member}
        text = f"it has {counted(there, 'pod')} and needs {view.min_member} to start"
        return Finding(Cause.TOO_FEW_PODS, text, about, numbers)
    return None


def _gated(ssn: Session, job: int) -> Iterator[Finding]:
    """Yield gates that hold back pods which the gang needs."""
    view, tasks = ssn.job(job), ssn.snapshot.tasks
    gated = held_back(ssn, job)
    if not gated:
        return
    pods: list[Any] = [tasks.pods[row] for row in gated]
    names = sorted({gate.name for pod in pods for gate in pod.spec.scheduling_gates})
    yield Finding(
        Cause.GATED,
        f"the scheduling gate {', '.join(names)} holds back "
        f"{part_of_its(len(gated), len(view.tasks), 'pod')}",
        ObjectRef.of_key("Pod", tasks.keys[gated[0]]),
        {"gated": len(gated), "pods": len(view.tasks), "gates": names},
    )


def _unplaced_by(ssn: Session, job: int) -> Iterator[Finding]:
    """Yield a missing action without which its pods are never considered."""
    tasks = ssn.snapshot.tasks
    rows = ssn.pending_tasks(job)
    needed = {"backfill" if tasks.best_effort[row] else "allocate" for row in rows}
    if ssn.is_pending(job) and not rows and "enqueue" not in ssn.actions:
        needed.add("allocate")
    for action in sorted(needed - set(ssn.actions)):
        what = "pods without requests" if action == "backfill" else "pods"
        text = f"the configuration has no action {action}, which places {what}"
        yield Finding(
            Cause.ACTION_MISSING, text, None, {"action": action, "actions": list(ssn.actions)}
        )


# Admission


def _admission(ssn: Session, job: int) -> Iterator[Finding]:
    """Yield the votes against admitting the job, if they decide."""
    if not ssn.snapshot.jobs.has_min_resources[job] or ssn.policy.job_enqueueable(job):
        return
    view = ssn.job(job)
    for tier in ssn.hooks.tiers(Plugin.job_enqueueable):
        permitted = False
        for plugin, ask in tier:
            vote = ask(view)
            if isinstance(vote, Refusal) or vote <= REJECT:
                found = _vote(ssn, job, plugin, vote)
                yield from (found, *further_limits(ssn, job, found, admitting=True))
            elif vote >= PERMIT:
                permitted = True
        if permitted:
            return


def _vote(ssn: Session, job: int, plugin: Plugin, vote: Any) -> Finding:
    failed = failed_in(ssn, plugin, "job_enqueueable")
    if failed is not None:
        return failed
    if isinstance(vote, Refusal):
        found = refused(ssn, vote.code, vote.why, vote.numbers, job, admitting=True)
        return _with_needs(ssn, job, found)
    code = Cause.EXTENDER_REFUSED if plugin.name == EXTENDER else Cause.NOT_ADMITTED
    return Finding(code, f"{plugin.name} votes against admitting it", None, {"by": plugin.name})


def _with_needs(ssn: Session, job: int, finding: Finding) -> Finding:
    """Return a refusal to admit a job with what its pods need, where that is less than it states.

    ``minResources`` of a pod group may be more than its pods ask for.
    """
    shorts = [finding.numbers, *finding.numbers.get("more", ())]
    asked = gang_request(ssn, job) if "resource" in finding.numbers else None
    view, names = ssn.job(job), ssn.snapshot.resources.names
    if asked is None or view.ready or len(view.tasks) < view.min_member:
        return finding
    less = {
        name: float(asked[names.index(name)])
        for each in shorts
        if (name := str(each["resource"])) in names
        and base_units(name, float(asked[names.index(name)])) < each["request"]
    }
    if not less:
        return finding
    listed = ", ".join(f"{name} {amount_text(name, amount)}" for name, amount in less.items())
    needed = {name: base_units(name, amount) for name, amount in less.items()}
    text = f"{finding.text}; its pods need only {listed}, so minResources may be lower"
    return replace(finding, text=text, numbers={**finding.numbers, "needed": needed})


def _quota(ssn: Session, job: int, trial: Trial) -> Iterator[Finding]:
    """Yield the objections of its queue to its pods: to all that the gang needs, or to one."""
    record = trial.quota
    if record is not None:
        failed = _failed_vote(ssn, job, record)
        if failed is not None:
            yield failed
            return
    together = gang_refused(ssn, job) if record is None or "resource" in record.numbers else None
    if together is None and record is not None and "resource" in record.numbers:
        together = pod_refused(ssn, job, record, trial.before_quota)
    record = together or record
    if record is None:
        return
    code = record.code or Cause.PLUGIN_REFUSED
    stated = "resource" in record.numbers and record.numbers["at"] in ssn.snapshot.queues.row_of
    if code is Cause.PLUGIN_REFUSED and stated:
        code = Cause.QUEUE_OVER_CAPABILITY  # of devices, which no code of their own counts
    found = refused(ssn, code, record.why, record.numbers, job)
    yield from (found, *further_limits(ssn, job, found))


def _failed_vote(ssn: Session, job: int, record: Record) -> Finding | None:
    """Return that a plugin failed whose safe answer refuses a pod."""
    queue = ssn.queue(int(ssn.snapshot.jobs.queue[job]))
    task = ssn.task(ssn.snapshot.tasks.row_of[record.numbers["task"]])
    for plugin, ask in ssn.hooks.bound(Plugin.allocatable):
        failed = failed_in(ssn, plugin, "allocatable")
        if failed is not None and not ask(queue, task):
            return failed
    return None


# One cycle, observed for one job


class Examiner(Watcher):
    """Asks every gate as the cycle begins; at its end finds the jobs ahead."""

    def __init__(self, key: str, cycle: int = 1) -> None:
        super().__init__(key, cycle)
        self.book: OrderBook | None = None
        """Keys that others use, too; made if missing."""
        self.asks = True
        """Whether every gate is asked, or only the outcome is observed."""
        self.examination: Examination | None = None
        self.position: Position | None = None
        self.actions: tuple[str, ...] = ()
        """The actions of the configuration, in their order."""
        self.ahead: Finding | None = None
        self.limit: Finding | None = None
        """The limit of a queue that leaves no room beside the jobs ahead."""
        self.shut: list[Finding] = []
        """Constraints without which nodes would have room beside jobs ahead, or stuck pods."""

    def opened(self, ssn: Session) -> None:
        """Ask every gate."""
        super().opened(ssn)
        self.actions = tuple(ssn.actions)
        row = ssn.snapshot.jobs.row_of.get(self._key)
        if row is None or not ssn.snapshot.jobs.listed[row]:
            return
        self._book = self.book or OrderBook(ssn)
        self._stated = ssn.snapshot.jobs.phase.copy()
        self.examination = examine(ssn, row) if self.asks else Examination()

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Find the jobs that went first."""
        super().decided(ssn, decisions)
        row = ssn.snapshot.jobs.row_of.get(self._key)
        if row is None or self.examination is None:
            return
        self.position = self._place(ssn, row)
        if self.outcome.started or self.outcome.makes_room or not self.asks:
            return
        self.ahead = self._who_is_ahead(ssn, row)
        if self.ahead is not None:
            self.limit = self._limit_beside_them(ssn, row)
        if self.ahead is not None or self.outcome.is_stuck:
            self.shut = list(self._shut_beside_them(ssn, row))

    def _place(self, ssn: Session, row: int) -> Position | None:
        jobs, queues = ssn.snapshot.jobs, ssn.snapshot.queues
        queue = int(jobs.queue[row])
        line = self._book.jobs.get(queue, [])
        if row not in line:
            return None
        at = line.index(row)
        before = line[max(0, at - _NAMED) : at]
        turn = ssn.records.turns.get(row)
        return Position(
            queue=queues.names[queue],
            place=at + 1,
            of=len(line),
            queue_place=self._book.queues.index(queue) + 1,
            queues=len(self._book.queues),
            turn=None if turn is None else turn + 1,
            behind=[(jobs.keys[each], self._book.why(each, row)) for each in before],
        )

    def _who_is_ahead(self, ssn: Session, row: int) -> Finding | None:
        """Return the jobs that received in this cycle what the job needs, the first one first."""
        jobs = ssn.snapshot.jobs
        stop = self.outcome.last
        if stop is not None and stop.stage is Stage.ENQUEUE:
            rows = self._admitted(ssn)
        else:
            rows = self._served(ssn, row)
        rows = [each for each in rows if each != row]
        if stop is not None and stop.stage in _IN_ITS_QUEUE:
            rows = [each for each in rows if self._shares_queue(ssn, each, row)]
        if not rows:
            return None
        turns = ssn.records.turns
        rows.sort(key=lambda each: (turns.get(each, len(turns)), jobs.keys[each]))
        names = [jobs.keys[each] for each in rows]
        key = self._book.why(rows[0], row)
        admitted = stop is not None and stop.stage is Stage.ENQUEUE
        return Finding(
            Cause.JOB_AHEAD,
            _went_first(names, "admitted" if admitted else "placed", key),
            ObjectRef.of_key("PodGroup", names[0]),
            {"jobs": names, "key": key},
        )

    def _limit_beside_them(self, ssn: Session, row: int) -> Finding | None:
        """Return the limit of a queue that the job and those ahead of it exceed together."""
        record = ssn.records.by_job.get(row)
        if record is None or record.why is not Why.OVER_QUOTA:
            return None
        if record.numbers.get("at") not in ssn.snapshot.queues.row_of:
            return None
        admitting = record.stage is Stage.ENQUEUE
        code = Cause.QUEUE_OVER_CAPABILITY
        found = refused(ssn, code, record.why, record.numbers, row, admitting=admitting)
        return None if found.numbers.get("wholeCluster") else found

    def _shut_beside_them(self, ssn: Session, row: int) -> Iterator[Finding]:
        """Yield the constraints that alone keep the job from nodes which others left free."""
        promised = [ssn.snapshot.tasks.row_of[pod] for pod in self.outcome.promised]
        rows = ssn.ordering.sort_tasks([*promised, *pending_rows(ssn, row)])
        if not rows or self.examination is None or not self.examination.starts:
            return
        funnel = Funnel(ssn, ssn.task(rows[0]))
        needed = min(max(still_needed(ssn, row) + len(promised), 1), len(rows))
        for constraint, opened in funnel.but_for():
            held = funnel.holds(funnel.fitting | opened)
            if constraint.code is not Cause.INSUFFICIENT_RESOURCE and held >= needed:
                yield finding_of(funnel, constraint)

    def _admitted(self, ssn: Session) -> list[int]:
        """List the jobs that this cycle admitted to their queue."""
        jobs = ssn.snapshot.jobs
        pending = np.isin(self._stated, [PHASE_CODE[""], PHASE_CODE["Pending"]])
        now = jobs.phase[: len(pending)] == PHASE_CODE["Inqueue"]
        return np.flatnonzero(pending & now & jobs.listed[: len(pending)]).tolist()

    def _served(self, ssn: Session, row: int) -> list[int]:
        """List the jobs whose pods got room in this cycle that the job could use."""
        tasks, decided = ssn.snapshot.tasks, self.decisions
        pods = [tasks.row_of[pod] for pod in {**decided.binds, **decided.pipelined}]
        pending = ssn.ordering.sort_tasks(ssn.pending_tasks(row))
        if pending:
            usable = Funnel(ssn, ssn.task(pending[0])).usable
            pods = [pod for pod in pods if usable[tasks.node[pod]]]
        rows = {int(tasks.job[pod]) for pod in pods}
        return [each for each in rows if each != NOWHERE]

    def _shares_queue(self, ssn: Session, other: int, row: int) -> bool:
        jobs = ssn.snapshot.jobs
        return int(jobs.queue[other]) == int(jobs.queue[row]) or self._at_above()

    def _at_above(self) -> bool:
        """Return whether a queue above the job's own refused it."""
        stop = self.outcome.last
        at = stop.numbers.get("at") if stop is not None else None
        return at is not None and at != self.outcome.queue


def _went_first(names: list[str], done: str, key: str) -> str:
    """Describe which jobs were placed or admitted before, and by which key."""
    n = len(names)
    who = f"job {names[0]}" if n == 1 else f"{counted(n, 'job')} ({first_of(names, _NAMED)})"
    why = f"; {names[0]} goes first: {key}" if key else ""
    was, hold = verb(n, "was", "were"), verb(n, "holds", "hold")
    return f"{who} {was} {done} before it in this cycle and {hold} what it needs{why}"


# Causes, the decisive one first


def session_causes(
    examiner: Examiner,
    early: list[Finding] | None = None,
    *,
    refused: Sequence[Finding] = (),
    unmade: bool = False,
) -> list[Finding]:
    """List the causes for which a job waits, the decisive one first.

    ``early`` are those found before any session, ``refused`` are quotas that refuse pods, which the
    session does not have then.  The pods of an ``unmade`` job in the session are only expected: a
    cluster does not have them yet.
    """
    outcome, examination = examiner.outcome, examiner.examination
    if (outcome.makes_room or outcome.is_stuck) and not early and not _lacks_action(examination):
        return [_waits_for_evicted(outcome), *(examiner.shut if outcome.is_stuck else ())]
    later = [*refused]
    if examination is not None:
        later = examination.findings(refused, unmade=unmade)
    was_first = examiner.ahead is None
    later = [at_its_turn(each, outcome, was_first=was_first) for each in later]
    if early:  # causes that keep pods from being created, or from being ours, are reported once
        later = [each for each in later if each.code not in (Cause.TOO_FEW_PODS, Cause.NO_PODS)]
    found = [*(early or ()), *later, *_would_delay(outcome)]
    found += _no_pods(outcome, found)
    if found:
        return found
    if outcome.is_idly_promised and _promising(examiner.actions):
        return [_never_bound(examiner.actions)]
    if examiner.ahead is None:
        return [as_recorded(outcome)]
    return [examiner.ahead, *([] if examiner.limit is None else [examiner.limit]), *examiner.shut]


def _would_delay(outcome: JobOutcome) -> Iterator[Finding]:
    """Yield whose promised start a job would delay, if it is held back for that."""
    stop = outcome.stops.get(Stage.QUEUE)
    if stop is not None and stop.why is Why.WOULD_DELAY:
        about = ObjectRef.of_key("PodGroup", str(stop.numbers["delayed"]))
        yield Finding(Cause.WOULD_DELAY, delay_text(stop.numbers), about, {**stop.numbers})


def _no_pods(outcome: JobOutcome, found: list[Finding]) -> list[Finding]:
    """Yield a pod group without pods, if no other cause explains that."""
    if outcome.counts or found or outcome.awaits_entry:
        return []
    about = ObjectRef.of_key("PodGroup", outcome.job)
    when = "it is admitted to its queue now; " if outcome.is_admitted else ""
    return [Finding(Cause.NO_PODS, f"{when}its pod group has no pods", about, {"pods": 0})]


_CODES = {
    Why.PLUGIN_FAILED: Cause.PLUGIN_FAILED,
    Why.NOT_VALID: Cause.INVALID,
    Why.NOT_ENQUEUED: Cause.NOT_ADMITTED,
    Why.NOT_TAKEN: Cause.ACTION_MISSING,
    Why.QUEUE_OVERUSED: Cause.QUEUE_OVER_DESERVED,
    Why.QUEUE_CLOSED: Cause.QUEUE_CLOSED,
    Why.QUEUE_MISPLACED: Cause.QUEUE_MISPLACED,
    Why.QUEUE_POSITION: Cause.JOB_AHEAD,
    Why.WOULD_DELAY: Cause.WOULD_DELAY,
    Why.OVER_QUOTA: Cause.QUEUE_OVER_CAPABILITY,
    Why.NO_NODE_FITS: Cause.INSUFFICIENT_RESOURCE,
    Why.NO_DOMAIN_FITS: Cause.NETWORK_DOMAIN,
    Why.GANG_SHORT: Cause.GANG_SHORT,
    Why.SCHEDULED: Cause.GANG_SHORT,
    Why.WAITING_FOR_EVICTION: Cause.WAITING_FOR_EVICTED,
}


def as_recorded(outcome: JobOutcome) -> Finding:
    """Return the record of the cycle, where no gate gave a cause."""
    why = outcome.last.why if outcome.last is not None else Why.NOT_TAKEN
    return Finding(_CODES[why], outcome.sentence or why.value)


def _lacks_action(examination: Examination | None) -> bool:
    """Return whether a promise is never kept, as no action places pods."""
    found = [] if examination is None else examination.invalid
    return any(each.code is Cause.ACTION_MISSING for each in found)


def _promising(actions: Sequence[str]) -> list[str]:
    """List the evicting actions that come before allocate."""
    before = list(takewhile(lambda action: action != _ALLOCATE, actions))
    return [action for action in before if action in _EVICTING] if _ALLOCATE in actions else []


def _never_bound(actions: Sequence[str]) -> Finding:
    """Return that pods are promised free places in each cycle, so that allocate skips them."""
    first = _promising(actions)[0]
    text = (
        f"the action {first} comes before {_ALLOCATE} and promises free places to its pods in each "
        f"cycle, so {_ALLOCATE}, which binds pods, skips them"
    )
    numbers = {"action": _ALLOCATE, "actions": list(actions)}
    return Finding(Cause.ACTION_MISSING, text, None, numbers)


def _waits_for_evicted(outcome: JobOutcome) -> Finding:
    pods, late = list(outcome.making_room), outcome.overdue
    going = [pod for pod in pods if pod not in late]
    text, numbers = "its place is promised", {"pods": pods, "seconds": outcome.leaves_in_s}
    if going:
        leave = f"{counted(len(going), 'pod')} {verb(len(going), 'leaves', 'leave')}"
        within = f"(within {outcome.leaves_in_s:g} s)"
        text += f"; {leave} for it: {first_of(going, _NAMED)} {within}"
    if late:
        stuck = {pod: seconds for pod, seconds in late.items() if pod in pods}
        numbers["overdue"] = stuck
        ago = span(max(stuck.values()))
        text += f"; {first_of([*stuck], _NAMED)} should have gone {ago} ago, may be stuck"
    about = ObjectRef.of_key("Pod", (going or pods)[0])
    return Finding(Cause.WAITING_FOR_EVICTED, text, about, numbers)
