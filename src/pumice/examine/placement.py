"""One job placed as if it were the only one, and rolled back: what stops it on any nodes.

Shows what stops a job independently of others: its queue, its nodes, its gang.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pumice.api.codes import Cause
from pumice.api.wording import counted, verb
from pumice.core.status import Status
from pumice.core.views import READY, Task, count_roles, minima
from pumice.examine.findings import Finding, ObjectRef
from pumice.examine.gang_needs import needs_some, pending_rows
from pumice.examine.job_outcome import JobOutcome
from pumice.examine.node_causes import RESOURCE_CLAIM, finding_of, node_findings
from pumice.examine.node_constraints import Funnel
from pumice.framework.arguments import AllocateArguments, arguments_of
from pumice.framework.job_placement import JobMemory, JobPlacement
from pumice.framework.refusals import Reason, Record, Records, Stage, Why
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.framework.topology.domains import Domain
from pumice.framework.topology.search import DomainSearch

_CLAIM: Final = "PersistentVolumeClaim"
_TRIED: Final = (Stage.NODES, Stage.GANG)
"""Where a job stops that had its turn and whose queue let it look for nodes."""


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
    if ssn.topology.needs_search(job):  # what stops it on all nodes stops it in every domain
        trial = _anywhere(ssn, job, trial)
    if trial.quota is not None:
        with ssn.policy.queue_limits_lifted():
            lifted = _try(ssn, job)
            if not lifted.starts and ssn.topology.needs_search(job):
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
        domain=nodes if ssn.topology.is_limited(job) and _is_of_domains(nodes) else None,
        barred=barred,
        funnels=funnels,
    )
    _put_in_order(ssn, job, trial)
    if nodes is not None and not trial.starts and not trial.domain and asking:
        _count_the_rest(ssn, job, asking, stmt, trial)
    return trial


def _is_of_domains(record: Record | None) -> bool:
    return record is not None and record.why is Why.NO_DOMAIN_FITS


def _count_the_rest(ssn: Session, job: int, rows: list[int], stmt: Statement, trial: Trial) -> None:
    """Count also pods behind one that finds no node: they were not tried, but may find one."""
    tasks = ssn.snapshot.tasks
    refused = {each.task.shape.id for each in trial.funnels}
    refused |= {int(tasks.shape[tasks.row_of[pod]]) for pod in trial.barred}
    left = [
        row
        for row in rows
        if int(tasks.status[row]) == Status.PENDING and int(tasks.shape[row]) not in refused
    ]
    for some in _by_shape(ssn, left):
        _place(ssn, job, some, stmt)
    view = ssn.job(job)
    placed = count_roles(view, READY, pending_best_effort=True)
    trial.placed = view.ready + view.waiting
    trial.short_roles = {
        role: (min(placed.get(role, 0), least), least)
        for role, (_, least) in trial.short_roles.items()
        if placed.get(role, 0) < least
    }


def _by_shape(ssn: Session, rows: Iterable[int]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(int(ssn.snapshot.tasks.shape[row]), []).append(row)
    return list(found.values())


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


# Findings


def placement_findings(ssn: Session, job: int, trial: Trial) -> Iterator[Finding]:
    """Yield the reasons of network domains and nodes, and the state of the gang.

    A job that finds no nodes anywhere does not lack them because of its domains.
    """
    nodes = list(_node_reasons(ssn, trial))
    domains: list[Finding] = []
    if trial.domain is not None and (trial.starts_anywhere or _is_narrow(ssn, job)):
        domains = [_no_domain(ssn, job, trial), *_shut_domains(ssn, job, trial)]
    yield from [*domains, *nodes] if trial.starts_anywhere else [*nodes, *domains]


def _node_reasons(ssn: Session, trial: Trial) -> Iterator[Finding]:
    """Yield the nodes' reasons against pods that found none, and the state of the gang."""
    barred = [_barred(ssn, pod, reason) for pod, reason in trial.barred.items()]
    missing = max(trial.needed - trial.placed - trial.best_effort, 1)
    found = [each for funnel in trial.funnels for each in node_findings(funnel, missing)]
    gang = list(_gang(trial)) if trial.placed and (found or trial.barred) else []
    if found and found[0].code is Cause.INSUFFICIENT_RESOURCE and not trial.is_hopeless:
        found = [*gang, *found]
    else:
        found = [*found, *gang]
    yield from [*barred, *found] if trial.needs_barred else [*found, *barred]


