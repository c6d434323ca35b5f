"""Queues: defaults, amounts that fit each other, annotations, and deletion."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.api.annotations import HIERARCHY, HIERARCHY_WEIGHTS
from pumice.api.kinds import Manifest
from pumice.api.quantity import Amount, amounts
from pumice.webhooks.fields import FieldError, Missing, aggregate, invalid, quoted
from pumice.webhooks.names import Steps, each, qualified_name
from pumice.webhooks.pods.resources import check_amount
from pumice.webhooks.queue_tree import check_place, check_tree
from pumice.webhooks.review import (
    Answer,
    Existing,
    Finding,
    Options,
    Patch,
    Request,
    denied,
    of_field,
)
from pumice.webhooks.types.decoding import decode, same
from pumice.webhooks.types.scalars import GoNumberError, parse_float

KIND: Final = "scheduling.Queue"
_STATES: Final = ("Open", "Closed")
_SPEC: Final = ("requestBody", "spec")
_ANNOTATIONS: Final = ("requestBody", "metadata", "annotations")
_AMOUNTS: Final = "v1.ResourceList"


def mutate_queue(request: Request, existing: Existing, options: Options) -> Answer:
    """Fill in the defaults of a new queue."""
    del existing, options
    queue = decode(request.object, KIND)
    if request.operation != "CREATE":
        text = f"invalid operation `{request.operation}`, expect operation to be `CREATE`"
        return denied([Finding(text)])
    patch: Patch = []
    annotations = queue["metadata"].get("annotations") or {}
    path, weights = annotations.get(HIERARCHY, ""), annotations.get(HIERARCHY_WEIGHTS, "")
    if path and weights and not path.startswith("root"):
        for key, value in ((HIERARCHY, f"root/{path}"), (HIERARCHY_WEIGHTS, f"1/{weights}")):
            place = f"/metadata/annotations/{key.replace('/', '~1')}"
            patch.append({"op": "add", "path": place, "value": value})
    if queue["spec"].get("reclaimable") is None:
        patch.append({"op": "add", "path": "/spec/reclaimable", "value": True})
    if not queue["spec"].get("weight"):
        patch.append({"op": "add", "path": "/spec/weight", "value": 1})
    return Answer(patch=patch or None)


def validate_queue(request: Request, existing: Existing, options: Options) -> Answer:
    """Check a new, a changed or a deleted queue."""
    # Volcano reads the object of a deletion too, of which there is none.
    if request.operation == "DELETE":
        return denied(_check_deletion(request, existing, options))
    queue = decode(request.object, KIND)
    errors = list(_check(queue, existing))
    if errors:
        return denied((_finding(error) for error in errors), aggregate(errors))
    if request.operation == "CREATE":
        return denied(_check_new(queue, existing, options))
    if request.operation == "UPDATE":
        return denied(_check_changed(queue, decode(request.old, KIND), existing, options))
    text = (
        f"invalid operation `{request.operation}`, "
        "expect operation to be `CREATE`, `UPDATE` or `DELETE`"
    )
    return denied([Finding(text)])


def _finding(error: FieldError) -> Finding:
    """Make a finding that points at the object instead of at the request's body."""
    made = of_field(error)
    path = ("status", "state") if error.path[-1] == "state" else made.path[1:]
    return Finding(made.text, path, made.found, made.wanted)


def _check(queue: Manifest, existing: Existing) -> Iterator[FieldError]:
    yield from _amounts(queue["spec"])
    state = queue["status"].get("state", "")
    if state and state not in _STATES:
        text = f"queue state must be in [{' '.join(_STATES)}]"
        yield invalid((*_SPEC, "state"), state, text)
    yield from _hierarchy(queue, existing)


def _named_amount(name: str, given: Amount, path: Steps) -> Iterator[FieldError]:
    """Check an amount and its resource; Volcano takes any name, and no node ever offers it."""
    yield from each(qualified_name(name), path, name)
    yield from check_amount(name, given, path)


