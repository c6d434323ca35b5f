"""PodGroups: the queue of their namespace, and whether that queue takes work."""

from collections.abc import Iterator
from typing import Any, Final

from pumice.api.annotations import GROUP_QUEUE
from pumice.api.kinds import DEFAULT_QUEUE
from pumice.webhooks.contents import HEAD, KnownContents, content_key
from pumice.webhooks.fields import quoted
from pumice.webhooks.names import each, qualified_name
from pumice.webhooks.review import (
    Answer,
    Existing,
    Finding,
    Options,
    Request,
    denied,
    of_field,
    within_length,
)
from pumice.webhooks.types.decoding import decode

KIND: Final = "scheduling.PodGroup"
_VALID: Final = KnownContents[str]()
"""Contents in which nothing is wrong, whatever becomes of the queue that they name."""
_TOPOLOGY: Final = (
    "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously."
)


def mutate_podgroup(request: Request, existing: Existing, options: Options) -> Answer:
    """Set the queue of a group without one to that of its namespace."""
    del options
    group = decode(request.object, KIND)
    if request.operation != "CREATE":
        text = f"invalid operation `{request.operation}`, expect operation to be `CREATE`"
        return denied([Finding(text)])
    if group["spec"].get("queue", "") != DEFAULT_QUEUE:
        return Answer()
    namespace = existing.namespace(group["metadata"].get("namespace", "")) or {}
    annotations = (namespace.get("metadata") or {}).get("annotations") or {}
    if GROUP_QUEUE not in annotations:
        return Answer()
    queue = annotations[GROUP_QUEUE]
    return Answer(patch=[{"op": "add", "path": "/spec/queue", "value": queue}])


def validate_podgroup(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new group; of one whose content was found valid before, its queue alone."""
    del options
    key = content_key(request.object) if isinstance(request.object, dict) else b""
    known = _VALID.get(key)
    if request.operation == "CREATE" and known is not None:
        decode({name: request.object[name] for name in HEAD if name in request.object}, KIND)
        return denied(_queue(known, existing))
    group = decode(request.object, KIND)
    if request.operation != "CREATE":
        return denied([Finding(f"unsupported operation {request.operation}")])
    queue_name = group["spec"].get("queue", "")
    queue = list(_queue(queue_name, existing))
    topology = list(_topology(group["spec"]))
    resources = within_length(_resources(group["spec"].get("minResources") or {}))
    if not topology and not resources:
        _VALID.remember(key, queue_name)
    parts = [one.text for one in queue]
    if topology:
        parts.append(" ".join(one.text for one in topology))
    parts += [one.text for one in resources]
    return denied([*queue, *topology, *resources], "; ".join(parts))


def _resources(amounts: dict[str, Any]) -> Iterator[Finding]:
    """Refuse names that no resource can have; Volcano takes any."""
    path = ("spec", "minResources")
    for name in sorted(amounts):
        yield from (of_field(one) for one in each(qualified_name(name), (*path, name), name))


def _queue(name: str, existing: Existing) -> Iterator[Finding]:
    if not name:
        return
    queue = existing.queue(name)
    if queue is None:
        text = f"unable to find queue: queue.scheduling.volcano.sh {quoted(name)} not found"
        yield Finding(text, ("spec", "queue"), name, "a queue that exists")
        return
    state = (queue.get("status") or {}).get("state", "")
    if state != "Open":
        text = (
            "can only submit PodGroup to queue with state `Open`, "
            f"queue `{name}` status is `{state}`."
        )
        wanted = f"an open queue (this one is {state or 'in no state'})"
        yield Finding(text, ("spec", "queue"), name, wanted)


def _topology(spec: dict[str, Any]) -> Iterator[Finding]:
    wanted = "highestTierAllowed or highestTierName"
    if _says_both(spec):
        yield Finding(_TOPOLOGY, ("spec", "networkTopology"), spec["networkTopology"], wanted)
    for index, policy in enumerate(spec.get("subGroupPolicy") or ()):
        if _says_both(policy):
            text = f"in subGroupPolicy '{policy.get('name', '')}': {_TOPOLOGY}"
            path = ("spec", "subGroupPolicy", index, "networkTopology")
            yield Finding(text, path, policy["networkTopology"], wanted)
            return


def _says_both(holder: dict[str, Any]) -> bool:
    given = holder.get("networkTopology") or {}
    return given.get("highestTierAllowed") is not None and bool(given.get("highestTierName"))
