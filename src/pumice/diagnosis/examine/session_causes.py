"""What the session has against a job as the cycle begins, others left aside: gate by gate."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pumice.api.codes import Cause
from pumice.api.decisions import CLUSTER, RESOURCE_QUOTA, Short, short_of
from pumice.api.quantity import amount_text, base_units
from pumice.api.wording import counted, first_of
from pumice.core.resources import PODS, STEP
from pumice.core.status import Status
from pumice.diagnosis.examine.funnel import Funnel
from pumice.diagnosis.examine.node_causes import finding_of, node_findings
from pumice.diagnosis.examine.trial import Trial, pending_rows, try_alone
from pumice.diagnosis.findings import Finding, ObjectRef
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import PERMIT, REJECT, Reason, Refusal, Why
from pumice.framework.roles import count_roles, minima
from pumice.framework.session import Session

_COUNTED: Final = (Status.PENDING, Status.SUCCEEDED, Status.PIPELINED)
_EXTENDER: Final = "extender"
_CLAIM: Final = "PersistentVolumeClaim"


@dataclass
class Examination:
    """What was found when the cycle began."""

    invalid: list[Finding] = field(default_factory=list)
    admission: list[Finding] = field(default_factory=list)
    queue: list[Finding] = field(default_factory=list)
    """What its queue says when its pods are to be placed."""
    nodes: list[Finding] = field(default_factory=list)
    holds_when_empty: bool = False
    """Whether the nodes would say so in an empty cluster, too."""
    funnel: Funnel | None = None
    starts: bool = False
    """Whether it would start if it were the only job to be considered."""

    def findings(self) -> list[Finding]:
        """List all, the decisive one first."""
        closed = [each for each in self.admission + self.queue if each.code in _CLOSED]
        others = [each for each in self.admission + self.queue if each.code not in _CLOSED]
        lasting, now = (self.nodes, []) if self.holds_when_empty else ([], self.nodes)
        return distinct([*self.invalid, *closed, *lasting, *others, *now])


_CLOSED: Final = (Cause.QUEUE_CLOSED, Cause.QUEUE_MISPLACED)


def distinct(findings: list[Finding]) -> list[Finding]:
    """Leave out what was found before: the same code about the same object."""
    kept: dict[Any, Finding] = {}
    for each in findings:
        kept.setdefault((each.code, each.about if each.code not in _NODE_LIKE else None), each)
    return list(kept.values())


_NODE_LIKE: Final = frozenset({Cause.INSUFFICIENT_RESOURCE, Cause.TAINT, Cause.NODE_SELECTOR})


def examine(ssn: Session, job: int) -> Examination:
    """Ask every gate that a job has to pass, at this moment of a session."""
    found = Examination(invalid=list(_invalid(ssn, job)) + list(_gated(ssn, job)))
    found.invalid += _unplaced_by(ssn, job)
    if ssn.is_pending(job) and "enqueue" in ssn.actions:
        found.admission = list(_admission(ssn, job))
        if any(each.code is Cause.QUEUE_CLOSED for each in found.admission):
            with _opened(ssn, job):
                found.admission += _admission(ssn, job)
    if not pending_rows(ssn, job):
        found.queue += _closed(ssn, job)
        return found
    queue = int(ssn.snapshot.jobs.queue[job])
    if ssn.policy.overused(queue):
        found.queue.append(_overused(ssn, queue))
    trial = try_alone(ssn, job)
    found.starts = trial.starts and not found.queue
    if not trial.starts:
        found.queue += _quota(ssn, job, trial)
        if any(each.code is Cause.QUEUE_CLOSED for each in found.queue):
            with _opened(ssn, job):
                found.queue += _quota(ssn, job, try_alone(ssn, job))
        found.nodes = list(_placement(ssn, job, trial))
        found.funnel = trial.funnels[0] if trial.funnels else None
        found.holds_when_empty = any(each.holds_when_empty for each in trial.funnels)
    return found


@contextmanager
def _opened(ssn: Session, job: int) -> Iterator[None]:
    """Open a job's queue meanwhile, to see what else is against it."""
    queues, row = ssn.snapshot.queues, int(ssn.snapshot.jobs.queue[job])
    state, queues.open[row] = bool(queues.open[row]), True
    try:
        yield
    finally:
        queues.open[row] = state


# Validity


def _invalid(ssn: Session, job: int) -> Iterator[Finding]:
    """Tell what plugins say against the job as such."""
    view = ssn.job(job)
    for plugin, ask in ssn.hooks.bound(Plugin.job_valid):
        problem = ask(view)
        if not problem:
            continue
        failed = _failed(ssn, plugin, "job_valid")
        told = Finding(Cause.INVALID, f"{plugin.name}: {problem}", None, {"plugin": plugin.name})
        yield failed or _too_few(ssn, job) or told