def _amounts(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    """Require guarantee ≤ deserved ≤ capability, resource by resource."""
    capability, deserved = amounts(spec.get("capability")), amounts(spec.get("deserved"))
    guarantee = amounts(spec["guarantee"].get("resource"))
    for key, given in (("capability", capability), ("deserved", deserved)):
        for name in sorted(given):
            yield from _named_amount(name, given[name], (*_SPEC, key, name))
    for name in sorted(guarantee):
        asked = guarantee[name]
        yield from _named_amount(name, asked, (*_SPEC, "guarantee", "resource", name))
        path = (*_SPEC, "deserved", name)
        if name not in deserved:
            text = f"deserved[{name}] must be >= guarantee[{name}]={asked}"
            yield invalid(path, Missing("<nil>"), text)
        elif deserved[name].nano < asked.nano:
            text = f"deserved[{name}]={deserved[name]} must be >= guarantee[{name}]={asked}"
            yield invalid(path, str(deserved[name]), text)
    for name in sorted(deserved):
        if name in capability and deserved[name].nano > capability[name].nano:
            text = (
                f"deserved[{name}]={deserved[name]} must be <= "
                f"capability[{name}]={capability[name]}"
            )
            yield invalid((*_SPEC, "deserved", name), str(deserved[name]), text)


def _hierarchy(queue: Manifest, existing: Existing) -> Iterator[FieldError]:
    """Check the annotations that place a queue in a tree; the first fault is reported."""
    annotations = queue["metadata"].get("annotations") or {}
    path, weights = annotations.get(HIERARCHY, ""), annotations.get(HIERARCHY_WEIGHTS, "")
    if not (path or weights):
        return
    if path.count("/") != weights.count("/"):
        text = f"{HIERARCHY} must have the same length with {HIERARCHY_WEIGHTS}"
        yield invalid(_ANNOTATIONS, path, text)
        return
    for weight in weights.split("/"):
        problem = _weight_problem(weight)
        if problem:
            yield invalid(_ANNOTATIONS, weights, f"{weight} in the {weights} {problem}")
            return
    name = queue["metadata"].get("name", "")
    for other in existing.queues():
        its = (other["metadata"].get("annotations") or {}).get(HIERARCHY, "")
        if its.startswith(f"{path}/") and other["metadata"]["name"] != name:
            owner = other["metadata"]["name"]
            text = f"{path} is not allowed to be in the sub path of {its} of queue {owner}"
            yield invalid(_ANNOTATIONS, path, text)
            return


def _weight_problem(weight: str) -> str:
    try:
        number = parse_float(weight)
    except GoNumberError as error:
        return f"is invalid number: {error}"
    return "must be larger than 0" if number <= 0 else ""


def _check_new(queue: Manifest, existing: Existing, options: Options) -> Iterator[Finding]:
    found = check_place(queue, existing, options)
    if found is None and queue["metadata"].get("name") != "root":
        found = check_tree(queue, existing)
    if found is not None:
        yield found


def _check_changed(
    queue: Manifest, old: Manifest, existing: Existing, options: Options
) -> Iterator[Finding]:
    name = queue["metadata"].get("name", "")
    moved = queue["spec"].get("parent", "") != old["spec"].get("parent", "")
    resized = [
        key for key, one in _sizes(queue).items() if not same(one, _sizes(old)[key], _AMOUNTS)
    ]
    found = check_place(queue, existing, options) if moved else None
    if found is None and name == "root":
        if resized and options.protect_root_queue:
            text = (
                "root queue's resource attributes (capability, deserved, guarantee) "
                "cannot be modified"
            )
            found = Finding(text, ("spec", resized[0]), wanted="no change of the root queue")
    elif found is None and (moved or resized):
        found = check_tree(queue, existing)
    if found is not None:
        yield found


def _sizes(queue: Manifest) -> dict[str, Any]:
    spec = queue["spec"]
    return {
        "capability": spec.get("capability"),
        "deserved": spec.get("deserved"),
        "guarantee": spec["guarantee"].get("resource"),
    }


def _check_deletion(request: Request, existing: Existing, options: Options) -> Iterator[Finding]:
    name = request.name
    if name in ("default", "root"):
        yield Finding(f"`{name}` queue can not be deleted")
        return
    # The request has the present queue; Volcano looks it up in its cache.
    queue = existing.queue(name) if request.old is None else decode(request.old, KIND)
    if queue is None:
        yield Finding(f"queue.scheduling.volcano.sh {quoted(name)} not found")
        return
    if options.check_allocated_pods:
        pods = amounts((queue.get("status") or {}).get("allocated")).get("pods")
        if pods is not None and pods.nano:
            text = f"queue {name} cannot be deleted because it has allocated Pods: {pods.value}"
            yield Finding(text)
            return
    children = [one["metadata"]["name"] for one in existing.below(name)]
    if children:
        text = (
            f"queue {name} can not be deleted because it has {len(children)} child queues: "
            f"{', '.join(children)}"
        )
        yield Finding(text)
