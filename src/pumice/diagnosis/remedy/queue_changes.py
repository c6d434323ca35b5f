"""Changes of queues and quotas."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from pumice.api.annotations import NODE_GROUP
from pumice.api.kinds import RESOURCE_QUOTA, Manifest
from pumice.api.quantity import format_quantity, parse_quantity
from pumice.api.wording import nearest
from pumice.controllers.expected import open_queue
from pumice.diagnosis.changes import Add, Change, Operation, patched
from pumice.diagnosis.cluster_state import key_of
from pumice.diagnosis.refused_pods import needed_pods, raised_limits, refused_count
from pumice.diagnosis.remedy.target import Target, requests_of
from pumice.examine.findings import Finding

Sized = tuple[Callable[[int], Change | None], int]
_NANO: Final = 10**9
_PARTS: Final = 4
_TIMES: Final = 3
_MOST_WEIGHT: Final = 99
_OTHERS: Final = 3


def _queue(target: Target, name: str) -> Manifest:
    return target.world.of_kind("Queue").get(name, {})


def _changed(target: Target, name: str, text: str, **fields: Any) -> Change | None:
    """Change fields of a queue's spec; None removes one."""
    queue = _queue(target, name)
    if not queue:
        return None
    spec = {**(queue.get("spec") or {}), **fields}
    new = {**queue, "spec": {key: value for key, value in spec.items() if value is not None}}
    return Change(text, (patched("Queue", name, queue, new),))


def new_queue(_: Target, cause: Finding) -> Iterator[Change | None]:
    """Create the queue that is missing."""
    if cause.about is not None and cause.about.name:
        name = cause.about.name
        yield Change(f"create queue {name}", (Add(object=open_queue(name)),))


def another_queue(target: Target, _: Finding) -> Iterator[Change | None]:
    """Name another queue that is open and takes jobs: the nearest name first."""
    queues = target.world.of_kind("Queue")
    parents = {str((one.get("spec") or {}).get("parent") or "") for one in queues.values()}
    open_ones = [
        name
        for name, one in queues.items()
        if (one.get("status") or {}).get("state", "Open") == "Open"
        and name not in parents
        and name not in ("root", target.queue)
    ]
    near = nearest(target.queue, open_ones)
    open_ones.sort(key=lambda name: (name != near, name))
    for name in open_ones[:_OTHERS]:
        yield target.with_group(f"submit it to queue {name}", {"queue": name})


