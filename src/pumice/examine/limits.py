"""Refusals of queues, quotas and the cluster as findings: whose limit, and the amounts compared."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from pumice.api.codes import Cause
from pumice.api.decisions import CLUSTER, RESOURCE_QUOTA, Short, short_of
from pumice.api.groups import ResourceQuota
from pumice.api.kinds import ENDED_PHASES
from pumice.api.objects import to_manifest
from pumice.api.pod_resources import limits_pods, pod_usage
from pumice.api.pods import Pod
from pumice.api.quantity import amount_text, base_units, parse_quantity
from pumice.api.wording import counted, first_of
from pumice.cluster.embedded.quotas import in_scope
from pumice.core.resources import PODS, STEP, Column
from pumice.examine.findings import EXTENDER, Finding, ObjectRef
from pumice.examine.gang_needs import gang_request, still_needed
from pumice.framework.plugin import Plugin
from pumice.framework.queue_limits.limits import QueueCommitments, QueueLimits, elastic_by_queue
from pumice.framework.refusals import Why
from pumice.framework.session import Session
from pumice.framework.waiting import compared_amounts


@dataclass(frozen=True, kw_only=True)
class _Used:
    """What queues use, as it was compared."""

    limits: QueueLimits
    amounts: Column
    """With what is used under them (R, Q)."""

    @classmethod
    def when(cls, ssn: Session, *, admitting: bool) -> "_Used | None":
        """Return what queues use when a job is admitted, or placed; None if nothing limits them."""
        stated = (plugin.queue_limits(ssn.snapshot, ssn.total) for plugin in ssn.plugins)
        limits = next((each for each in stated if each is not None), None)
        if limits is None:
            return None
        used = ssn.snapshot.queues.allocated_or_pipelined
        used = QueueCommitments(ssn.snapshot).by_queue() if admitting else used
        return cls(limits=limits, amounts=limits.tree.sum_up(used))


def refused(
    ssn: Session,
    code: Cause,
    why: Why,
    numbers: Mapping[str, Any],
    job: int,
    *,
    admitting: bool = False,
) -> Finding:
    """Return the finding for a refusal of a queue, a quota or the cluster."""
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
    at = str(numbers["at"])
    if at == CLUSTER or at.startswith(RESOURCE_QUOTA):
        return _overrun(ssn, code, numbers, job)
    return _queue_overrun(ssn, code, numbers, job, admitting=admitting)


def compared_numbers(shorts: Sequence[Short]) -> dict[str, Any]:
    """Return the amounts compared as the numbers of a finding: of the first, and of more."""
    first, *more = (_short_numbers(each) for each in shorts)
    return {**first, "more": more} if more else first


def _compared(shorts: Iterable[Short]) -> str:
    return "; ".join(compared_amounts(each) for each in shorts)


def _overrun(ssn: Session, code: Cause, numbers: Mapping[str, Any], job: int) -> Finding:
    """Return the finding that a job would exceed the cluster, or a resource quota."""
    at, shorts = str(numbers["at"]), short_of(numbers)
    details, compared = compared_numbers(shorts), _compared(shorts)
    if at == CLUSTER:
        factor = numbers.get("factor", 1.0)
        details["factor"] = factor
        details["reserved"] = {k: base_units(k, x) for k, x in numbers.get("reserved", {}).items()}
        text = f"overcommit allows jobs to reserve {factor:g} times the cluster: {compared}"
        return Finding(code, text, None, details)
    name, namespace = at.removeprefix(RESOURCE_QUOTA), ssn.job(job).key.partition("/")[0]
    text = f"resource quota {name} would be exceeded: {compared}"
    return Finding(code, text, ObjectRef("ResourceQuota", name, namespace), details)


def _queue_overrun(
    ssn: Session, code: Cause, numbers: Mapping[str, Any], job: int, *, admitting: bool
) -> Finding:
    """Return the finding that a queue, or one above it, would exceed its limit."""
    at, shorts = str(numbers["at"]), short_of(numbers)
    used = _Used.when(ssn, admitting=admitting)
    if code is Cause.QUEUE_OVER_DESERVED and all(_is_stated(ssn, at, each) for each in shorts):
        code = Cause.QUEUE_OVER_CAPABILITY  # which bounds what it deserves
    if code is Cause.QUEUE_OVER_CAPABILITY and used is not None:
        at, shorts = next(iter(_by_owner(ssn, used, at, shorts).items()))
    pods = numbers.get("pods", 0)
    if all(_is_whole_cluster(ssn, at, each) for each in shorts):
        return _cluster_overrun(code, at, shorts, admitting=admitting)
    details = compared_numbers(shorts) | ({"pods": pods} if pods else {})
    words = "what it deserves" if code is Cause.QUEUE_OVER_DESERVED else "its limit"
    gang = f" with {_part(ssn, job, pods)}" if pods else ""
    text = f"queue {at} would exceed {words}{gang}: {_compared(shorts)}"
    guarantees = _guarantees(ssn, used, at, shorts[0])
    if guarantees:
        details["guarantees"] = {
            k: base_units(shorts[0].resource, x) for k, x in guarantees.items()
        }
        amounts = [f"{k} ({amount_text(shorts[0].resource, x)})" for k, x in guarantees.items()]
        text += f"; the rest is guaranteed to {first_of(amounts, 3)}"
    elastic = _elastic(ssn, used, at, shorts) if admitting else {}
    if elastic:
        details["elastic"] = {k: base_units(k, x) for k, x in elastic.items()}
        listed = ", ".join(f"{k} {amount_text(k, x)}" for k, x in elastic.items())
        text += f"; what running jobs hold beyond their minResources is not counted ({listed})"
    return Finding(code, text, ObjectRef("Queue", at), details)


def _cluster_overrun(code: Cause, queue: str, shorts: list[Short], *, admitting: bool) -> Finding:
    """Return the finding that the jobs of a queue without a limit would exceed the cluster."""
    numbers = {**compared_numbers(shorts), "wholeCluster": True}
    if not admitting:
        text = f"queue {queue} would exceed the cluster: {_compared(shorts)}"
        return Finding(code, text, ObjectRef("Queue", queue), numbers)
    text = f"jobs of queue {queue} would exceed the cluster: {_compared(shorts)}"
    return Finding(Cause.NOT_ADMITTED, text, None, numbers)


def further_limits(
    ssn: Session, job: int, first: Finding, *, admitting: bool = False
) -> Iterator[Finding]:
    """Yield the other queues up to the root that would exceed a limit, beside the ``first`` one."""
    asked = ssn.job(job).min_resources if admitting else gang_request(ssn, job)
    used = _Used.when(ssn, admitting=admitting)
    row, names = int(ssn.snapshot.jobs.queue[job]), ssn.snapshot.resources.names
    is_queue = first.about is not None and first.about.kind == "Queue"
    if not is_queue or used is None or asked is None or row not in used.limits.tree.ancestors:
        return
    seen = {first.about.name if first.about is not None else ""}
    for each in used.limits.tree.chain(row):
        held, limit = used.amounts[:, each], used.limits.real_capability[:, each]
        over = (asked >= STEP) & (held + asked - limit >= STEP)
        over[PODS] = False  # queues do not limit their number
        shorts = [
            Short(names[r], float(held[r]), float(asked[r]), float(limit[r]))
            for r in np.flatnonzero(over).tolist()
        ]
        owners = _by_owner(ssn, used, ssn.snapshot.queues.names[each], shorts)
        for at, moved in owners.items():
            if at in seen or any(_is_whole_cluster(ssn, at, one) for one in moved):
                continue
            seen.add(at)
            first_short, *more = (one.numbers() for one in moved)
            numbers = {"at": at, **first_short, **({"more": more} if more else {})}
            yield _queue_overrun(ssn, first.code, numbers, job, admitting=admitting)


def _part(ssn: Session, job: int, pods: int) -> str:
    """Describe some pods of a gang: all that it still needs, or a part of them."""
    view = ssn.job(job)
    if pods != still_needed(ssn, job):
        return f"{pods} of its pods"
    more = "more " if view.ready else ""
    return f"the {pods} {more}pods that the gang needs"


def _is_whole_cluster(ssn: Session, queue: str, short: Short) -> bool:
    """Return whether a limit is the size of the cluster, because no queue states it."""
    queues, names = ssn.snapshot.queues, ssn.snapshot.resources.names
    if short.resource not in names:
        return False  # of devices that claims ask for
    res = names.index(short.resource)
    stated = queues.capability_given[res, queues.row_of[queue]]
    return not stated and short.limit >= float(ssn.total[res]) - STEP


def _is_stated(ssn: Session, queue: str, short: Short) -> bool:
    """Return whether a limit is the capability that a queue states."""
    queues, names = ssn.snapshot.queues, ssn.snapshot.resources.names
    if short.resource not in names or queue not in queues.row_of:
        return False
    at = names.index(short.resource), queues.row_of[queue]
    return bool(queues.capability_given[at]) and short.limit >= float(queues.capability[at]) - STEP


def _short_numbers(short: Short) -> dict[str, Any]:
    name = short.resource
    return {
        "resource": name,
        "used": base_units(name, short.used),
        "request": base_units(name, short.request),
        "limit": base_units(name, short.limit),
        "over": base_units(name, short.used + short.request - short.limit),
    }


def _by_owner(
    ssn: Session, used: _Used, queue: str, shorts: Iterable[Short]
) -> dict[str, list[Short]]:
    """Sort what a queue is short of by the queues whose limits these are: itself, or ancestors."""
    found: dict[str, list[Short]] = {}
    for short in shorts:
        at, moved = _at_whose_limit(ssn, used, queue, short)
        found.setdefault(at, []).append(moved)
    return found


def _at_whose_limit(ssn: Session, used: _Used, queue: str, short: Short) -> tuple[str, Short]:
    """Move a refusal to the queue that states the limit: an ancestor, if the queue states more."""
    queues, names = ssn.snapshot.queues, ssn.snapshot.resources.names
    if short.resource not in names:
        return queue, short
    res, row = names.index(short.resource), queues.row_of[queue]
    real, at = used.limits.real_capability[res], row
    for above in reversed(used.limits.tree.ancestors.get(row, ())):
        states_it = queues.capability_given[res, at] and queues.capability[res, at] <= real[at]
        if states_it or real[above] != real[at]:
            break
        at = above
    more = float(used.amounts[res, at] - used.amounts[res, row])
    return queues.names[at], replace(short, used=short.used + more)


def _guarantees(ssn: Session, used: _Used | None, queue: str, short: Short) -> dict[str, float]:
    """Name the queues whose guarantees make a limit lower than the stated capability."""
    queues, names = ssn.snapshot.queues, ssn.snapshot.resources.names
    if used is None:
        return {}
    limits, row, res = used.limits, queues.row_of[queue], names.index(short.resource)
    stated = float(limits.capability[res, row])
    if res < PODS and stated <= 0:
        stated = np.inf
    if not limits.real_capability[res, row] < stated or short.limit >= stated:
        return {}
    above = limits.tree.ancestors.get(row)
    siblings = limits.tree.children.get(above[-1], []) if above else range(len(limits.guarantee.T))
    return {
        queues.names[each]: float(limits.guarantee[res, each])
        for each in siblings
        if each != row and limits.guarantee[res, each] >= STEP
    }


def _elastic(
    ssn: Session, used: _Used | None, queue: str, shorts: Sequence[Short]
) -> dict[str, float]:
    """Name what jobs hold beyond what they need to start, of the resources that are short."""
    if used is None:
        return {}
    beyond = used.limits.tree.sum_up(elastic_by_queue(ssn.snapshot))
    column, names = beyond[:, ssn.snapshot.queues.row_of[queue]], ssn.snapshot.resources.names
    amounts = {each.resource: float(column[names.index(each.resource)]) for each in shorts}
    return {resource: amount for resource, amount in amounts.items() if amount >= STEP}


def overused(ssn: Session, queue: int) -> Finding:
    """Return the finding that a queue has what it deserves."""
    snapshot = ssn.snapshot
    name, names = snapshot.queues.names[queue], snapshot.resources.names
    view = ssn.queue(queue)
    for plugin, ask in ssn.hooks.bound(Plugin.overused):
        if not ask(view):
            continue
        limits = plugin.queue_limits(snapshot, ssn.total)
        if limits is None:
            code = Cause.EXTENDER_REFUSED if plugin.name == EXTENDER else Cause.PLUGIN_REFUSED
            return Finding(code, f"{plugin.name} requires queue {name} to wait", None)
        held = snapshot.queues.allocated_or_pipelined[:, queue]
        rows = [r for r in np.flatnonzero(limits.deserved[:, queue] >= STEP).tolist() if r != PODS]
        amounts = {names[r]: (float(held[r]), float(limits.deserved[r, queue])) for r in rows}
        details = ", ".join(
            f"{k} {amount_text(k, x)} of {amount_text(k, d)}" for k, (x, d) in amounts.items()
        )
        numbers = {
            "held": {k: base_units(k, x) for k, (x, _) in amounts.items()},
            "deserved": {k: base_units(k, d) for k, (_, d) in amounts.items()},
        }
        text = f"queue {name} has all that it deserves ({details or 'nothing'}), so it is skipped"
        return Finding(Cause.QUEUE_OVER_DESERVED, text, ObjectRef("Queue", name), numbers)
    return Finding(Cause.QUEUE_OVER_DESERVED, f"queue {name} must wait", ObjectRef("Queue", name))


def closed(ssn: Session, job: int) -> Iterator[Finding]:
    """Yield a queue that is not open to a job without pods."""
    queue = ssn.queue(int(ssn.snapshot.jobs.queue[job]))
    if not queue.is_open and ssn.hooks.tiers(Plugin.allocatable):
        text = f"queue {queue.name} is not open"
        yield Finding(Cause.QUEUE_CLOSED, text, ObjectRef("Queue", queue.name))


# Resource quotas without room for the pods that a gang lacks


def refused_by_quotas(ssn: Session, job: int, lacking: int) -> Iterator[Finding]:
    """Yield the quotas without room for what the gang of a job needs beside the pods it has."""
    view = ssn.job(job)
    namespace = view.key.partition("/")[0]
    quotas = [
        quota
        for quota in ssn.snapshot.kind("ResourceQuota").values()
        if isinstance(quota, ResourceQuota) and quota.metadata.namespace == namespace
    ]
    if not quotas:
        return
    pods = [to_manifest(one) for row in view.tasks if (one := _counted(ssn, row)) is not None]
    needs = _amounts(view.group.spec.min_resources)
    for pod in pods:
        needs.subtract({name: each.nano for name, each in pod_usage(pod["spec"]).items()})
    for quota in sorted(quotas, key=lambda one: one.metadata.name):
        plain = {"spec": msgspec.to_builtins(quota.spec)}
        if _has_scopes(quota) and not (pods and all(in_scope(plain, pod) for pod in pods)):
            continue  # whether it counts the pods that are missing is not known
        shorts = list(_shorts(quota, needs))
        if shorts:
            compared = "; ".join(map(compared_amounts, shorts))
            text = (
                f"resource quota {quota.metadata.name} has no room for "
                f"{counted(lacking, 'more pod')}, which the gang needs: {compared}"
            )
            about = ObjectRef("ResourceQuota", quota.metadata.name, namespace)
            numbers: dict[str, Any] = {"needed": lacking, **compared_numbers(shorts)}
            yield Finding(Cause.QUOTA_EXCEEDED, text, about, numbers)


def _counted(ssn: Session, row: int) -> Pod | None:
    """Return a pod that quotas count."""
    pod = ssn.snapshot.tasks.pods[row]
    return pod if isinstance(pod, Pod) and pod.status.phase not in ENDED_PHASES else None


def _has_scopes(quota: ResourceQuota) -> bool:
    return bool(quota.spec.scopes or quota.spec.scope_selector)


def _shorts(quota: ResourceQuota, needs: Counter[str]) -> Iterator[Short]:
    hard, used = _amounts(quota.status.hard or quota.spec.hard), _amounts(quota.status.used)
    for entry in sorted(hard.keys() & needs.keys()):
        over = used[entry] + needs[entry] > hard[entry]
        if over and needs[entry] > 0 and limits_pods(entry):
            yield Short.of_nano(entry, used[entry], needs[entry], hard[entry])


def _amounts(quantities: Mapping[str, Any] | None) -> Counter[str]:
    """Read amounts exactly, in nano units."""
    return Counter({name: parse_quantity(each) for name, each in (quantities or {}).items()})
