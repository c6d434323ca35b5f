"""Requests and limits of containers and pods."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from pumice.api.pod_resources import is_native
from pumice.api.quantity import Amount, QuantityFormError, amount, amounts
from pumice.webhooks.field_rules import Struct
from pumice.webhooks.fields import (
    FieldError,
    Key,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
from pumice.webhooks.names import Steps, dns_label, each, qualified_name

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
NOT_WHOLE: Final = "must be an integer"
_HUGE: Final = "hugepages-"
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED: Final = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_STANDARD: Final = frozenset(
    {
        *_COMPUTE, *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE),
        *_COUNTED, "storage", "requests.storage",
    }
)  # fmt: skip
_OF_PODS: Final = ("cpu", "hugepages-", "memory")


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended one, such as a device."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not qualified_name(f"requests.{name}")


def check_amount(name: str, given: Amount, path: Steps) -> Iterator[FieldError]:
    """Check one amount: not negative, and whole where it is counted."""
    if given.nano < 0:
        yield invalid(path, str(given), NOT_NEGATIVE)
    if (name in _COUNTED or is_extended(name)) and given.milli % 1000:
        yield invalid(path, str(given), NOT_WHOLE)


def _against_limit(
    name: str, request: Amount, limit: Amount | None, path: Path
) -> Iterator[FieldError]:
    place = (*path, "requests")
    shared = is_native(name) and not name.startswith(_HUGE)
    if limit is None:
        if not shared:
            text = "Limit must be set for non overcommitable resources"
            yield required((*path, "limits"), text)
    elif request.nano != limit.nano and not shared:
        yield invalid(place, str(request), f"must be equal to {name} limit of {limit}")
    elif request.nano > limit.nano:
        text = f"must be less than or equal to {name} limit of {limit}"
        yield invalid(place, str(request), text)


def _huge(name: str, given: Amount, path: Steps) -> Iterator[FieldError]:
    if not name.startswith(_HUGE):
        return
    try:
        page = amount(name.removeprefix(_HUGE))
    except QuantityFormError:
        page = Amount(0)
    if page.nano <= 0 or page.milli % 1000 or given.value % page.value:
        text = f"{given} is not positive integer multiple of {name}"
        yield invalid(path, str(given), text)


def _standard(name: str, path: Steps) -> list[FieldError]:
    found = list(each(qualified_name(name), path, name))
    if not found and "/" not in name:
        quota = name.startswith((_HUGE, f"requests.{_HUGE}"))
        if name not in _STANDARD and not quota:
            text = "must be a standard resource type or fully qualified"
            found.append(invalid(path, name, text))
    return found


def container_resource(name: str, path: Steps) -> list[FieldError]:
    """Check the name of a resource of a container."""
    found = _standard(name, path)
    if "/" not in name:
        if name not in _COMPUTE and not name.startswith(_HUGE):
            found.append(invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        found.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return found


def pod_resource(name: str, path: Steps) -> list[FieldError]:
    """Check the name of a resource of a whole pod."""
    found = _standard(name, path)
    if not found and name not in ("cpu", "memory") and not name.startswith(_HUGE):
        found.append(unsupported(path, name, _OF_PODS))  # type: ignore[arg-type]
    return found


def check_resources(
    given: Struct,
    path: Path,
    claims: frozenset[str],
    name_rule: Callable[[str, Steps], list[FieldError]] = container_resource,
) -> Iterator[FieldError]:
    """Check the requests, limits and claims of a container."""
    limits, requests = amounts(given.get("limits")), amounts(given.get("requests"))
    for kind, listed in (("limits", limits), ("requests", requests)):
        for name in sorted(listed):
            place = (*path, kind, Key(name))
            yield from name_rule(name, place)
            yield from check_amount(name, listed[name], place)
            if kind == "requests":
                yield from _against_limit(name, listed[name], limits.get(name), path)
            yield from _huge(name, listed[name], place)
    names = {*limits, *requests}
    if any(name.startswith(_HUGE) for name in names) and not names & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")
    yield from _claims(given.get("claims") or [], (*path, "claims"), claims)


def container_resources(given: Struct, path: Path, around: Any) -> Iterator[FieldError]:
    """Check the requests, limits and claims of a container."""
    return check_resources(given, path, claim_names(around.spec))


def claim_names(spec: Struct) -> frozenset[str]:
    """Return the names of the claims on devices that a pod makes."""
    return frozenset(one["name"] for one in spec.get("resourceClaims") or () if one["name"])


def _claims(given: list[Struct], path: Path, known: frozenset[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    requests: Counter[str] = Counter()
    listed = f": {', '.join(sorted(known))}" if known else " which is empty"
    for index, claim in enumerate(given):
        name, place = claim["name"], (*path, index)
        if not name:
            yield required(place)
            continue
        yield from _repeated_claim(claim, place, seen, requests)
        if name not in known:
            text = f"must be one of the names in pod.spec.resourceClaims{listed}"
            error = not_found(place, name)
            yield FieldError(error.fault, error.path, error.value, text)


def _repeated_claim(
    claim: Struct, place: Path, seen: set[str], requests: Counter[str]
) -> Iterator[FieldError]:
    """Refuse a claim that came before; ``requests`` counts those of claims with a request."""
    name, request = claim["name"], claim.get("request", "")
    if name in seen:
        yield duplicate(place, name)
        return
    key = f"{name}/{request}" if request else name
    if request:
        yield from each(dns_label(request), (*place, "request"), request)
    if key in seen:
        yield duplicate(place, key)
    elif not request:
        yield from (duplicate(place, name) for _ in range(requests[name]))
    if key not in seen and request:
        requests[name] += 1
    seen.add(key)
