"""Resource quotas: what is used of them, and whether a new pod fits, as in an API server.

A real cluster has a controller that counts what is used, and an API server that adds a pod to that
count when it admits it, so that no second pod gets the same room.  ``quota_status`` is the first,
``PodQuotas`` the second.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from pumice.api.kinds import ENDED_PHASES, Manifest
from pumice.api.pod_resources import Amounts, is_pod_level, plus
from pumice.api.qos import QosClass, manifest_qos_class
from pumice.api.quantity import Amount, amount_or_nothing
from pumice.api.quota_amounts import OBJECT_COUNT, limits_pods, pod_usage
from pumice.errors import ForbiddenError

QUOTAS: Final = "ResourceQuota"
_COUNTED: Final = {
    "services": "Service",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "resourcequotas": "ResourceQuota",
}
_NOTHING: Final = Amount(0)
_STATED: Final = frozenset(
    f"{side}{resource}" for side in ("", "requests.", "limits.") for resource in ("cpu", "memory")
)
"""Entries of a quota that every container of a pod must state an amount for."""

Listing = Callable[[str], Iterable[Manifest]]
"""Returns the objects of a kind in the quota's namespace."""


class Store(Protocol):
    """The part of an embedded cluster that quotas need."""

    def list(self, kind: str, namespace: str = "") -> tuple[list[Manifest], str]:
        """Return all objects of a kind in a namespace, and their version."""
        ...

    def merge_status(
        self, kind: str, namespace: str, name: str, changes: Mapping[str, Any]
    ) -> None:
        """Replace top-level fields of a status."""
        ...


# What is used


def quota_status(quota: Manifest, listed: Listing) -> Manifest:
    """Compute the status of a quota."""
    hard = dict((quota.get("spec") or {}).get("hard") or {})
    total: Amounts = {}
    for pod in listed("Pod"):
        if _in_scope(quota, pod):
            total = plus(total, _usage(pod))
    used = {
        name: str(total.get(name, _NOTHING)) if limits_pods(name) else _n_objects(name, listed)
        for name in hard
    }
    return {"hard": hard, "used": used}


def _usage(pod: Manifest) -> Amounts:
    usage = pod_usage(pod.get("spec") or {}, amount_or_nothing)
    if (pod.get("status") or {}).get("phase") in ENDED_PHASES:
        return {OBJECT_COUNT: usage[OBJECT_COUNT]}
    return usage


def _n_objects(name: str, listed: Listing) -> str:
    kind = _COUNTED.get(name.removeprefix("count/"))
    return str(len(list(listed(kind)))) if kind is not None else "0"


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
    asks = manifest_qos_class(spec) is not QosClass.BEST_EFFORT
    scopes = {
        "Terminating": ends,
        "NotTerminating": not ends,
        "BestEffort": not asks,
        "NotBestEffort": asks,
    }
    return bool(scopes.get(str(name), True))


# What is admitted


class PodQuotas:
    """Refuses pods that a quota of their namespace has no room for; the cluster's lock is held.

    In a dry run pods are checked and not counted.
    """

    def __init__(self, cluster: Store, *, counts: bool = True) -> None:
        self._cluster = cluster
        self._counts = counts

    def without_counting(self) -> "PodQuotas":
        """Return the same quotas for a dry run."""
        return PodQuotas(self._cluster, counts=False)

    def check(self, pod: Manifest) -> None:
        """Check that a new pod, with its defaults, fits each quota.

        Raises:
            ForbiddenError: it does not, or leaves out an amount that a quota needs.
        """
        quotas = self._quotas_of(pod)
        if not quotas:
            return
        for quota in quotas:
            _check_stated(quota, pod)
        usage = _usage(pod)
        for quota in quotas:
            _check_room(quota, pod, usage)

    def count(self, pod: Manifest) -> None:
        """Add a pod that is now stored to what is used."""
        if not self._counts:
            return
        for quota in self._quotas_of(pod):
            meta, used = quota["metadata"], quota["status"]["used"]
            more = {name: each for name, each in _usage(pod).items() if name in used}
            total = plus({name: amount_or_nothing(text) for name, text in used.items()}, more)
            spelled = {name: str(total[name]) if name in more else used[name] for name in used}
            self._cluster.merge_status(QUOTAS, meta["namespace"], meta["name"], {"used": spelled})

    def _quotas_of(self, pod: Manifest) -> list[Manifest]:
        """Return the quotas that a pod counts for, each with its status, by name."""
        listed = self._cluster.list(QUOTAS, pod["metadata"]["namespace"])[0]
        return [
            self._counted(quota) for quota in sorted(listed, key=_name) if _in_scope(quota, pod)
        ]

    def _counted(self, quota: Manifest) -> Manifest:
        """Return a quota with its status; that of one not counted yet is computed now.

        The pods of a file that also has the quota are then refused as those that follow.
        """
        status, hard = quota.get("status") or {}, (quota.get("spec") or {}).get("hard") or {}
        if status.get("hard") == hard and (status.get("used") or {}).keys() == hard.keys():
            return quota
        home = quota["metadata"]["namespace"]
        counted = quota_status(quota, lambda kind: self._cluster.list(kind, home)[0])
        self._cluster.merge_status(QUOTAS, home, _name(quota), counted)
        return {**quota, "status": {**status, **counted}}


def _check_stated(quota: Manifest, pod: Manifest) -> None:
    """Check that each container states what a quota on processors or memory counts."""
    spec = pod.get("spec") or {}
    whole = spec.get("resources") or {}
    if any(is_pod_level(name) for side in whole.values() for name in side or ()):
        return
    needed = sorted(_STATED & quota["status"]["hard"].keys())
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    stated = {
        each["name"]: pod_usage({"containers": [each]}, amount_or_nothing) for each in containers
    }
    missing = {
        name: sorted(container for container, usage in stated.items() if name not in usage)
        for name in needed
    }
    lines = [f"{name} for: {','.join(found)}" for name, found in missing.items() if found]
    if lines:
        raise _forbidden(pod, f"failed quota: {_name(quota)}: must specify {'; '.join(lines)}")


def _check_room(quota: Manifest, pod: Manifest, usage: Amounts) -> None:
    hard = {name: amount_or_nothing(text) for name, text in quota["status"]["hard"].items()}
    used = {name: amount_or_nothing(text) for name, text in quota["status"]["used"].items()}
    over = sorted(
        name
        for name in usage.keys() & hard.keys()
        if usage[name].nano and used[name].nano + usage[name].nano > hard[name].nano
    )
    if over:
        requested, taken, limited = (
            ",".join(f"{name}={amounts[name]}" for name in over) for amounts in (usage, used, hard)
        )
        problem = f"exceeded quota: {_name(quota)}, requested: {requested}, used: {taken}"
        raise _forbidden(pod, f"{problem}, limited: {limited}")


def _forbidden(pod: Manifest, problem: str) -> ForbiddenError:
    meta = pod["metadata"]
    message = f'pods "{meta["name"]}" is forbidden: {problem}'
    return ForbiddenError("Pod", meta["namespace"], meta["name"], message)


def _name(manifest: Manifest) -> str:
    name: str = manifest["metadata"]["name"]
    return name
