"""Requests of claims, computed once: alternatives, selectors, constraints."""

from collections.abc import Mapping

import msgspec

from pumice.api.cel import SelectorError, compiled
from pumice.api.devices import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ExactRequest,
    ResourceClaim,
)
from pumice.api.pods import Toleration
from pumice.core.labels import tolerates
from pumice.plugins.predicates.devices.inventory import KnownDevice

_REPELLING = ("NoSchedule", "NoExecute")
_MOST_ALTERNATIVES = 8
"""How many alternatives Kubernetes allows in a request: what the first of them is worth."""


class UnmetDemandError(ValueError):
    """A claim that no device can meet at present; the message has the reason."""


class Way(msgspec.Struct, frozen=True, eq=False):
    """One alternative of a request."""

    name: str
    """Its name in results: ``request``, or ``request/alternative``."""
    class_name: str
    expressions: tuple[str, ...]
    tolerations: tuple[Toleration, ...]
    number: int
    wants_all: bool
    admin: bool
    worth: int = 0
    """How much a node is preferred that meets it; 0 for a request without alternatives."""

    def takes(self, device: KnownDevice) -> bool:
        """Return whether a device matches.

        Raises:
            SelectorError: A selector fails for it.
        """
        if not all(device.matches(each) for each in self.expressions):
            return False
        return all(
            taint.effect not in _REPELLING or tolerates(self.tolerations, taint)
            for taint in device.content.taints
        )


class Constraint(msgspec.Struct, frozen=True, eq=False):
    """An attribute that devices must share, or in which no two may agree."""

    attribute: str
    distinct: bool
    requests: tuple[str, ...]

    def is_about(self, name: str) -> bool:
        """Return whether it is about devices of a request, or of one alternative."""
        return not self.requests or not {name, name.partition("/")[0]}.isdisjoint(self.requests)

    def allows(self, taken: list[object], new: object) -> bool:
        """Return whether one more device fits those taken so far."""
        if new is None:
            return False
        return new not in taken if self.distinct else not taken or taken[0] == new


class Demand(msgspec.Struct, frozen=True, eq=False):
    """Everything that one claim requests."""

    claim: str
    requests: tuple[tuple[Way, ...], ...]
    constraints: tuple[Constraint, ...]


def demand_of(
    key: str, claim: ResourceClaim, classes: Mapping[str, DeviceClass], *, may_admin: bool
) -> Demand:
    """Compute the request of a claim.

    Raises:
        UnmetDemandError: A class is missing, a selector is wrong, or more is requested than
            its namespace allows.
    """
    asked = claim.spec.devices
    requests = tuple(_ways(each, classes, may_admin=may_admin) for each in asked.requests)
    return Demand(key, requests, tuple(_constraint(each) for each in asked.constraints))


def _ways(
    request: DeviceRequest, classes: Mapping[str, DeviceClass], *, may_admin: bool
) -> tuple[Way, ...]:
    best = _MOST_ALTERNATIVES if request.first_available else 0
    return tuple(
        _way(name, way, classes, may_admin=may_admin, worth=max(best - place, 0))
        for place, (name, way) in enumerate(request.ways)
    )


def _way(
    name: str, way: ExactRequest, classes: Mapping[str, DeviceClass], *, may_admin: bool, worth: int
) -> Way:
    if way.allocation_mode not in ("", "ExactCount", "All"):
        raise UnmetDemandError(f"request {name}: allocationMode {way.allocation_mode} is not known")
    if way.admin_access and not may_admin:
        raise UnmetDemandError(f"request {name}: its namespace has no adminAccess")
    found = classes.get(way.device_class_name)
    if found is None:
        problem = f"device class {way.device_class_name or '(none)'} does not exist"
        raise UnmetDemandError(f"request {name}: {problem}")
    selectors = (*found.spec.selectors, *way.selectors)
    if any(each.cel is None for each in selectors):
        raise UnmetDemandError(f"request {name}: a selector is of a kind that is not known")
    expressions = tuple(each.cel.expression for each in selectors if each.cel is not None)
    for expression in expressions:
        try:
            compiled(expression)
        except SelectorError as error:
            raise UnmetDemandError(f"request {name}: selector {expression!r}: {error}") from None
    return Way(
        name,
        way.device_class_name,
        expressions,
        way.tolerations,
        way.number,
        way.wants_all,
        bool(way.admin_access),
        worth,
    )


def _constraint(given: DeviceConstraint) -> Constraint:
    if given.match_attribute:
        return Constraint(given.match_attribute, distinct=False, requests=given.requests)
    if given.distinct_attribute:
        return Constraint(given.distinct_attribute, distinct=True, requests=given.requests)
    raise UnmetDemandError("a constraint is of a kind that is not known")