def reopen_queue(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Open the queue."""
    name = cause.about.name if cause.about is not None else target.queue
    queue = _queue(target, name)
    state = (queue.get("status") or {}).get("state", "")
    if queue and state != "Open":
        new = {**queue, "status": {**(queue.get("status") or {}), "state": "Open"}}
        text = f"open queue {name} (it is {state or 'without a state'})"
        yield Change(text, (patched("Queue", name, queue, new),))


def place_in_tree(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Place the queue under the root."""
    name = cause.about.name if cause.about is not None else target.queue
    yield _changed(target, name, f"put queue {name} under root", parent="root")
    for child, one in target.world.of_kind("Queue").items():
        if str((one.get("spec") or {}).get("parent") or "") == name:
            yield target.with_group(f"submit it to queue {child}", {"queue": child})
            return


def raise_limit(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Raise the capability that is overrun, and those above, by the missing amount and more."""
    numbers = cause.numbers
    if cause.about is None or cause.about.kind != "Queue" or "resource" not in numbers:
        return
    refusing = [{"queue": cause.about.name, **numbers}, *numbers.get("above", ())]

    def make(n: int) -> Change | None:
        words: list[str] = []
        ops: list[Operation] = []
        for each in refusing:
            name, queue = str(each["queue"]), _queue(target, str(each["queue"]))
            stated = dict((queue.get("spec") or {}).get("capability") or {})
            raised = _raised(stated, (each, *each.get("more", ())), n)
            new = _changed(target, name, "", capability=stated | raised) if raised else None
            if new is None:
                return None
            words.append(f"of queue {name}: {_amounts(stated, raised)}")
            ops += new.ops
        # a queue may not state more than the one above it
        return Change(f"raise the capability {' and '.join(words)}", tuple(reversed(ops)))

    if (_queue(target, cause.about.name).get("spec") or {}).get("capability"):
        yield make, _TIMES * _PARTS * max(1, len(target.pods))


def _raised(
    stated: Mapping[str, Any], shorts: Iterable[Mapping[str, Any]], n: int
) -> dict[str, str]:
    """Return the stated amounts that are too low, each with a higher one.

    What is not stated has no limit of its own, and a stated amount that already suffices is not
    the one that stops the job.
    """
    found: dict[str, str] = {}
    for short in shorts:
        resource = str(short["resource"])
        wanted = short["used"] + short["request"] * (1 + (n - 1) / _PARTS)
        new = _quantity(resource, wanted)
        old = stated.get(resource)
        if old is not None and parse_quantity(new) > parse_quantity(old):
            found[resource] = new
    return found


def _amounts(old: Mapping[str, Any], new: Mapping[str, str]) -> str:
    return ", ".join(f"{name} from {old[name]} to {amount}" for name, amount in new.items())


def lower_guarantees(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Lower the guarantee of another queue that takes the room."""
    resource = str(cause.numbers.get("resource", ""))
    for name in cause.numbers.get("guarantees", {}):
        spec = _queue(target, name).get("spec") or {}
        stated = dict((spec.get("guarantee") or {}).get("resource") or {})
        old = stated.pop(resource, None)
        if old is None:
            continue
        left = max(0.0, cause.numbers["guarantees"][name] - cause.numbers["over"])
        amount = _quantity(resource, left, up=False)
        if left > 0:
            stated[resource] = amount
        new = {**(spec.get("guarantee") or {}), "resource": stated} if stated else None
        text = f"lower the guarantee of queue {name} for {resource} from {old} to {amount}"
        yield _changed(target, name, text, guarantee=new)


def more_deserved(target: Target, _: Finding) -> Iterator[Change | Sized | None]:
    """Raise what the queue deserves, so that it may reclaim: size 4 adds the requests of a pod."""
    name, pods = target.queue, target.pods
    stated = dict((_queue(target, name).get("spec") or {}).get("deserved") or {})
    reclaims = {"reclaim", "gangreclaim"} & set(target.world.scheduler_conf.actions)
    if not stated or not pods or not reclaims:
        return
    asked = {
        resource: amount
        for resource, amount in requests_of(pods[0]["spec"]).items()
        if resource in stated and amount > 0
    }

    def make(n: int) -> Change | None:
        raised = {
            resource: _quantity(resource, float(held + n * amount / _PARTS))
            for resource, amount in asked.items()
            for held in (Fraction(parse_quantity(stated[resource]), _NANO),)
        }
        text = f"raise what queue {name} deserves: {_amounts(stated, raised)}"
        return _changed(target, name, text, deserved=stated | raised)

    if asked:
        yield make, _PARTS * max(1, min(len(pods), target.least))


def heavier(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Raise the weight of the queue, so that it deserves more."""
    name = cause.about.name if cause.about is not None else target.queue
    old = int((_queue(target, name).get("spec") or {}).get("weight") or 1)
    if len(target.world.of_kind("Queue")) > 1:

        def make(n: int) -> Change | None:
            text = f"raise the weight of queue {name} from {old} to {old + n}"
            return _changed(target, name, text, weight=old + n)

        yield make, _MOST_WEIGHT


def quota_for_pods(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Raise the resource quotas that refuse pods which the gang needs, all together."""
    world, group = target.world, target.group
    del cause  # all quotas that refuse are raised together

    def make(n: int) -> Change | None:
        texts, ops = [], []
        for quota, limits in raised_limits(world, group, n):
            key, old = key_of(quota), quota["spec"]["hard"]
            texts.append(f"{quota['metadata']['name']}: {_amounts(old, limits)}")
            new = {**quota, "spec": {**quota["spec"], "hard": {**old, **limits}}}
            ops.append(patched(RESOURCE_QUOTA, key, quota, new))
        text = f"raise resource quota {' and '.join(texts)}"
        return Change(text, tuple(ops)) if ops else None

    yield make, 2 + refused_count(world, group) - len(needed_pods(world, group))


def wider_quota(target: Target, cause: Finding) -> Iterator[Change | Sized | None]:
    """Raise the resource quota that is overrun; its pods may already count in it."""
    about, numbers = cause.about, cause.numbers
    if about is None or about.kind != RESOURCE_QUOTA:
        return
    key = f"{about.namespace}/{about.name}"
    quota = target.world.of_kind(RESOURCE_QUOTA).get(key)
    if quota is None:
        return

    def make(n: int) -> Change | None:
        old = {**((quota.get("spec") or {}).get("hard") or {})}
        old = {**((quota.get("status") or {}).get("hard") or {}), **old}
        hard = _raised(old, (numbers, *numbers.get("more", ())), n)
        new = dict(quota)
        for part in ("spec", "status"):
            if (quota.get(part) or {}).get("hard") is not None:
                new[part] = {**quota[part], "hard": {**quota[part]["hard"], **hard}}
        text = f"raise resource quota {about.name}: {_amounts(old, hard)}"
        return Change(text, (patched(RESOURCE_QUOTA, key, quota, new),)) if hard else None

    yield make, _TIMES * _PARTS


def use_node_groups(target: Target, _: Finding) -> Iterator[Change | None]:
    """Allow the queue to use the existing node groups."""
    name = target.queue
    groups = sorted(
        {
            str(label)
            for one in target.world.of_kind("Node").values()
            if (label := (one["metadata"].get("labels") or {}).get(NODE_GROUP))
        }
    )
    for group in groups:
        spec = _queue(target, name).get("spec") or {}
        known = ((spec.get("affinity") or {}).get("nodeGroupAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        ) or []
        if group not in known:
            wanted = [*known, group]
            affinity = {
                "nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}
            }
            text = f"allow queue {name} to use node group {group}"
            yield _changed(target, name, text, affinity=affinity)


def _quantity(resource: str, amount: float, *, up: bool = True) -> str:
    """Write cores, bytes or pieces as a quantity, never too little."""
    name = resource.removeprefix("requests.").removeprefix("limits.")
    if name == "cpu":
        milli = math.ceil(amount * 1000 - 1e-9) if up else math.floor(amount * 1000)
        return format_quantity(resource, milli)
    whole = math.ceil(amount - 1e-9) if up else math.floor(amount)
    return format_quantity(resource, whole)
