"""What pods use of a resource quota, by the names that quotas have for it."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from pumice.api.pod_resources import Amounts, Reader, plus, pod_amounts
from pumice.api.quantity import Amount, counted_amount

OBJECT_COUNT: Final = "count/pods"
"""The quota on pods as stored objects: one that has ended counts until it is deleted."""
_ONE: Final = Amount(10**9)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES: Final = "hugepages-"


def pod_usage(spec: Mapping[str, Any], read: Reader = counted_amount) -> Amounts:
    """Compute the usage of one pod that has not ended, by quota name."""
    one: Amounts = {"pods": _ONE, OBJECT_COUNT: _ONE}
    for resource, amount in pod_amounts(spec, "requests", read).items():
        if resource in _COMPUTE or resource.startswith(_HUGE_PAGES) or not is_native(resource):
            one[resource] = one[f"requests.{resource}"] = amount
    for resource, amount in pod_amounts(spec, "limits", read).items():
        if resource in _COMPUTE:
            one[f"limits.{resource}"] = amount
    return one


def limits_pods(name: str) -> bool:
    """Return whether an entry of a quota limits pods."""
    if name in ("pods", OBJECT_COUNT, *_COMPUTE) or name.startswith(_HUGE_PAGES):
        return True
    side, _, resource = name.partition(".")
    if side == "limits":
        return resource in _COMPUTE
    known = resource in _COMPUTE or resource.startswith(_HUGE_PAGES)
    return side == "requests" and (known or not is_native(resource))


def is_pod_count(name: str) -> bool:
    """Return whether an entry of a quota is a number of pods."""
    return name in ("pods", OBJECT_COUNT)


def is_native(resource: str) -> bool:
    """Check for a resource of Kubernetes itself, as opposed to an extended one."""
    return "/" not in resource or "kubernetes.io/" in resource


_SHORT: Final = 4096
"""Bytes of what is stated up to which its usage is remembered."""
_OF_CONTAINERS: Final = ("resources", "restartPolicy")


def pods_usage(pods: Iterable[tuple[Mapping[str, Any], int]]) -> dict[str, str]:
    """Sum up what pods use, given as specs with the number of pods of each."""
    stated = [(_stated(spec), n_pods) for spec, n_pods in pods if n_pods > 0]
    text = msgspec.json.encode(stated)
    return dict(_usage(text) if len(text) <= _SHORT else _usage.__wrapped__(text))


def _stated(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return all of a spec that has to do with amounts."""
    lists = {
        field: [{name: one[name] for name in _OF_CONTAINERS if name in one} for one in spec[field]]
        for field in ("containers", "initContainers")
        if spec.get(field)
    }
    return lists | {field: spec[field] for field in ("resources", "overhead") if field in spec}


@lru_cache(maxsize=1024)  # most pods are like others
def _usage(stated: bytes) -> Mapping[str, str]:
    total: Amounts = {}
    for spec, n_pods in msgspec.json.decode(stated):
        used = pod_usage(spec)
        total = plus(
            total, {name: Amount(each.nano * n_pods, each.form) for name, each in used.items()}
        )
    return {name: str(each) for name, each in total.items()}