def _gang(trial: Trial) -> Iterator[Finding]:
    """Yield what the gang lacks if it goes first, as in the trial."""
    first = "even if it went first" + (" and its queue had no limit" if trial.quota else "")
    found = trial.placed + trial.best_effort
    if found < trial.needed:
        numbers = {"found": found, "minMember": trial.needed}
        text = f"{_too_few(found, trial.needed)} would find a node, {first}"
        yield Finding(Cause.GANG_SHORT, text, None, numbers)
    for role, (placed, least) in trial.short_roles.items():
        role_numbers = {"role": role, "found": placed, "needed": least}
        text = f"{_role_needs(role, least)} and would find {placed or 'none'}, {first}"
        yield Finding(Cause.ROLE_SHORT, text, None, role_numbers)


def at_its_turn(finding: Finding, outcome: JobOutcome, *, was_first: bool) -> Finding:
    """Return a finding about a gang with the nodes that its pods found at their turn, if any.

    If no job took room before it, the trial found the same; and those that were not tried.
    """
    if outcome.last is None or outcome.last.stage not in _TRIED or "found" not in finding.numbers:
        return finding
    numbers = dict(finding.numbers)
    first, role = numbers["found"], numbers.get("role")
    found = outcome.found if role is None else outcome.found_by_role.get(role, 0)
    found = max(found, first) if was_first else found
    if role is None:
        who = _too_few(found, numbers["minMember"])
        now, at_turn = f"{who} {verb(found, 'finds', 'find')} a node", f"{who} found a node"
        would = f"only {first} would"
    else:
        who = _role_needs(role, numbers["needed"])
        now, at_turn = f"{who} and finds {found or 'none'}", f"{who} and found {found or 'none'}"
        would = f"it would find only {first}"
    if found >= first:
        return replace(finding, text=now, numbers={**numbers, "found": found})
    text = f"{at_turn} at its turn; even if the job went first, {would}"
    return replace(finding, text=text, numbers={**numbers, "found": found, "foundIfFirst": first})


def _too_few(found: int, needed: int) -> str:
    return f"{f'only {found}' if found else 'none'} of the {needed} pods that its gang needs"


def _role_needs(role: str, least: int) -> str:
    return f"role {role} needs nodes for {counted(least, 'pod')}"


def _barred(ssn: Session, pod: str, reason: Reason) -> Finding:
    name = pod.partition("/")[2]
    about = ObjectRef.of_key("Pod", pod)
    numbers: dict[str, Any] = {"pod": pod}
    if reason.code is Cause.VOLUME:
        about = next(_unbound(ssn, pod), about)
    elif reason.code is Cause.DEVICE:
        numbers |= ssn.refusal_numbers(ssn.task(ssn.snapshot.tasks.row_of[pod]))
        if "claim" in numbers:
            about = ObjectRef.of_key(RESOURCE_CLAIM, numbers["claim"]["claim"])
    return Finding(reason.code, f"no node can take {name}: {reason.text}", about, numbers)


def _unbound(ssn: Session, pod: str) -> Iterator[ObjectRef]:
    """Yield the claims of a pod that are missing or unbound."""
    space, _, name = pod.partition("/")
    task, claims = ssn.task(ssn.snapshot.tasks.row_of[pod]), ssn.snapshot.kind(_CLAIM)
    for volume in task.shape.spec.volumes:
        source = volume.persistent_volume_claim
        wanted = f"{name}-{volume.name}" if source is None else source.claim_name
        claim = claims.get(f"{space}/{wanted}")
        has_claim = source is not None or volume.ephemeral is not None
        if has_claim and (claim is None or claim.status.phase != "Bound"):
            yield ObjectRef(_CLAIM, wanted, space)


def _is_narrow(ssn: Session, job: int) -> bool:
    """Return whether a job, or a part of it, must keep within less than the whole cluster."""
    limits = [ssn.topology.limit(job), *(part.limit for part in ssn.topology.subgroups(job))]
    return any(limit is not None and limit < ssn.topology.tree.top.tier for limit in limits)


