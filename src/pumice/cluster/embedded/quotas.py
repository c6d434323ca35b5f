"""Resource quotas: what is used of them, and whether a new pod fits, as in an API server.

A real cluster has a controller that counts what is used, and an API server that adds a pod to that
count when it admits it, so that no second pod gets the same room.  ``quota_status`` is the first,
``PodQuotas`` the second.  ``QuotaRoom`` is for both, and for answers about pods yet to be made.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from pumice.api.kinds import ENDED_PHASES, RESOURCE_QUOTA, Manifest
from pumice.api.pod_resources import (
    OBJECT_COUNT,
    Amounts,
    is_pod_count,
    is_pod_level,
    limits_pods,
    plus,
    pod_usage,
)
from pumice.api.qos import QosClass, manifest_qos_class
from pumice.api.quantity import Amount, amount_or_nothing
from pumice.errors import QuotaExceededError

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


def usage_of(pod: Manifest) -> Amounts:
    """Return what a pod uses by the names of quotas; one that has ended is only an object."""
    usage = pod_usage(pod.get("spec") or {}, amount_or_nothing)
    if (pod.get("status") or {}).get("phase") in ENDED_PHASES:
        return {OBJECT_COUNT: usage[OBJECT_COUNT]}
    return usage


def quota_status(
    quota: Manifest,
    listed: Listing,
    elsewhere: Mapping[str, Amount] | None = None,
    usage: Callable[[Manifest], Amounts] = usage_of,
) -> Manifest:
    """Compute the status of a quota, with what it counts ``elsewhere`` than in the objects."""
    hard = dict((quota.get("spec") or {}).get("hard") or {})
    total: Amounts = dict(elsewhere or {})
    for pod in listed("Pod"):
        if in_scope(quota, pod):
            total = plus(total, {name: each for name, each in usage(pod).items() if name in hard})
    used = {
        name: str(total.get(name, _NOTHING)) if limits_pods(name) else _n_objects(name, listed)
        for name in hard
    }
    return {"hard": hard, "used": used}


def _n_objects(name: str, listed: Listing) -> str:
    kind = _COUNTED.get(name.removeprefix("count/"))
    return str(len(list(listed(kind)))) if kind is not None else "0"


# Scopes


def in_scope(quota: Manifest, pod: Manifest) -> bool:
    """Return whether a quota counts a pod."""
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
        "CrossNamespacePodAffinity": _reaches_namespaces(spec),
    }
    return scopes.get(str(name), False)  # other scopes are not about pods


def _reaches_namespaces(spec: Mapping[str, Any]) -> bool:
    """Return whether a pod is placed by pods of namespaces that it states."""
    affinity = spec.get("affinity") or {}
    for side in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(side) or {}
        terms = [*(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ())]
        weighted = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [each.get("podAffinityTerm") or {} for each in weighted]
        # an empty selector of namespaces selects all
        stated = (each.get("namespaceSelector") is not None for each in terms)
        if any(stated) or any(each.get("namespaces") for each in terms):
            return True
    return False


# What has room


@dataclass(frozen=True)
class Exceeded:
    """An entry of a quota that a pod would exceed."""

    name: str
    requested: Amount
    used: Amount
    hard: Amount

    @property
    def plain(self) -> str:
        """The amounts compared, for users."""
        if is_pod_count(self.name):
            return f"pods in use {self.used}, limit {self.hard}"
        return f"{self.name} needs {self.requested}, in use {self.used}, limit {self.hard}"


@dataclass(frozen=True)
class QuotaRefusal:
    """Why a quota refuses a pod: it exceeds entries, or does not state what they count."""

    quota: str
    exceeded: tuple[Exceeded, ...] = ()
    unstated: str = ""

    @property
    def problem(self) -> str:
        """The refusal in the words of an API server."""
        if self.unstated:
            return f"failed quota: {self.quota}: must specify {self.unstated}"
        requested, used, hard = (
            ",".join(f"{each.name}={getattr(each, side)}" for each in self.exceeded)
            for side in ("requested", "used", "hard")
        )
        return (
            f"exceeded quota: {self.quota}, requested: {requested}, used: {used}, limited: {hard}"
        )

    def plain(self, pod: str) -> str:
        """Write the refusal of a pod for users."""
        why = f"it must state {self.unstated}" if self.unstated else ""
        compared = "; ".join(each.plain for each in self.exceeded)
        return f"resource quota {self.quota} refuses pod {pod}: {why or compared}"


class QuotaRoom:
    """One quota with what is used of it; pods are tried and added one by one."""

    def __init__(
        self,
        quota: Manifest,
        hard: Mapping[str, Any],
        used: Mapping[str, Any],
        *,
        demands: bool = True,
    ) -> None:
        """Make one; unless it ``demands`` so, pods may leave out what it counts."""
        self.quota = quota
        self.name: str = quota["metadata"]["name"]
        self.hard: Amounts = {name: amount_or_nothing(each) for name, each in hard.items()}
        self.used: Amounts = {name: amount_or_nothing(each) for name, each in used.items()}
        self._stated = sorted(_STATED & hard.keys()) if demands else []

    def covers(self, pod: Manifest) -> bool:
        """Return whether the quota counts a pod."""
        return in_scope(self.quota, pod)

    def refusal(self, pod: Manifest, usage: Amounts) -> QuotaRefusal | None:
        """Return why a pod with this usage is refused, None if it is not."""
        unstated = self._unstated(pod) if self._stated else ""
        if unstated:
            return QuotaRefusal(self.name, unstated=unstated)
        over = tuple(
            Exceeded(name, usage[name], self.used[name], hard)
            for name, hard in sorted(self.hard.items())
            if name in usage
            and usage[name].nano
            and self.used[name].nano + usage[name].nano > hard.nano
        )
        return QuotaRefusal(self.name, over) if over else None

    def add(self, usage: Amounts) -> None:
        """Count a pod."""
        self.used = plus(self.used, {name: usage[name] for name in self.used.keys() & usage.keys()})

    def _unstated(self, pod: Manifest) -> str:
        """Return what containers of a pod leave out although the quota counts it."""
        spec = pod.get("spec") or {}
        whole = spec.get("resources") or {}
        if any(is_pod_level(name) for side in whole.values() for name in side or ()):
            return ""
        containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        stated = {
            each["name"]: pod_usage({"containers": [each]}, amount_or_nothing)
            for each in containers
        }
        missing = {
            name: sorted(container for container, usage in stated.items() if name not in usage)
            for name in self._stated
        }
        return "; ".join(
            f"{name} for: {','.join(found)}" for name, found in missing.items() if found
        )


def refusals(rooms: Iterable[QuotaRoom], pod: Manifest, usage: Amounts) -> list[QuotaRefusal]:
    """List why quotas refuse a pod, as an API server asks them: what is not stated first."""
    found = [each for room in rooms if (each := room.refusal(pod, usage)) is not None]
    return sorted(found, key=lambda each: not each.unstated)


# What is admitted


class PodQuotas:
    """Refuses pods that a quota of their namespace has no room for; the cluster's lock is held.

    In a dry run pods are checked and not counted.  They need not state what quotas count where it
    is not known what they get instead: then nothing ``demands`` it.
    """

    def __init__(self, cluster: Store, *, counts: bool = True, demands: bool = True) -> None:
        self._cluster = cluster
        self._counts = counts
        self._demands = demands

    def without_counting(self) -> "PodQuotas":
        """Return the same quotas for a dry run."""
        return PodQuotas(self._cluster, counts=False, demands=self._demands)

    def admit(self, pod: Manifest) -> Callable[[], None]:
        """Check that a new pod, with its defaults, fits each quota; return what counts it.

        Raises:
            QuotaExceededError: it does not, or leaves out an amount that a quota needs.
        """
        rooms = self._rooms_of(pod)
        if not rooms:
            return _nothing
        usage = usage_of(pod)
        found = refusals(rooms, pod, usage)
        if found:
            raise _forbidden(pod, found[0])
        return partial(self._count, rooms, usage) if self._counts else _nothing

    def _count(self, rooms: Sequence[QuotaRoom], usage: Amounts) -> None:
        """Add a pod that is now stored to what is used."""
        for room in rooms:
            meta, old = room.quota["metadata"], room.quota["status"]["used"]
            room.add(usage)
            used = {name: str(room.used[name]) if name in usage else old[name] for name in old}
            self._cluster.merge_status(
                RESOURCE_QUOTA, meta["namespace"], meta["name"], {"used": used}
            )

    def _rooms_of(self, pod: Manifest) -> list[QuotaRoom]:
        """Return the quotas that a pod counts for, by name."""
        listed = self._cluster.list(RESOURCE_QUOTA, pod["metadata"]["namespace"])[0]
        if not listed:
            return []
        mine = [self._counted(each) for each in sorted(listed, key=_name) if in_scope(each, pod)]
        return [
            QuotaRoom(one, one["status"]["hard"], one["status"]["used"], demands=self._demands)
            for one in mine
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
        self._cluster.merge_status(RESOURCE_QUOTA, home, _name(quota), counted)
        return {**quota, "status": {**status, **counted}}


def _nothing() -> None:
    """Count nothing: no quota covers the pod."""


def _forbidden(pod: Manifest, why: QuotaRefusal) -> QuotaExceededError:
    meta = pod["metadata"]
    message = f'pods "{meta["name"]}" is forbidden: {why.problem}'
    error = QuotaExceededError("Pod", meta["namespace"], meta["name"], message)
    error.plain = why.plain(str(meta["name"]))
    return error


def _name(manifest: Manifest) -> str:
    name: str = manifest["metadata"]["name"]
    return name
