"""Queues: defaults, amounts that fit each other and the tree, annotations, and deletion."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from pumice.api.annotations import HIERARCHY, HIERARCHY_WEIGHTS
from pumice.api.kinds import Manifest
from pumice.api.quantity import Amount, amount_text, amounts
from pumice.webhooks.fields import FieldError, Missing, Shown, aggregate, invalid, quoted
from pumice.webhooks.go_types import GoNumberError, decode, parse_float, same
from pumice.webhooks.names import Steps, each, qualified_name
from pumice.webhooks.pods.resources import check_amount, is_extended
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

Bundle = dict[str, float]
"""Amounts as Volcano counts them: cpu and extended resources in thousandths."""
_SMALLEST: Final = 0.1
_PARENT: Final = ("spec", "parent")
_KINDS: Final = ("guarantee", "deserved")


def check_place(queue: Manifest, existing: Existing, options: Options) -> Finding | None:
    """Find what is wrong with the parent of a queue."""
    name, parent = queue["metadata"].get("name", ""), queue["spec"].get("parent", "")
    if parent in ("", "root"):
        return None
    if parent == name:
        text = f"queue {name} cannot use itself as parent"
        return Finding(text, _PARENT, parent, "another queue")
    found = _check_depth(name, parent, existing, options.max_queue_depth)
    above = existing.queue(parent)
    if found is not None or above is None:
        return found
    pods = amounts((above.get("status") or {}).get("allocated")).get("pods")
    if not existing.below(parent) and pods is not None and pods.nano:
        text = (
            f"queue {parent} cannot be the parent queue of queue {name} "
            f"because it has allocated Pods: {pods.value}"
        )
        return Finding(text, _PARENT, parent, "a queue without pods")
    return None


def _check_depth(name: str, parent: str, existing: Existing, most: int) -> Finding | None:
    depth, at, wanted = 1, parent, f"at most {most} levels"
    while at not in ("", "root"):
        if at == name:
            wanted = "a queue that is not below it"
        depth += 1
        if depth > most:
            text = f"queue {name} exceeds the maximum allowed depth of {most}"
            return Finding(text, _PARENT, parent, wanted)
        above = existing.queue(at)
        if above is None:
            text = (
                f"failed to get parent queue {at} of queue {name}: "
                f"queue.scheduling.volcano.sh {quoted(at)} not found"
            )
            return Finding(text, _PARENT, at, "a queue that exists")
        at = (above.get("spec") or {}).get("parent", "")
    return None


def check_tree(queue: Manifest, existing: Existing) -> Finding | None:
    """Find what does not fit the queues above and below."""
    name, parent = queue["metadata"].get("name", ""), queue["spec"].get("parent", "")
    if parent not in ("", "root"):
        above = existing.queue(parent)
        if above is None:
            missing = f"queue.scheduling.volcano.sh {quoted(parent)} not found"
            text = f"parent queue {parent} not found: {missing}"
            return Finding(text, _PARENT, parent, "a queue that exists")
        found = _check_above(queue, existing)
        if found is not None:
            return found
        others = [one for one in existing.below(parent) if _name(one) != name]
        found = _check_sums([*others, queue], above, f"parent queue {parent}", of_child=True)
        if found is not None:
            return found
    children = existing.below(name)
    if not children:
        return None
    return _check_below(queue, children, existing) or _check_sums(children, queue, f"queue {name}")


def _name(queue: Manifest) -> str:
    return str(queue["metadata"].get("name", ""))


def _check_above(queue: Manifest, existing: Existing) -> Finding | None:
    own = bundle(queue["spec"].get("capability"))
    for resource in _names(own):
        limit = _nearest(queue, resource, existing)
        if limit is not None and own[resource] > limit:
            text = (
                f"queue {_name(queue)} capability[{resource}]={_shown(resource, own[resource])} "
                f"exceeds its ancestor's capability={_shown(resource, limit)}"
            )
            path = ("spec", "capability", resource)
            wanted = f"at most {_shown(resource, limit)}, as the queues above"
            return Finding(text, path, _shown(resource, own[resource]), wanted)
    return None


def _nearest(queue: Manifest, resource: str, existing: Existing) -> float | None:
    """Return the capability of the nearest queue above that has one."""
    at = queue["spec"].get("parent", "")
    seen: set[str] = set()
    while at not in ("", "root") and at not in seen:
        seen.add(at)
        above = existing.queue(at)
        if above is None:
            return None
        spec = above.get("spec") or {}
        value = bundle(spec.get("capability")).get(resource, 0.0)
        if value > 0:
            return value
        at = spec.get("parent", "")
    return None


def _check_below(queue: Manifest, children: list[Manifest], existing: Existing) -> Finding | None:
    own = bundle(queue["spec"].get("capability"))
    for resource in _names(own):
        highest = _highest(children, resource, existing)
        if own[resource] < highest:
            text = (
                f"queue {_name(queue)} capability[{resource}]={_shown(resource, own[resource])} "
                f"is smaller than its descendants' max capability={_shown(resource, highest)}"
            )
            path = ("spec", "capability", resource)
            wanted = f"at least {_shown(resource, highest)}, as the queues below"
            return Finding(text, path, _shown(resource, own[resource]), wanted)
    return None


def _highest(queues: Iterable[Manifest], resource: str, existing: Existing) -> float:
    """Return the largest capability of queues or, where one has none, of those below it."""
    highest, ahead, seen = 0.0, [*queues], set[str]()
    while ahead:  # a tree may be deep
        queue = ahead.pop()
        own = bundle((queue.get("spec") or {}).get("capability")).get(resource, 0.0)
        highest = max(highest, own)
        if own <= 0 and _name(queue) not in seen:
            seen.add(_name(queue))
            ahead += existing.below(_name(queue))
    return highest


def check_children(queue: Manifest, existing: Existing) -> Iterator[Finding]:
    """Yield everything in which child queues exceed a queue, also the root.

    Admission stops at the first finding and leaves the root out; a scheduler warns about them all.
    """
    name = _name(queue)
    children = existing.below(name)
    if name == "root":
        orphans = (one for one in existing.queues() if not (one.get("spec") or {}).get("parent"))
        children += [one for one in orphans if _name(one) != name]
    found = [_check_below(queue, children, existing)] if children else []
    if name != "root":  # its shares are those of its children
        found += [_check_sums(children, queue, f"queue {name}", (kind,)) for kind in _KINDS]
    yield from filter(None, found)


def _check_sums(
    children: Iterable[Manifest],
    above: Manifest,
    relation: str,
    kinds: tuple[str, ...] = _KINDS,
    *,
    of_child: bool = False,
) -> Finding | None:
    """Add up the amounts of children, until they exceed the limit; the last one is ``of_child``."""
    children = [*children]
    limits = {kind: bundle(_READ[kind](above.get("spec") or {})) for kind in kinds}
    totals: dict[str, Bundle] = {kind: {} for kind in kinds}
    for child in children:
        for kind in kinds:
            own = bundle(_READ[kind](child.get("spec") or {}))
            totals[kind] = _sum(totals[kind], own)
            if _exceeds(totals[kind], limits[kind]):
                text = (
                    f"{relation} validation failed: sum of children's {kind} "
                    f"({_listed(totals[kind])}) exceeds parent's {kind} limit "
                    f"({_listed(limits[kind])})"
                )
                whole = _total(children, kind)
                sums, limit = _read_well(whole), _read_well(limits[kind], whole)
                if of_child:
                    wanted = f"at most {limit} together, as queue {_name(above)} states"
                    if not limits[kind]:
                        wanted = f"none, as queue {_name(above)} states no {kind}"
                    return Finding(text, ("spec", kind), Shown(f"with its siblings {sums}"), wanted)
                wanted = f"at least {sums}, the sum of the queues below"
                return Finding(text, ("spec", kind), Shown(limit), wanted)
    return None


def _total(queues: Iterable[Manifest], kind: str) -> Bundle:
    """Add up the amounts of all queues; Volcano names the sum up to the first one too many."""
    total: Bundle = {}
    for queue in queues:
        total = _sum(total, bundle(_READ[kind](queue.get("spec") or {})))
    return dict(sorted(total.items()))


_READ: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "guarantee": lambda spec: (spec.get("guarantee") or {}).get("resource"),
    "deserved": lambda spec: spec.get("deserved"),
}


def bundle(given: Any) -> Bundle:
    """Count amounts as Volcano does."""
    counted: Bundle = {}
    for name, one in amounts(given).items():
        if name == "cpu":
            counted[name] = float(one.milli)
        elif name in ("memory", "pods"):
            counted[name] = float(one.value)
        elif name == "ephemeral-storage" or _is_scalar(name):
            counted[name] = float(one.milli)
    return counted


def _is_scalar(name: str) -> bool:
    if name.startswith("count/"):
        return False
    prefixed = name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name
    return is_extended(name) or prefixed


def _names(counted: Bundle) -> list[str]:
    first = [name for name in ("cpu", "memory") if counted.get(name, 0.0) >= _SMALLEST]
    others = (name for name in sorted(counted) if name not in ("cpu", "memory"))
    return [*first, *(name for name in others if counted[name] >= _SMALLEST)]


def _sum(one: Bundle, other: Bundle) -> Bundle:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {*one, *other}}


def _exceeds(total: Bundle, limit: Bundle) -> bool:
    for name, value in total.items():
        if name in ("cpu", "memory"):
            if value > limit.get(name, 0.0):
                return True
        elif name not in limit or value > limit[name]:
            return True
    return False


def _listed(counted: Bundle) -> str:
    others = sorted(name for name in counted if name not in ("cpu", "memory"))
    return ", ".join(f"{name} {counted.get(name, 0.0):.2f}" for name in ("cpu", "memory", *others))


def _read_well(counted: Bundle, names: Iterable[str] = ()) -> str:
    """Write amounts for users: those that are counted, or those of some names."""
    return ", ".join(
        f"{name} {amount_text(name, counted.get(name, 0.0))}" for name in names or counted
    )


def _shown(resource: str, value: float) -> str:
    if resource == "cpu":
        return str(Amount(int(value) * 10**6))
    if resource == "memory":
        return str(Amount(int(value) * 10**9, "binary"))
    return f"{value:.2f}"


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
