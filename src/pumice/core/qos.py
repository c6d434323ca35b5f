"""The quality-of-service class of a pod, by Kubernetes' rules, worked out from its spec."""

from collections.abc import Mapping
from enum import IntEnum

from pumice.api.pods import PodSpec
from pumice.api.quantity import Quantity, parse_quantity

_COUNTED = ("cpu", "memory")


class QosClass(IntEnum):
    """How much a pod was promised; the lower, the sooner it is given up."""

    BEST_EFFORT = 0
    BURSTABLE = 1
    GUARANTEED = 2


def qos_class(spec: PodSpec) -> QosClass:
    """Class a pod: nothing said, everything limited to what it requests, or in between."""
    if spec.resources is not None and (spec.resources.requests or spec.resources.limits):
        parts = [spec.resources]
    else:
        parts = [each.resources for each in (*spec.containers, *spec.init_containers)]
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    all_limited = True
    for part in parts:
        _add(requests, part.requests)
        all_limited &= _add(limits, part.limits) == len(_COUNTED)
    if not requests and not limits:
        return QosClass.BEST_EFFORT
    return QosClass.GUARANTEED if all_limited and requests == limits else QosClass.BURSTABLE


def _add(sums: dict[str, int], amounts: Mapping[str, Quantity]) -> int:
    """Add what counts and is more than nothing; say how many resources that were."""
    counted = [name for name in _COUNTED if name in amounts and parse_quantity(amounts[name])]
    for name in counted:
        sums[name] = sums.get(name, 0) + parse_quantity(amounts[name])
    return len(counted)