def _too_few(ssn: Session, job: int) -> Finding | None:
    """Tell a gang that lacks pods from other problems."""
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
    """Tell of gates that hold back pods without which the gang is not complete."""
    view, tasks = ssn.job(job), ssn.snapshot.tasks
    gated = [row for row in view.tasks if tasks.gated[row] and tasks.status[row] == Status.PENDING]
    free = view.counts[Status.PENDING] - len(gated)
    if not gated or view.ready + view.waiting + free >= max(view.min_member, 1):
        return
    pods: list[Any] = [tasks.pods[row] for row in gated]
    names = sorted({gate.name for pod in pods for gate in pod.spec.scheduling_gates})
    yield Finding(
        Cause.GATED,
        f"the scheduling gate {', '.join(names)} holds back {len(gated)} of its "
        f"{counted(len(view.tasks), 'pod')}",
        ObjectRef.of_key("Pod", tasks.keys[gated[0]]),
        {"gated": len(gated), "pods": len(view.tasks), "gates": names},
    )


def _unplaced_by(ssn: Session, job: int) -> Iterator[Finding]:
    """Tell of an action that is not configured and without which nobody looks at its pods."""
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


def _failed(ssn: Session, plugin: Plugin, hook: str) -> Finding | None:
    """Tell that a plugin failed in a hook, if it did."""
    error = ssn.failures.errors.get((plugin.name, hook))
    if error is None:
        return None
    text = f"plugin {plugin.name} failed in {hook}: {type(error).__name__}: {error}"
    return Finding(Cause.PLUGIN_FAILED, text, None, {"plugin": plugin.name, "hook": hook})


# Admission


def _admission(ssn: Session, job: int) -> Iterator[Finding]:
    """Tell who votes against admitting the job, if that is what the vote comes to."""
    if not ssn.snapshot.jobs.has_min_resources[job] or ssn.policy.job_enqueueable(job):
        return
    view = ssn.job(job)
    for tier in ssn.hooks.tiers(Plugin.job_enqueueable):
        permitted = False
        for plugin, ask in tier:
            vote = ask(view)
            if isinstance(vote, Refusal) or vote <= REJECT:
                yield _vote(ssn, job, plugin, vote)
            elif vote >= PERMIT:
                permitted = True
        if permitted:
            return


def _vote(ssn: Session, job: int, plugin: Plugin, vote: Any) -> Finding:
    failed = _failed(ssn, plugin, "job_enqueueable")
    if failed is not None:
        return failed
    if isinstance(vote, Refusal):
        return refused(ssn, vote.code, vote.why, vote.numbers, job)
    code = Cause.EXTENDER_REFUSED if plugin.name == _EXTENDER else Cause.NOT_ADMITTED
    return Finding(code, f"{plugin.name} votes against admitting it", None, {"by": plugin.name})


def refused(ssn: Session, code: Cause, why: Why, numbers: Mapping[str, Any], job: int) -> Finding:
    """Tell a refusal of a queue, a quota or the cluster."""
    row = numbers.get("queue")
    queue = "" if row is None else ssn.snapshot.queues.names[row]
    about = ObjectRef("Queue", queue)
    if why is Why.QUEUE_CLOSED:
        return Finding(code, f"queue {queue} is not open", about)
    if why is Why.QUEUE_MISPLACED:
        problem = str(numbers["problem"])
        return Finding(code, f"queue {queue} has no valid place: {problem}", about)
    if "resource" not in numbers:
        return Finding(code, f"{why.value}: queue {queue}", about if queue else None)
    return _overrun(ssn, code, numbers, job)


def _overrun(ssn: Session, code: Cause, numbers: Mapping[str, Any], job: int) -> Finding:
    at, shorts = str(numbers["at"]), short_of(numbers)
    told: dict[str, Any] = {**_short_numbers(shorts[0])}
    if len(shorts) > 1:
        told["more"] = [_short_numbers(each) for each in shorts[1:]]
    compared = "; ".join(_compared(each) for each in shorts)
    if at == CLUSTER:
        factor = numbers.get("factor", 1.0)
        told["factor"] = factor
        told["reserved"] = {k: base_units(k, x) for k, x in numbers.get("reserved", {}).items()}
        text = f"not admitted: overcommit counts the cluster {factor:g} times: {compared}"
        return Finding(code, text, None, told)
    if at.startswith(RESOURCE_QUOTA):
        name, namespace = at.removeprefix(RESOURCE_QUOTA), ssn.job(job).key.partition("/")[0]
        text = f"not admitted: resource quota {name}: {compared}"
        return Finding(code, text, ObjectRef("ResourceQuota", name, namespace), told)
    words = "deserves" if code is Cause.QUEUE_OVER_DESERVED else "may hold"
    at = _whose_limit(ssn, at, shorts[0]) if code is Cause.QUEUE_OVER_CAPABILITY else at
    text = f"queue {at} {words} no more: {compared}"
    guarantees = _guarantees(ssn, at, shorts[0])
    if guarantees:
        told["guarantees"] = {k: base_units(shorts[0].resource, x) for k, x in guarantees.items()}
        text += f"; {first_of(list(guarantees), 3)} {_is(guarantees)} guaranteed the rest"
    return Finding(code, text, ObjectRef("Queue", at), told)


