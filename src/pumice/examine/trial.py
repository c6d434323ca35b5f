"""One job placed as if it were the only one, and rolled back.

Shows what stops a job independently of others: its queue, its nodes, its gang.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pumice.core.status import Status
from pumice.core.views import Task
from pumice.examine.funnel import Funnel
from pumice.examine.needed_pods import needs_some, pending_rows
from pumice.framework.arguments import AllocateArguments, arguments_of
from pumice.framework.job_placement import JobMemory, JobPlacement
from pumice.framework.job_records import Record, Records, Stage
from pumice.framework.refusals import Reason
from pumice.framework.roles import READY, count_roles, minima
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.framework.topology.search import DomainSearch

_MOST_SHAPES = 8
"""Maximum number of different pods of a job that are examined."""


@dataclass(kw_only=True)
class Trial:
    """The outcome of the trial."""

    starts: bool = False
    """Whether it has all it needs to start, now or once leaving pods are gone."""
    placed: int = 0
    """Its pods with a node, including those of earlier cycles."""
    best_effort: int = 0
    """Its waiting pods without requests: a gang counts them as placed."""
    needed: int = 0
    short_roles: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Role to how many of its pods have a node, and how many must."""
    quota: Record | None = None
    """Its queue's refusal of one of its pods."""
    before_quota: list[int] = field(default_factory=list)
    """Its pods that had a node by then, which the queue counted as used."""
    domain: Record | None = None
    """The refusal by network domains."""
    starts_anywhere: bool = True
    """Whether it would start if any domain were allowed."""
    barred: dict[str, Reason] = field(default_factory=dict)
    """Pod to why no node at all can take it."""
    funnels: list[Funnel] = field(default_factory=list)
    """The nodes for each kind of pod that found none, the decisive one first."""
    needs_hopeless: bool = True
    """Whether it cannot start without pods that no node takes, even in an empty cluster."""
    needs_barred: bool = True
    """Whether it cannot start without pods that no node takes at all."""

    @property
    def is_hopeless(self) -> bool:
        """Whether an empty cluster would not do either."""
        return self.needs_hopeless and any(each.holds_when_empty for each in self.funnels)


def try_alone(ssn: Session, job: int) -> Trial:
    """Place a job at this moment of a session, examine, and roll it back.

    Where its queue refuses it, nodes are examined as if it did not.
    """
    trial = _try(ssn, job)
    if trial.starts:
        return trial
    if trial.domain is not None:  # what stops it on all nodes stops it in every domain
        trial = _anywhere(ssn, job, trial)
    if trial.quota is not None:
        with ssn.policy.queue_limits_lifted():
            lifted = _try(ssn, job)
            if lifted.domain is not None:
                lifted = _anywhere(ssn, job, lifted)
        trial = replace(lifted, starts=False, quota=trial.quota, before_quota=trial.before_quota)
    return trial


def _anywhere(ssn: Session, job: int, trial: Trial) -> Trial:
    """Return how the nodes answer if any network domain is allowed, with the refusal by domains."""
    found = _try(ssn, job, anywhere=True)
    return replace(found, starts=False, domain=trial.domain, starts_anywhere=found.starts)


def _try(ssn: Session, job: int, *, anywhere: bool = False) -> Trial:
    with _undisturbed(ssn):
        stmt = ssn.statement()
        try:
            return _placed(ssn, job, stmt, anywhere=anywhere)
        finally:
            stmt.discard()


@contextmanager
def _undisturbed(ssn: Session) -> Iterator[None]:
    """Leave no trace: not in the records, the queue gates or the choice among equals."""
    records, state = ssn.records, ssn.placing.state
    ssn.records = Records(ssn.snapshot)
    try:
        with ssn.queue_gates.undisturbed():
            yield
    finally:
        ssn.records, ssn.placing.state = records, state


def _placed(ssn: Session, job: int, stmt: Statement, *, anywhere: bool) -> Trial:
    tasks, had = ssn.snapshot.tasks, ssn.job(job).ready + ssn.job(job).waiting
    rows = ssn.ordering.sort_tasks(pending_rows(ssn, job))
    asking = [row for row in rows if not tasks.best_effort[row]]
    if asking and ssn.topology.needs_search(job) and not anywhere:
        _place_in_domain(ssn, job, stmt)
    elif asking:
        _place(ssn, job, asking, stmt)
    stops, view = ssn.records.stops.get(job, {}), ssn.job(job)
    placed = count_roles(view, READY, pending_best_effort=True)
    nodes = stops.get(Stage.NODES)
    tried = [*ssn.records.no_fit, *(rows if not asking else [])]
    barred, funnels = _unplaced(ssn, job, tried)
    if had + len(rows) <= view.min_member:  # the gang needs every one of them
        funnels += _never_placed(ssn, [row for row in rows if row not in tried], funnels)
    for funnel in funnels:
        funnel.beside = view.ready + view.waiting - had
    refused = {*barred, *(each.task.key for each in funnels)}
    some_fit = bool(len(stmt)) if asking else len(refused) < len(_shapes(ssn, rows))
    trial = Trial(
        starts=some_fit and bool(ssn.policy.job_ready(job) or ssn.policy.job_pipelined(job)),
        placed=view.ready + view.waiting,
        best_effort=view.pending_best_effort,
        needed=view.min_member,
        short_roles={
            role: (placed.get(role, 0), least)
            for role, least in minima(view).items()
            if placed.get(role, 0) < least
        },
        quota=stops.get(Stage.QUOTA),
        before_quota=_placed_before(ssn, rows, stops.get(Stage.QUOTA)),
        domain=nodes if nodes is not None and "total" in nodes.numbers else None,
        barred=barred,
        funnels=funnels,
    )
    _put_in_order(ssn, job, trial)
    return trial


