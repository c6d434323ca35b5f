"""Resource quotas: what a namespace uses of what it may, as the status of the quota says.

Pure functions on manifests.  Nothing is refused for a quota: the scheduler's plugin looks at it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.api.quantity import format_quantity, parse_quantity
from pumice.errors import QuantityError

QUOTAS: Final = "ResourceQuota"
_OVER: Final = frozenset({"Succeeded", "Failed"})
_COUNTED: Final = {
    "pods": "Pod",
    "services": "Service",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "resourcequotas": "ResourceQuota",
}
_WHOLE: Final = 10**9
_PLAIN: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources that a quota may name without saying that requests are meant."""

Listing = Callable[[str], Iterable[Manifest]]
"""Gives the objects of a kind in the quota's namespace."""


def quota_status(quota: Manifest, listed: Listing) -> Manifest:
    """Work out the status of a quota."""
    hard = dict((quota.get("spec") or {}).get("hard") or {})
    pods = [pod for pod in listed("Pod") if _counts(pod) and _in_scope(quota, pod)]
    return {"hard": hard, "used": {name: _used(name, pods, listed) for name in hard}}


def _used(name: str, pods: list[Manifest], listed: Listing) -> str:
    if name in ("pods", "count/pods"):
        return str(len(pods))
    plural = name.removeprefix("count/")
    if plural in _COUNTED:
        return str(len(list(listed(_COUNTED[plural]))))
    side = "limits" if name.startswith("limits.") else "requests"
    resource = name.removeprefix("limits.").removeprefix("requests.")
    if resource == name and name not in _PLAIN:
        return "0"
    nano = sum(_pod_amount(pod, side, resource) for pod in pods)
    if resource == "cpu":
        return format_quantity(resource, -(-nano // (_WHOLE // 1000)))
    return format_quantity(resource, -(-nano // _WHOLE))


def _counts(pod: Manifest) -> bool:
    return (pod.get("status") or {}).get("phase") not in _OVER


def _pod_amount(pod: Manifest, side: str, resource: str) -> int:
    """Return what a pod asks for in nano units.

    Containers and sidecars run together; an init container runs beside the sidecars before it.
    """
    spec = pod.get("spec") or {}
    sidecars = starting = 0
    for one in spec.get("initContainers") or ():
        own = sidecars + _amount(one, side, resource)
        if one.get("restartPolicy") == "Always":
            sidecars = own
        starting = max(starting, own)
    running = sidecars + sum(_amount(one, side, resource) for one in spec.get("containers") or ())
    return max(running, starting) + _read((spec.get("overhead") or {}).get(resource, 0))


def _amount(container: Mapping[str, Any], side: str, resource: str) -> int:
    amounts = (container.get("resources") or {}).get(side) or {}
    return _read(amounts.get(resource, 0))


def _read(quantity: Any) -> int:
    try:
        return parse_quantity(quantity)
    except QuantityError:  # stored as it came; it counts for nothing
        return 0


# Scopes


def _in_scope(quota: Manifest, pod: Manifest) -> bool:
    spec = quota.get("spec") or {}
    terms = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return all(_matches(term, pod) for term in terms)


def _matches(term: Mapping[str, Any], pod: Manifest) -> bool:
    spec, name = pod.get("spec") or {}, term.get("scopeName")
    if name == "PriorityClass":
        values, found = term.get("values") or (), spec.get("priorityClassName") or ""
        fits = {
            "In": found in values,
            "NotIn": found not in values,
            "Exists": bool(found),
            "DoesNotExist": not found,
        }
        return fits.get(str(term.get("operator")), False)
    ends = spec.get("activeDeadlineSeconds") is not None
    asks = any(
        (one.get("resources") or {}).get(side)
        for one in spec.get("containers") or ()
        for side in ("requests", "limits")
    )
    scopes = {
        "Terminating": ends,
        "NotTerminating": not ends,
        "BestEffort": not asks,
        "NotBestEffort": asks,
    }
    return bool(scopes.get(str(name), True))