def _is(names: Any) -> str:
    return "is" if len(names) == 1 else "are"


def _short_numbers(short: Short) -> dict[str, Any]:
    name = short.resource
    return {
        "resource": name,
        "used": base_units(name, short.used),
        "request": base_units(name, short.request),
        "limit": base_units(name, short.limit),
        "over": base_units(name, short.used + short.request - short.limit),
    }


def _compared(short: Short) -> str:
    name = short.resource
    used, request, limit, over = (
        amount_text(name, x)
        for x in (
            short.used,
            short.request,
            short.limit,
            short.used + short.request - short.limit,
        )
    )
    return f"{name} {used} in use or reserved + {request} asked for > {limit}, {over} too much"


def _whose_limit(ssn: Session, queue: str, short: Short) -> str:
    """Name the queue that states a limit: one above, if the queue only has it from there."""
    queues, res = ssn.snapshot.queues, ssn.snapshot.resources.names.index(short.resource)
    row = queues.row_of[queue]
    for plugin in ssn.plugins:
        limits = plugin.queue_limits(ssn.snapshot, ssn.total)
        if limits is None:
            continue
        real = limits.real_capability[res]
        for above in reversed(limits.tree.ancestors.get(row, ())):
            if queues.capability_given[res, row] or real[above] != real[row]:
                break
            row = above
        break
    return queues.names[row]


def _guarantees(ssn: Session, queue: str, short: Short) -> dict[str, float]:
    """Name the queues whose guarantees make a limit lower than the capability that is stated."""
    row, res = ssn.snapshot.queues.row_of[queue], ssn.snapshot.resources.names.index(short.resource)
    for plugin in ssn.plugins:
        limits = plugin.queue_limits(ssn.snapshot, ssn.total)
        if limits is None:
            continue
        stated = float(limits.capability[res, row])
        if res < PODS and stated <= 0:
            stated = np.inf
        if not limits.real_capability[res, row] < stated or short.limit >= stated:
            return {}
        above = limits.tree.ancestors.get(row)
        siblings = (
            limits.tree.children.get(above[-1], []) if above else range(len(limits.guarantee.T))
        )
        names = ssn.snapshot.queues.names
        return {
            names[each]: float(limits.guarantee[res, each])
            for each in siblings
            if each != row and limits.guarantee[res, each] >= STEP
        }
    return {}


# The queue when pods are placed


def _overused(ssn: Session, queue: int) -> Finding:
    """Tell that a queue has what it deserves."""
    snapshot = ssn.snapshot
    name, names = snapshot.queues.names[queue], snapshot.resources.names
    view = ssn.queue(queue)
    for plugin, ask in ssn.hooks.bound(Plugin.overused):
        if not ask(view):
            continue
        limits = plugin.queue_limits(snapshot, ssn.total)
        if limits is None:
            code = Cause.EXTENDER_REFUSED if plugin.name == _EXTENDER else Cause.PLUGIN_REFUSED
            return Finding(code, f"{plugin.name} says that queue {name} must wait", None)
        held = snapshot.queues.allocated_or_pipelined[:, queue]
        rows = [r for r in np.flatnonzero(limits.deserved[:, queue] >= STEP).tolist() if r != PODS]
        amounts = {names[r]: (float(held[r]), float(limits.deserved[r, queue])) for r in rows}
        told = ", ".join(
            f"{k} {amount_text(k, x)} of {amount_text(k, d)}" for k, (x, d) in amounts.items()
        )
        numbers = {
            "held": {k: base_units(k, x) for k, (x, _) in amounts.items()},
            "deserved": {k: base_units(k, d) for k, (_, d) in amounts.items()},
        }
        text = f"queue {name} has all that it deserves ({told or 'nothing'}), so it is passed over"
        return Finding(Cause.QUEUE_OVER_DESERVED, text, ObjectRef("Queue", name), numbers)
    return Finding(Cause.QUEUE_OVER_DESERVED, f"queue {name} must wait", ObjectRef("Queue", name))