def _put_in_order(ssn: Session, job: int, trial: Trial) -> None:
    """Put first the refusals of pods that the job cannot start without, what holds longer first."""
    trial.needs_barred = needs_some(ssn, job, _hopeless(ssn, job, trial.barred, ()))
    hopeless = _hopeless(ssn, job, trial.barred, trial.funnels)
    first = trial.needs_hopeless = needs_some(ssn, job, hopeless)
    trial.funnels.sort(key=lambda funnel: funnel.holds_when_empty is not first)


def _hopeless(
    ssn: Session, job: int, barred: Iterable[str], funnels: Iterable[Funnel]
) -> list[int]:
    """List the pending tasks that an empty cluster would refuse, and those behind gates."""
    tasks, free = ssn.snapshot.tasks, {*pending_rows(ssn, job)}
    refused = {int(tasks.shape[tasks.row_of[pod]]) for pod in barred}
    refused |= {each.task.shape.id for each in funnels if each.holds_when_empty}
    rows = ssn.snapshot.jobs.tasks[job]
    pending = [row for row in rows if tasks.status[row] == Status.PENDING]
    return [row for row in pending if row not in free or int(tasks.shape[row]) in refused]


def _placed_before(ssn: Session, rows: list[int], refused: Record | None) -> list[int]:
    """List the tasks with a node that had their turn before a refused one."""
    tasks = ssn.snapshot.tasks
    last = None if refused is None else tasks.row_of[refused.numbers["task"]]
    earlier = rows[: rows.index(last)] if last in rows else []
    return [row for row in earlier if int(tasks.status[row]) != Status.PENDING]


def _place_in_domain(ssn: Session, job: int, stmt: Statement) -> None:
    arguments = arguments_of(ssn.action_arguments, "allocate", AllocateArguments)
    search = DomainSearch(ssn, remember_errors=arguments.remember_errors)
    search.place(stmt, job, search.worksheet(job))


def _place(ssn: Session, job: int, rows: list[int], stmt: Statement) -> None:
    arguments = arguments_of(ssn.action_arguments, "allocate", AllocateArguments)
    JobPlacement(
        ssn,
        job,
        deque(rows),
        JobMemory(),
        is_done=lambda: ssn.policy.job_ready(job),
        remember_errors=arguments.remember_errors,
        on_placed=ssn.topology.follow_job(job),
    ).run(stmt)
    ssn.topology.stop_following()


def _shapes(ssn: Session, rows: Iterable[int]) -> dict[int, int]:
    """Return the first of the pods of each kind."""
    shapes = ssn.snapshot.tasks.shape
    return {int(shapes[row]): row for row in reversed([*rows])}


def _never_placed(ssn: Session, rows: list[int], known: list[Funnel]) -> Iterator[Funnel]:
    """Yield the nodes for kinds of pods that were not tried and that an empty cluster refuses."""
    seen = {each.task.shape.id for each in known}
    status = ssn.snapshot.tasks.status
    placed = _shapes(ssn, [row for row in rows if status[row] != Status.PENDING])
    for shape, row in list(_shapes(ssn, rows).items())[:_MOST_SHAPES]:
        if shape in seen or shape in placed:
            continue
        funnel = Funnel(ssn, Task(ssn.snapshot, row))
        if funnel.holds_when_empty:
            yield funnel


def _unplaced(ssn: Session, job: int, rows: list[int]) -> tuple[dict[str, Reason], list[Funnel]]:
    """Examine the nodes for each kind of pod that found none."""
    seen: set[int] = set()
    barred: dict[str, Reason] = {}
    funnels: list[Funnel] = []
    for row in rows:
        task = Task(ssn.snapshot, row)
        if task.shape.id in seen or len(seen) >= _MOST_SHAPES or task.job != job:
            continue
        seen.add(task.shape.id)
        reason = ssn.policy.filter_task(task)
        if reason is not None:
            barred[task.key] = reason
        funnel = Funnel(ssn, task)
        if funnel.decisive is not None:
            funnels.append(funnel)
    return barred, funnels
