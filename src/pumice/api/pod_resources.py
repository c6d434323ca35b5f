"""The amounts of a pod: the one rule for containers, the pod as a whole and its overhead.

Used wherever requests or limits of a pod are computed: rows of tasks, quotas, admission and
the defaults of an API server.  ``add_up`` works on amounts of any kind, the rest on manifests.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeVar

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