def _closed(ssn: Session, job: int) -> Iterator[Finding]:
    """Tell of a queue that is not open to a job without pods."""
    queue = ssn.queue(int(ssn.snapshot.jobs.queue[job]))
    if not queue.is_open and ssn.hooks.tiers(Plugin.allocatable):
        text = f"queue {queue.name} is not open"
        yield Finding(Cause.QUEUE_CLOSED, text, ObjectRef("Queue", queue.name))


def _quota(ssn: Session, job: int, trial: Trial) -> Iterator[Finding]:
    """Tell what its queue has against one of its pods."""
    record = trial.quota
    if record is None:
        return
    row = int(ssn.snapshot.jobs.queue[job])
    task = ssn.task(ssn.snapshot.tasks.row_of[record.numbers["task"]])
    for plugin, ask in ssn.hooks.bound(Plugin.allocatable):
        failed = _failed(ssn, plugin, "allocatable")
        if failed is not None and not ask(ssn.queue(row), task):
            yield failed
            return
    code = record.code or Cause.PLUGIN_REFUSED
    yield refused(ssn, code, record.why, record.numbers, job)


# Nodes


def _placement(ssn: Session, job: int, trial: Trial) -> Iterator[Finding]:
    """Tell what the nodes have against the pods that found none, and how far the gang is."""
    if trial.domain is not None:
        yield _no_domain(trial)
        yield from _shut_domains(ssn, job, trial)
    for pod, reason in trial.barred.items():
        yield _barred(ssn, pod, reason)
    missing = max(trial.needed - trial.placed, 1)
    found = [each for funnel in trial.funnels for each in node_findings(funnel, missing)]
    gang = list(_gang(trial)) if trial.placed and (found or trial.barred) else []
    if found and found[0].code is Cause.INSUFFICIENT_RESOURCE:
        yield from [*gang, *found]
    else:
        yield from [*found, *gang]


def _gang(trial: Trial) -> Iterator[Finding]:
    roles = trial.short_roles
    if trial.placed < trial.needed:
        numbers = {"found": trial.placed, "minMember": trial.needed}
        text = f"{trial.placed} of the {trial.needed} pods that its gang needs find a node"
        yield Finding(Cause.GANG_SHORT, text, None, numbers)
    for role, (placed, least) in roles.items():
        told = {"role": role, "found": placed, "needed": least}
        text = f"role {role} needs {counted(least, 'node')} and finds {placed}"
        yield Finding(Cause.ROLE_SHORT, text, None, told)


def _barred(ssn: Session, pod: str, reason: Reason) -> Finding:
    name = pod.partition("/")[2]
    about = ObjectRef.of_key("Pod", pod)
    if reason.code is Cause.VOLUME:
        about = next(_unbound(ssn, pod), about)
    return Finding(reason.code, f"no node can take {name}: {reason.text}", about, {"pod": pod})


def _unbound(ssn: Session, pod: str) -> Iterator[ObjectRef]:
    """Name the claims of a pod that are missing or not bound."""
    space, _, name = pod.partition("/")
    task, claims = ssn.task(ssn.snapshot.tasks.row_of[pod]), ssn.snapshot.kind(_CLAIM)
    for volume in task.shape.spec.volumes:
        source = volume.persistent_volume_claim
        wanted = f"{name}-{volume.name}" if source is None else source.claim_name
        claim = claims.get(f"{space}/{wanted}")
        has_claim = source is not None or volume.ephemeral is not None
        if has_claim and (claim is None or claim.status.phase != "Bound"):
            yield ObjectRef(_CLAIM, wanted, space)


def _shut_domains(ssn: Session, job: int, trial: Trial) -> Iterator[Finding]:
    """Tell of constraints without which one of the domains would hold the whole job."""
    limit, rows = ssn.topology.limit(job), pending_rows(ssn, job)
    funnel = Funnel(ssn, ssn.task(rows[0]))
    domains = [each for each in ssn.topology.tree.domains if limit is None or each.tier <= limit]
    for constraint, opened in funnel.but_for():
        free = funnel.fitting | opened
        if any(funnel.holds(free & each.mask) >= trial.needed for each in domains):
            yield finding_of(funnel, constraint)


def _no_domain(trial: Trial) -> Finding:
    numbers = dict(trial.domain.numbers) if trial.domain is not None else {}
    limit, large, total = (numbers.get(key) for key in ("limit", "large", "total"))
    reach = "" if limit is None else f" up to tier {limit}"
    text = f"no network domain{reach} takes it: {large} of {total} look large enough"
    return Finding(
        Cause.NETWORK_DOMAIN, text, None, {"limit": limit, "large": large, "total": total}
    )
