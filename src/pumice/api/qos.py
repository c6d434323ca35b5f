"""The quality-of-service class of a pod, by Kubernetes' rules, computed from its spec."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

from pumice.api.pod_resources import is_pod_level
from pumice.api.pods import PodSpec
from pumice.api.quantity import Quantity, amount_or_nothing

_COUNTED = ("cpu", "memory")
_Amounts = Mapping[str, Quantity]
_Pair = tuple[_Amounts, _Amounts]
"""Requests and limits."""


class QosClass(IntEnum):
    """How much a pod was promised; the lower, the sooner it is evicted."""

    BEST_EFFORT = 0
    BURSTABLE = 1
    GUARANTEED = 2


def qos_class(spec: PodSpec) -> QosClass:
    """Return the class of a pod."""
    containers = (each.resources for each in (*spec.containers, *spec.init_containers))
    whole = spec.resources
    return _class_of(
        (whole.requests, whole.limits) if whole is not None else ({}, {}),
        ((each.requests, each.limits) for each in containers),
    )


def manifest_qos_class(spec: Mapping[str, Any]) -> QosClass:
    """Return the class of a pod given as a manifest; amounts that cannot be read are nothing."""
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return _class_of(_pair(spec), (_pair(each) for each in containers))


def _pair(part: Mapping[str, Any]) -> _Pair:
    resources = part.get("resources") or {}
    return resources.get("requests") or {}, resources.get("limits") or {}


def _class_of(whole: _Pair, containers: Iterable[_Pair]) -> QosClass:
    """Return the class by what the pod states as a whole, else by its containers.

    Nothing stated, everything limited to what is requested, or in between.
    """
    states = any(is_pod_level(name) for amounts in whole for name in amounts)
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    all_limited = True
    for asked, limited in [whole] if states else containers:
        _add(requests, asked)
        all_limited &= _add(limits, limited) == len(_COUNTED)
    if not requests and not limits:
        return QosClass.BEST_EFFORT
    return QosClass.GUARANTEED if all_limited and requests == limits else QosClass.BURSTABLE


def _add(sums: dict[str, int], amounts: _Amounts) -> int:
    """Add amounts above zero that count; return the number of their resources."""
    counted = {name: amount_or_nothing(amounts[name]).nano for name in _COUNTED if name in amounts}
    for name, nano in counted.items():
        if nano:
            sums[name] = sums.get(name, 0) + nano
    return sum(nano > 0 for nano in counted.values())
