"""What one pod uses of a resource quota, by the names that quotas have for it."""

from collections.abc import Mapping
from typing import Any, Final

from pumice.api.pod_resources import Amounts, Reader, pod_amounts
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