def _domains(ssn: Session, job: int) -> list[Domain]:
    """List the network domains in which a job may be placed."""
    limit = ssn.topology.limit(job)
    return [each for each in ssn.topology.tree.domains if limit is None or each.tier <= limit]


def _shut_domains(ssn: Session, job: int, trial: Trial) -> Iterator[Finding]:
    """Yield constraints without which one of the domains would hold the whole job."""
    funnel = Funnel(ssn, ssn.task(pending_rows(ssn, job)[0]))
    domains = _domains(ssn, job)
    for constraint, opened in funnel.but_for():
        free = funnel.fitting | opened
        if any(funnel.holds(free & each.mask) >= trial.needed for each in domains):
            yield finding_of(funnel, constraint)


def _no_domain(ssn: Session, job: int, trial: Trial) -> Finding:
    recorded = dict(trial.domain.numbers) if trial.domain is not None else {}
    numbers = {key: recorded.get(key) for key in ("limit", "large", "total")}
    limit = numbers["limit"]
    parts = _no_domain_for_parts(ssn, job) if limit is None else None
    if parts is not None:
        return parts
    reach = "" if limit is None else f" up to tier {limit}"
    text = f"no network domain{reach} takes it"
    most = _most_room(ssn, job)
    if most is not None and most[1] < trial.needed:
        name, held = most
        numbers |= {"needed": trial.needed, "domain": name, "holds": held}
        room = f"holds only {held}" if held else "holds none"
        pods = counted(trial.needed, "pod")
        text += f": its gang needs {pods} in one, and the roomiest, {name}, {room}"
    else:
        large = int(numbers["large"] or 0)
        total = numbers["total"]
        text += (
            f"; {large} of {total} {verb(large, 'looks', 'look')} large enough"
            if large
            else f"; none of {total} has as much idle as its waiting pods ask for together"
        )
    return Finding(Cause.NETWORK_DOMAIN, text, None, numbers)


def _no_domain_for_parts(ssn: Session, job: int) -> Finding | None:
    """Return how many of a job's equal sub-groups its domains hold; None if they differ."""
    parts = [part for part in ssn.topology.subgroups(job) if part.limit is not None]
    rows, shapes = pending_rows(ssn, job), ssn.snapshot.tasks.shape
    alike = {(part.policy, part.size, part.limit or 0) for part in parts}
    if len(alike) != 1 or len({int(shapes[row]) for row in rows}) != 1 or ssn.job(job).ready:
        return None
    ((name, size, limit),) = alike
    policies = ssn.job(job).group.spec.sub_group_policy
    least = next((one.min_sub_groups or 0 for one in policies if one.name == name), 0)
    funnel = Funnel(ssn, ssn.task(rows[0]))
    tree = ssn.topology.tree
    widest = [
        one
        for one in tree.domains
        if one.tier <= limit and (one.parent is None or one.parent.tier > limit)
    ]
    holds = sum(funnel.holds(funnel.fitting & one.mask) // size for one in widest)
    numbers = {"limit": limit, "policy": name, "subGroupSize": size, "needed": least}
    text = (
        f"each sub-group of policy {name} must have its {counted(size, 'pod')} in one network "
        f"domain up to tier {limit}"
    )
    if holds < least:
        numbers["holds"] = holds
        room = f"only for {holds}" if holds else "for none"
        text += f": the job needs {counted(least, 'sub-group')}, and there is room {room}"
    return Finding(Cause.NETWORK_DOMAIN, text, None, numbers)


def _most_room(ssn: Session, job: int) -> tuple[str, int] | None:
    """Return the domain that takes most pods of a job, and how many; None if pods differ."""
    rows, shapes = pending_rows(ssn, job), ssn.snapshot.tasks.shape
    if len({int(shapes[row]) for row in rows}) != 1 or ssn.job(job).ready:
        return None
    funnel = Funnel(ssn, ssn.task(rows[0]))
    room = [(funnel.holds(funnel.fitting & each.mask), each.name) for each in _domains(ssn, job)]
    held, name = max(room, key=lambda one: one[0], default=(0, ""))
    return (name, held) if name else None
