"""An API server's work on pods beyond storing them: priority, amounts, fixed fields, binding.

Pure functions on manifests; used by the store, which stores the results.
"""

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any, Final

from pumice.api.kinds import SYSTEM_PRIORITIES, Manifest
from pumice.errors import ConflictError, ForbiddenError, RejectedError

_MUTABLE: Final = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations")
"""Fields of a pod's spec that may change, beside parts of containers and scheduling gates."""
_CONTAINERS: Final = ("containers", "initContainers")


def prioritised(pod: Manifest, classes: Iterable[Manifest]) -> None:
    """Write the priority of a new pod by its priority class, in place, as admission does.

    Raises:
        ForbiddenError: there is no such priority class, or the pod states another priority.
    """
    spec = pod["spec"]
    known = {one["metadata"]["name"]: one for one in classes}
    name = spec.get("priorityClassName") or _default_class(known)
    found = known.get(name, {})
    value = int(found.get("value") or 0)
    if name and name not in known:
        if name not in SYSTEM_PRIORITIES:
            raise _forbidden(pod, f"no PriorityClass with name {name} was found")
        value = SYSTEM_PRIORITIES[name]
    if name:
        spec["priorityClassName"] = name
    policy = found.get("preemptionPolicy") or "PreemptLowerPriority"
    _settle(pod, "priority", "integer value of priority", value)
    _settle(pod, "preemptionPolicy", "string value of PreemptionPolicy", policy)


def _settle(pod: Manifest, field: str, what: str, computed: Any) -> None:
    """Write a field that a pod may state only as it is computed."""
    given = pod["spec"].get(field)
    if given is not None and given != computed:
        problem = (
            f"the {what} ({given}) must not be provided in pod spec; priority admission "
            f"controller computed {computed} from the given PriorityClass name"
        )
        raise _forbidden(pod, problem)
    pod["spec"][field] = computed


def _default_class(known: Mapping[str, Manifest]) -> str:
    """Name the class of pods that name none; of several the lowest, empty if there is none."""
    defaults = (name for name, one in known.items() if one.get("globalDefault"))
    return min(defaults, key=lambda name: int(known[name].get("value") or 0), default="")


def _forbidden(pod: Manifest, problem: str) -> ForbiddenError:
    meta = pod["metadata"]
    message = f'pods "{meta["name"]}" is forbidden: {problem}'
    return ForbiddenError("Pod", meta["namespace"], meta["name"], message)


def give_amounts(pod: Manifest, ranges: Iterable[Manifest]) -> None:
    """Write the amounts that limit ranges of its namespace state into a pod, in place.

    The requests that follow from its own limits must be filled in before.  Quotas count a pod with
    them; the bounds of limit ranges are not checked.
    """
    spec = pod.get("spec") or {}
    for item in _container_limits(ranges):
        limits, requests = _default_amounts(item)
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            own = container.get("resources") or {}
            given = {
                "limits": {**limits, **(own.get("limits") or {})},
                "requests": {**requests, **(own.get("requests") or {})},
            }
            sides = {side: dict(sorted(each.items())) for side, each in given.items() if each}
            if sides:
                container["resources"] = {**own, **sides}


def _container_limits(ranges: Iterable[Manifest]) -> list[Mapping[str, Any]]:
    """List what limit ranges state about containers; the first by name decides."""
    in_order = sorted(ranges, key=lambda one: str(one["metadata"]["name"]))
    items = (item for one in in_order for item in (one.get("spec") or {}).get("limits") or ())
    return [item for item in items if item.get("type") == "Container"]


def _default_amounts(item: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return limits and requests of a container that states none.

    A bound stands in for a default that is left out: the maximum is the limit, and the limit, else
    the minimum, is the request.
    """
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    return limits, requests


def fixed_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Name the fields of a pod's spec that differ although they never change in a pod."""
    gated = bool(old.get("schedulingGates"))
    changed = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return [
        name
        for name in changed
        if name not in _MUTABLE
        and not (name in ("nodeSelector", "affinity") and gated)
        and not (name == "schedulingGates" and _only_removed(old.get(name), new.get(name)))
    ]


def keep_spec(old: Manifest, new: Manifest) -> None:
    """Complete the spec of a changed pod by the stored one, in place.

    Raises:
        RejectedError: it changes a field that never changes.
    """
    before, given = old.get("spec") or {}, new.get("spec")
    if given is before or not isinstance(given, Mapping | NoneType):
        return  # unchanged, or refused by its type
    kept = {name: each for name, each in before.items() if name != "schedulingGates"}
    after = {**kept, **{name: each for name, each in (given or {}).items() if each is not None}}
    compared = [_unsized(before), _unsized(after)]
    for name in fixed_changes(*compared):
        meta = old["metadata"]
        problem = (
            "spec: Forbidden: pod updates may not change fields other than images and resources "
            "of containers, `spec.activeDeadlineSeconds`, `spec.tolerations` and "
            f"`spec.terminationGracePeriodSeconds`; found another `spec.{name}`"
        )
        raise RejectedError("Pod", meta["namespace"], meta["name"], problem)
    new["spec"] = after


def _unsized(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec without what may change in its containers."""
    return {
        name: [{**one, "image": "", "resources": {}} for one in each]
        if name in _CONTAINERS and _are_mappings(each)
        else each
        for name, each in spec.items()
    }


def _are_mappings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _only_removed(old: Any, new: Any) -> bool:
    """Return whether a list lost items and got none."""
    return all(item in (old or ()) for item in new or ())


def with_condition(
    conditions: Iterable[Mapping[str, Any]] | None, new: Mapping[str, Any], now: str
) -> list[Mapping[str, Any]]:
    """Put a condition among others, one of each type; its time moves only with its status."""
    out: list[Mapping[str, Any]] = []
    changed = now
    place = None
    for condition in conditions or ():
        if condition["type"] == new["type"]:
            place = len(out)
            if condition.get("status") == new["status"]:
                changed = condition.get("lastTransitionTime", now)
        out.append(condition)
    written = {**new, "lastTransitionTime": changed}
    if place is None:
        out.append(written)
    else:
        out[place] = written
    return out


def bound(pod: Manifest, node: str, annotations: Mapping[str, str], now: str) -> Manifest:
    """Return a pod after it is bound to a node.

    Raises:
        ConflictError: it has one, a gate holds it back, or it is being deleted.
    """
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    problem = ""
    if spec.get("nodeName"):
        problem = f"pod is already assigned to node {spec['nodeName']}"
    elif metadata.get("deletionTimestamp"):
        problem = "pod is being deleted, cannot be assigned to a host"
    elif spec.get("schedulingGates"):
        problem = f"pod {metadata['name']} has non-empty .spec.schedulingGates"
    if problem:
        raise ConflictError("Pod", metadata["namespace"], metadata["name"], problem)
    metadata = {**metadata, "generation": metadata.get("generation", 0) + 1}
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    status = dict(pod.get("status") or {})
    status.pop("nominatedNodeName", None)
    scheduled = {"type": "PodScheduled", "status": "True"}
    status["conditions"] = with_condition(status.get("conditions"), scheduled, now)
    return {**pod, "metadata": metadata, "spec": {**spec, "nodeName": node}, "status": status}


def disrupted(pod: Manifest, reason: str, now: str) -> Manifest:
    """Return a pod after its eviction is decided."""
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": reason,
    }
    status = dict(pod.get("status") or {})
    status["conditions"] = with_condition(status.get("conditions"), target, now)
    return {**pod, "metadata": dict(pod["metadata"]), "status": status}
