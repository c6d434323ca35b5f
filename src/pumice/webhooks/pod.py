"""Pods: resource groups and gates for new ones, and the annotations of disruption budgets."""

import json
import re
from typing import Any, Final

from pumice.api.annotations import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, QUEUE_GATE
from pumice.webhooks.fields import quoted
from pumice.webhooks.go_types import DecodeError, GoNumberError, decode, parse_int
from pumice.webhooks.review import (
    Answer,
    Existing,
    Finding,
    Options,
    Patch,
    Request,
    ResourceGroup,
    denied,
)

KIND: Final = "v1.Pod"
_GROUP: Final = "volcano.sh/resource-group"
_BUDGETS: Final = (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE)
_PAIR: Final = re.compile(r"\s*([^:#]+?)\s*:\s+(.*?)\s*", re.DOTALL)


def mutate_pod(request: Request, existing: Existing, options: Options) -> Answer:
    """Add the settings of its resource group to a new pod, and a gate if it asks for one."""
    del existing
    pod = decode(request.object, KIND)
    if request.operation != "CREATE":
        return denied([Finding("expect operation to be 'CREATE' ")])
    if options.resource_groups is None:
        return Answer()
    namespace = pod["metadata"].get("namespace") or request.namespace
    patch = _gate(pod) if options.gate_pods else []
    group = next((one for one in options.resource_groups if _belongs(pod, namespace, one)), None)
    if group is not None:
        patch += _of_group(pod["spec"], group)
    return Answer(patch=patch or None)


def _gate(pod: dict[str, Any]) -> Patch:
    annotations = pod["metadata"].get("annotations") or {}
    gates = pod["spec"].get("schedulingGates") or []
    if annotations.get(QUEUE_GATE) != "true" or any(one["name"] == QUEUE_GATE for one in gates):
        return []
    gate = {"name": QUEUE_GATE}
    if not gates:
        return [{"op": "add", "path": "/spec/schedulingGates", "value": [gate]}]
    return [{"op": "add", "path": "/spec/schedulingGates/-", "value": gate}]


def _belongs(pod: dict[str, Any], namespace: str, group: ResourceGroup) -> bool:
    if group.key == "namespace":
        return namespace in group.values
    if group.key not in ("", "annotation"):
        return False
    annotations = pod["metadata"].get("annotations") or {}
    wanted: dict[str, str] = {}
    for text in group.values:
        wanted = {**_pairs(text), **wanted}
    if any(annotations.get(key, "") == value for key, value in wanted.items()):
        return True
    return not group.key and annotations.get(_GROUP, "") == group.name


def _pairs(text: str) -> dict[str, str]:
    """Read annotations that a configuration lists as ``key: value``."""
    found = {}
    for line in text.splitlines():
        match = _PAIR.fullmatch(line)
        if match:
            found[match[1].strip("\"'")] = match[2].strip("\"'")
    return found


def _of_group(spec: dict[str, Any], group: ResourceGroup) -> Patch:
    patch: Patch = []
    if group.labels:
        selector = {**(spec.get("nodeSelector") or {}), **group.labels}
        value: Any = dict(sorted(selector.items()))
        patch.append({"op": "add", "path": "/spec/nodeSelector", "value": value})
    affinity = _affinity(group.affinity)
    if affinity is not None and spec.get("affinity") is None:
        patch.append({"op": "add", "path": "/spec/affinity", "value": affinity})
    if group.tolerations:
        value = [*(spec.get("tolerations") or ()), *group.tolerations]
        patch.append({"op": "add", "path": "/spec/tolerations", "value": value})
    if group.scheduler_name:
        value = group.scheduler_name
        patch.append({"op": "add", "path": "/spec/schedulerName", "value": value})
    return patch


def _affinity(text: str) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        return decode(json.loads(text), "v1.Affinity")
    except (DecodeError, json.JSONDecodeError):
        return None


def validate_pod(request: Request, existing: Existing, options: Options) -> Answer:
    """Check the budgets of a new pod that is ours."""
    del existing
    pod = decode(request.object, KIND)
    if request.operation != "CREATE":
        return denied([Finding("expect operation to be 'CREATE'")])
    if pod["spec"].get("schedulerName", "") not in options.scheduler_names:
        return Answer()
    annotations = pod["metadata"].get("annotations") or {}
    given = [key for key in _BUDGETS if key in annotations]
    for key in given:
        text = _budget_problem(key, annotations[key])
        if text:
            path = ("metadata", "annotations", key)
            wanted = "a number of at least 1, or 1% to 99%"
            return denied([Finding(text, path, annotations[key], wanted)])
    if len(given) > 1:
        text = f"not allow configure multiple annotations <[{' '.join(_BUDGETS)}]> at same time"
        return denied([Finding(text, ("metadata", "annotations"), given, "one of them")])
    return Answer()


def _budget_problem(key: str, value: str) -> str:
    try:
        number = parse_int(value, bits=32)
    except GoNumberError:
        return _percentage_problem(key, value)
    if number > 0:
        return ""
    return f"invalid value <{quoted(value)}> for {key}, it must be a positive integer"


def _percentage_problem(key: str, value: str) -> str:
    try:
        number = parse_int(value.replace("%", ""))
    except GoNumberError as error:
        return f"invalid value {error} for {key}"
    if 0 < number < 100:
        return ""
    return (
        f"invalid value <{quoted(value)}> for {key}, "
        "it must be a valid percentage which between 1% ~ 99%"
    )
