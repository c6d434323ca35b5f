"""Refusals of queues, quotas and the cluster as findings: whose limit, and the amounts compared."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from pumice.api.codes import Cause
from pumice.api.decisions import CLUSTER, RESOURCE_QUOTA, Short, short_of
from pumice.api.quantity import amount_text, base_units
from pumice.api.wording import first_of
from pumice.core.resources import PODS, STEP
from pumice.examine.failures import EXTENDER
from pumice.examine.findings import Finding, ObjectRef
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Why
from pumice.framework.session import Session
from pumice.framework.waiting_reason import compared_amounts


def refused(ssn: Session, code: Cause, why: Why, numbers: Mapping[str, Any], job: int) -> Finding:
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
    return _overrun(ssn, code, numbers, job)


def _overrun(ssn: Session, code: Cause, numbers: Mapping[str, Any], job: int) -> Finding:
    at, shorts = str(numbers["at"]), short_of(numbers)
    details: dict[str, Any] = {**_short_numbers(shorts[0])}
    if len(shorts) > 1:
        details["more"] = [_short_numbers(each) for each in shorts[1:]]
    compared = "; ".join(compared_amounts(each) for each in shorts)
    if at == CLUSTER:
        factor = numbers.get("factor", 1.0)
        details["factor"] = factor
        details["reserved"] = {k: base_units(k, x) for k, x in numbers.get("reserved", {}).items()}
        text = f"overcommit allows jobs to reserve {factor:g} times the cluster: {compared}"
        return Finding(code, text, None, details)
    if at.startswith(RESOURCE_QUOTA):
        name, namespace = at.removeprefix(RESOURCE_QUOTA), ssn.job(job).key.partition("/")[0]
        text = f"resource quota {name} would be exceeded: {compared}"
        return Finding(code, text, ObjectRef("ResourceQuota", name, namespace), details)
    words = "deserves" if code is Cause.QUEUE_OVER_DESERVED else "may"
    at = _whose_limit(ssn, at, shorts[0]) if code is Cause.QUEUE_OVER_CAPABILITY else at
    pods = numbers.get("pods", 0)
    gang = f" with the {pods} pods that the gang needs" if pods else ""
    details |= {"pods": pods} if pods else {}
    text = f"queue {at} would hold more than it {words}{gang}: {compared}"
    if _is_whole_cluster(ssn, at, shorts[0]):
        details["wholeCluster"] = True
        text += "; the limit is all the cluster has"
    guarantees = _guarantees(ssn, at, shorts[0])
    if guarantees:
        details["guarantees"] = {
            k: base_units(shorts[0].resource, x) for k, x in guarantees.items()
        }
        amounts = [f"{k} ({amount_text(shorts[0].resource, x)})" for k, x in guarantees.items()]
        text += f"; the rest is guaranteed to {first_of(amounts, 3)}"
    return Finding(code, text, ObjectRef("Queue", at), details)


def _is_whole_cluster(ssn: Session, queue: str, short: Short) -> bool:
    """Return whether a limit is the size of the cluster, because no queue states it."""
    queues, res = ssn.snapshot.queues, ssn.snapshot.resources.names.index(short.resource)
    stated = queues.capability_given[res, queues.row_of[queue]]
    return not stated and short.limit > 0 and short.limit >= float(ssn.total[res]) - STEP


def _short_numbers(short: Short) -> dict[str, Any]:
    name = short.resource
    return {
        "resource": name,
        "used": base_units(name, short.used),
        "request": base_units(name, short.request),
        "limit": base_units(name, short.limit),
        "over": base_units(name, short.used + short.request - short.limit),
    }


def _whose_limit(ssn: Session, queue: str, short: Short) -> str:
    """Name the queue that states a limit: an ancestor, if the queue inherits it."""
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
    """Name the queues whose guarantees make a limit lower than the stated capability."""
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
