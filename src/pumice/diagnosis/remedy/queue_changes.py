"""Changes of queues and quotas."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from pumice.api.annotations import NODE_GROUP
from pumice.api.kinds import Manifest
from pumice.api.quantity import format_quantity
from pumice.api.wording import nearest
from pumice.diagnosis.changes import Add, Change, patched
from pumice.diagnosis.expected import open_queue
from pumice.diagnosis.remedy.target import Target
from pumice.examine.findings import Finding

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


def raise_limit(
    target: Target, cause: Finding
) -> Iterator[Change | tuple[Callable[[int], Change | None], int] | None]:
    """Raise the capability that is overrun, by the missing amount and more."""
    numbers = cause.numbers
    if cause.about is None or cause.about.kind != "Queue" or "resource" not in numbers:
        return
    name = cause.about.name
    spec = _queue(target, name).get("spec") or {}
    pods = max(1, len(target.pods))

    def make(n: int) -> Change | None:
        stated = dict(spec.get("capability") or {})
        amounts = []
        for short in (numbers, *numbers.get("more", ())):
            resource = str(short["resource"])
            wanted = short["used"] + short["request"] * (1 + (n - 1) / _PARTS)
            old = stated.get(resource)
            stated[resource] = _quantity(resource, wanted)
            was = f"from {old} " if old is not None else ""
            amounts.append(f"{resource} {was}to {stated[resource]}")
        text = f"raise the capability of queue {name}: {', '.join(amounts)}"
        return _changed(target, name, text, capability=stated)

    if spec.get("capability"):
        yield make, _TIMES * _PARTS * pods


def lower_guarantees(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Lower the guarantee of another queue that takes the room."""
    resource = str(cause.numbers.get("resource", ""))
    for name in cause.numbers.get("guarantees", {}):
        spec = _queue(target, name).get("spec") or {}
        stated = dict((spec.get("guarantee") or {}).get("resource") or {})
        old = stated.pop(resource, None)
        if old is None:
            continue
        left = cause.numbers["guarantees"][name] - cause.numbers["over"]
        if left > 0:
            stated[resource] = _quantity(resource, left, up=False)
        new = {**(spec.get("guarantee") or {}), "resource": stated} if stated else None
        text = f"lower the guarantee of queue {name} for {resource} from {old} to {max(left, 0):g}"
        yield _changed(target, name, text, guarantee=new)


def heavier(
    target: Target, cause: Finding
) -> Iterator[Change | tuple[Callable[[int], Change | None], int] | None]:
    """Raise the weight of the queue, so that it deserves more."""
    name = cause.about.name if cause.about is not None else target.queue
    old = int((_queue(target, name).get("spec") or {}).get("weight") or 1)
    if len(target.world.of_kind("Queue")) > 1:

        def make(n: int) -> Change | None:
            text = f"raise the weight of queue {name} from {old} to {old + n}"
            return _changed(target, name, text, weight=old + n)

        yield make, _MOST_WEIGHT


def wider_quota(
    target: Target, cause: Finding
) -> Iterator[Change | tuple[Callable[[int], Change | None], int] | None]:
    """Raise the resource quota that is overrun; its pods may already count in it."""
    about, numbers = cause.about, cause.numbers
    if about is None or about.kind != "ResourceQuota":
        return
    key = f"{about.namespace}/{about.name}"
    quota = target.world.of_kind("ResourceQuota").get(key)
    if quota is None:
        return

    def make(n: int) -> Change | None:
        hard = {
            name: _quantity(name, each["used"] + each["request"] * (1 + (n - 1) / _PARTS))
            for each in (numbers, *numbers.get("more", ()))
            for name in (str(each["resource"]),)
        }
        new = dict(quota)
        for part in ("spec", "status"):
            if (quota.get(part) or {}).get("hard") is not None:
                new[part] = {**quota[part], "hard": {**quota[part]["hard"], **hard}}
        amounts = ", ".join(f"{name} to {amount}" for name, amount in hard.items())
        text = f"raise resource quota {about.name}: {amounts}"
        return Change(text, (patched("ResourceQuota", key, quota, new),))

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
