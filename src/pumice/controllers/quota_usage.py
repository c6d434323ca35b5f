"""What pods use, as resource quotas count it: ``minResources`` of a PodGroup.

Amounts keep the way they were written: 32Mi twice is 64Mi, 32M twice is 64M.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pumice.api.quantity import Quantity, parse_quantity

Amounts = dict[str, tuple[int, bool]]
"""Resource to nano units and whether it is written in powers of 1024."""

_NANO: Final = 10**9
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_DECIMAL: Final[tuple[str, ...]] = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY: Final[tuple[str, ...]] = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def pods_usage(pods: Iterable[tuple[Mapping[str, Any], int]]) -> dict[str, str]:
    """Sum up what pods use, given as specs with the number of pods of each."""
    total: Amounts = {}
    for spec, n_pods in pods:
        if n_pods > 0:
            used = _pod_usage(spec)
            more = {name: (nano * n_pods, binary) for name, (nano, binary) in used.items()}
            total = _plus(total, more)
    return {name: _print(*amount) for name, amount in total.items()}


def _pod_usage(spec: Mapping[str, Any]) -> Amounts:
    """Count what one pod takes from a resource quota, by quota name."""
    one: Amounts = {"pods": (_NANO, False), "count/pods": (_NANO, False)}
    overhead = _amounts(spec.get("overhead"))
    for resource, amount in _plus(_pod(spec, "requests"), overhead).items():
        if resource in _COMPUTE or resource.startswith("hugepages-") or not is_native(resource):
            one[resource] = one[f"requests.{resource}"] = amount
    limits = _pod(spec, "limits")
    for resource, amount in _plus(limits, overhead).items():
        if resource in _COMPUTE and resource in limits:  # overhead alone limits nothing
            one[f"limits.{resource}"] = amount
    return one


def _pod(spec: Mapping[str, Any], which: str) -> Amounts:
    """Add up containers and sidecars; an init container needs its own next to earlier sidecars."""
    running: Amounts = {}
    for container in spec.get("containers") or ():
        running = _plus(running, _of(container, which))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _plus(_of(container, which), sidecars)
        if container.get("restartPolicy") == "Always":
            sidecars = own
        starting = _merged(starting, own, max)
    return _merged(_plus(running, sidecars), starting, max)


def _of(container: Mapping[str, Any], which: str) -> Amounts:
    return _amounts((container.get("resources") or {}).get(which))


def _amounts(resources: Mapping[str, Quantity] | None) -> Amounts:
    return {
        name: (parse_quantity(quantity), str(quantity).endswith("i"))
        for name, quantity in (resources or {}).items()
    }


def _plus(left: Amounts, right: Amounts) -> Amounts:
    return _merged(left, right, sum)


def _merged(left: Amounts, right: Amounts, join: Callable[[Iterable[int]], int]) -> Amounts:
    """Join amounts by resource; the first that is not zero decides how the result is written."""
    merged = dict(left)
    for name, (nano, binary) in right.items():
        before, is_binary = left.get(name, (0, binary))
        merged[name] = (join((before, nano)), is_binary if before else binary)
    return merged


def is_native(resource: str) -> bool:
    """Check for a resource of Kubernetes itself, as opposed to an extended one."""
    return "/" not in resource or "kubernetes.io/" in resource


def _print(nano: int, binary: bool) -> str:  # noqa: FBT001 - one private caller
    """Write an amount with the largest suffix that leaves a whole number."""
    whole, rest = divmod(nano, _NANO)
    if binary and not rest and whole >= 1024:
        number, base, suffixes = whole, 1024, _BINARY
    else:
        number, base, suffixes = nano, 1000, _DECIMAL
    step = 0
    while number and number % base == 0 and step + 1 < len(suffixes):
        number, step = number // base, step + 1
    return f"{number}{suffixes[step]}" if number else "0"
