"""Resources of pods: what they request and limit, and what resource quotas count of them."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Literal, TypeVar

import msgspec

from pumice.api.cloning import clone
from pumice.api.quantity import Amount, Quantity, counted_amount

_A = TypeVar("_A")
Side = Literal["requests", "limits"]
Amounts = dict[str, Amount]
Reader = Callable[[Any], Amount]

_HUGE_PAGES: Final = "hugepages-"


def is_pod_level(resource: str) -> bool:
    """Return whether a pod as a whole can ask for a resource; others are its containers' alone."""
    return resource in ("cpu", "memory") or resource.startswith(_HUGE_PAGES)


def pod_level(amounts: Mapping[str, Quantity] | None) -> dict[str, Quantity]:
    """Return the part that counts of amounts stated for a pod as a whole."""
    return {name: each for name, each in (amounts or {}).items() if is_pod_level(name)}


def add_up(
    running: Iterable[_A],
    starting: Iterable[tuple[_A, bool]],
    nothing: _A,
    plus: Callable[[_A, _A], _A],
    larger: Callable[[_A, _A], _A],
) -> _A:
    """Return the most that the containers of a pod take at any one time.

    Containers and sidecars run together; an init container runs beside the sidecars before it.
    ``starting`` lists the init containers in order, each with whether it is a sidecar.
    """
    total = nothing
    for own in running:
        total = plus(total, own)
    sidecars = highest = nothing
    for own, is_sidecar in starting:
        beside = plus(own, sidecars)
        if is_sidecar:
            total, sidecars = plus(total, own), beside
        highest = larger(highest, beside)
    return larger(total, highest)


def container_amounts(
    spec: Mapping[str, Any], side: Side, read: Reader = counted_amount
) -> Amounts:
    """Add up the containers of a pod by resource."""

    def own(container: Mapping[str, Any]) -> Amounts:
        return _read((container.get("resources") or {}).get(side), read)

    starting = spec.get("initContainers") or ()
    return add_up(
        [own(each) for each in spec.get("containers") or ()],
        [(own(each), each.get("restartPolicy") == "Always") for each in starting],
        {},
        plus,
        _larger,
    )


def pod_amounts(spec: Mapping[str, Any], side: Side, read: Reader = counted_amount) -> Amounts:
    """Return the request or the limit of a pod, by resource.

    Amounts stated for the pod as a whole replace the sum of its containers.  Overhead comes on top
    of requests, and of limits where there is one.
    """
    whole = pod_level((spec.get("resources") or {}).get(side))
    total = container_amounts(spec, side, read) | _read(whole, read)
    overhead = _read(spec.get("overhead"), read)
    if side == "limits":
        overhead = {name: each for name, each in overhead.items() if name in total}
        overhead = {name: each for name, each in overhead.items() if total[name].nano}
    return plus(total, overhead)


def default_requests(spec: Mapping[str, Any], read: Reader) -> None:
    """Fill in the requests that follow from limits, as an API server does for a pod.

    A container asks for its limits.  A pod with limits as a whole asks for what its containers ask
    for, and for its limits where they ask for nothing.
    """
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        if resources.get("limits"):
            asked = {**resources["limits"], **(resources.get("requests") or {})}
            resources["requests"] = dict(sorted(asked.items()))
    whole = spec.get("resources") or {}
    if whole.get("limits") or whole.get("requests"):
        _default_huge_pages(spec, whole, read)
    if whole.get("limits"):
        sums = container_amounts(spec, "requests", read)
        own = {name: str(each) for name, each in sums.items() if name in ("cpu", "memory")}
        asked = {**pod_level(whole["limits"]), **own, **(whole.get("requests") or {})}
        whole["requests"] = dict(sorted(asked.items()))


def asked_amounts(spec: Mapping[str, Any], read: Reader = counted_amount) -> Amounts:
    """Return the request of a pod as it counts once an API server has filled in its defaults."""
    filled = clone(spec)
    default_requests(filled, read)
    return pod_amounts(filled, "requests", read)


def _default_huge_pages(spec: Mapping[str, Any], whole: dict[str, Any], read: Reader) -> None:
    """Limit a pod as a whole to the huge pages of its containers, unless it says otherwise."""
    sums = container_amounts(spec, "limits", read)
    stated = {**(whole.get("requests") or {}), **(whole.get("limits") or {})}
    more = {
        name: str(each)
        for name, each in sums.items()
        if name.startswith(_HUGE_PAGES) and name not in stated
    }
    if more:
        whole["limits"] = {**(whole.get("limits") or {}), **more}


def _read(amounts: Mapping[str, Any] | None, read: Reader) -> Amounts:
    return {name: read(each) for name, each in (amounts or {}).items()}


def plus(left: Amounts, right: Amounts) -> Amounts:
    """Add amounts by resource; the first that is not zero decides how a sum is written."""
    merged = dict(left)
    for name, more in right.items():
        before = left.get(name)
        if before is None or not before.nano:
            merged[name] = more
        else:
            merged[name] = Amount(before.nano + more.nano, before.form)
    return merged


def _larger(left: Amounts, right: Amounts) -> Amounts:
    """Return the larger amount of each resource, the first of equal ones."""
    return left | {
        name: other
        for name, other in right.items()
        if name not in left or other.nano > left[name].nano
    }


OBJECT_COUNT: Final = "count/pods"
"""The quota on pods as stored objects: one that has ended counts until it is deleted."""
_ONE: Final = Amount(10**9)
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")


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
