"""Usage of pods as resource quotas count it: ``minResources`` of a PodGroup.

Amounts keep their form: 32Mi twice is 64Mi, 32M twice is 64M.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pumice.api.pod_resources import Amounts, plus, pod_amounts
from pumice.api.quantity import Amount

_ONE: Final = Amount(10**9)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")


def pods_usage(pods: Iterable[tuple[Mapping[str, Any], int]]) -> dict[str, str]:
    """Sum up what pods use, given as specs with the number of pods of each."""
    total: Amounts = {}
    for spec, n_pods in pods:
        if n_pods > 0:
            used = _pod_usage(spec)
            total = plus(
                total, {name: Amount(each.nano * n_pods, each.form) for name, each in used.items()}
            )
    return {name: str(each) for name, each in total.items()}


def _pod_usage(spec: Mapping[str, Any]) -> Amounts:
    """Compute the usage of one pod in a resource quota, by quota name."""
    one: Amounts = {"pods": _ONE, "count/pods": _ONE}
    for resource, amount in pod_amounts(spec, "requests").items():
        if resource in _COMPUTE or resource.startswith("hugepages-") or not is_native(resource):
            one[resource] = one[f"requests.{resource}"] = amount
    for resource, amount in pod_amounts(spec, "limits").items():
        if resource in _COMPUTE:
            one[f"limits.{resource}"] = amount
    return one


def is_native(resource: str) -> bool:
    """Check for a resource of Kubernetes itself, as opposed to an extended one."""
    return "/" not in resource or "kubernetes.io/" in resource
