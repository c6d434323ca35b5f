"""Limit ranges: the amounts that containers of a namespace get where they state none.

An API server fills them in before quotas count a pod.  Bounds of limit ranges are not checked.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api.kinds import Manifest


def give_amounts(pod: Manifest, ranges: Iterable[Manifest]) -> None:
    """Write the amounts that limit ranges of its namespace state into a pod, in place.

    The requests that follow from its own limits must be filled in before.
    """
    spec = pod.get("spec") or {}
    for item in _items(ranges):
        limits, requests = _defaults(item)
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            own = container.get("resources") or {}
            given = {
                "limits": {**limits, **(own.get("limits") or {})},
                "requests": {**requests, **(own.get("requests") or {})},
            }
            sides = {side: dict(sorted(each.items())) for side, each in given.items() if each}
            if sides:
                container["resources"] = {**own, **sides}


def _items(ranges: Iterable[Manifest]) -> list[Mapping[str, Any]]:
    """List what limit ranges state about containers; the first by name decides."""
    in_order = sorted(ranges, key=lambda one: str(one["metadata"]["name"]))
    items = (item for one in in_order for item in (one.get("spec") or {}).get("limits") or ())
    return [item for item in items if item.get("type") == "Container"]


def _defaults(item: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return limits and requests of a container that states none.

    A bound stands in for a default that is left out: the maximum is the limit, and the limit, else
    the minimum, is the request.
    """
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    return limits, requests
