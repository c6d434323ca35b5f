"""One resource list as a value: names to amounts, where "not given" differs from "zero".

For what compares single lists with that difference (quotas, specs of queues, explanations);
columns of many rows are compared in ``resources``.  Units and the step are those of ``resources``.
"""

import math
import sys
from collections.abc import Iterator, Mapping
from typing import Final

from pumice.api.quantity import milli_value, value
from pumice.core.resources import STEP, is_schedulable_name

ZERO: Final = 0.0
INFINITY: Final = math.inf
"""What a resource that is not given stands for."""

_BASIC: Final = ("cpu", "memory")
_WHOLE: Final = ("memory", "pods")
_LARGEST: Final = {sys.float_info.max: "maxFloat", math.inf: "maxFloat", float(2**63): "maxInt"}


class Amounts:
    """Amounts by resource name; never changed.  ``cpu`` and ``memory`` are always there.

    What Volcano calls a method, and what it is here:

        NewResource                               Amounts.read
        Less, LessPartly                          below, below_somewhere
        LessEqual, LessEqualPartly                fits, fits_somewhere
        LessEqualWithResourcesName, GreaterPartly exceeding
        LessEqualWithDimensionAndResourcesName    over
        GreaterPartlyWithDimension                over
        GreaterPartlyWithRelevantDimensions       over(given_only=True)
        LessEqualPartlyWithDimension              covered
        LessEqualPartlyWithDimensionZeroFiltered  covered(skip_unused=True)
        Equal, IsZero, IsEmpty                    equals, lacks, is_empty
        Add, AddScalar, Sub, Multi                +, plus, -, *
        SetMaxResource, MinDimensionResource      at_least, at_most
        Diff, FitDelta                            difference, left_after
        ResourceNames, Intersection               names, shared_names
        IntersectionWithIgnoredScalarResources    shared_names(pods=False)
        Zero, Infinity; String                    ZERO, INFINITY; str()

    Where Volcano answers yes or no together with names, here the names are the answer.
    """

    __slots__ = ("_given",)

    def __init__(self, given: Mapping[str, float] | None = None) -> None:
        self._given = {"cpu": 0.0, "memory": 0.0}
        self._given.update((name, float(amount)) for name, amount in (given or {}).items())

    @classmethod
    def read(cls, quantities: Mapping[str, str | int | float]) -> "Amounts":
        """Read a resource list as Kubernetes writes it, without names that are not scheduled."""
        return cls(
            {
                name: float(value(quantity) if name in _WHOLE else milli_value(quantity))
                for name, quantity in quantities.items()
                if is_schedulable_name(name)
            }
        )

    def __getitem__(self, name: str) -> float:
        return self._given.get(name, 0.0)

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def __iter__(self) -> Iterator[str]:
        yield from _BASIC
        yield from sorted(self._given.keys() - set(_BASIC))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amounts) and self._given == other._given

    def __hash__(self) -> int:
        return hash(frozenset(self._given.items()))

    def __repr__(self) -> str:
        return f"Amounts({ {name: self[name] for name in self} })"

    def __str__(self) -> str:
        return ", ".join(f"{name} {_LARGEST.get(self[name], f'{self[name]:.2f}')}" for name in self)

    def get(self, name: str, missing: float) -> float:
        """Give the amount of a resource, or what stands for one that is not given."""
        return self._given.get(name, missing)

    def gives(self, name: str) -> bool:
        """Say whether a scalar is given at all, or whether there is any cpu or memory."""
        return not self.lacks(name) if name in _BASIC else name in self

    def names(self) -> tuple[str, ...]:
        """Name the resources of which there is anything."""
        return tuple(name for name in self if self[name] >= STEP)

    def shared_names(self, other: "Amounts", *, pods: bool = True) -> tuple[str, ...]:
        """Name the resources of which both have anything."""
        both = set(self.names()) & set(other.names())
        return tuple(name for name in self if name in both and (pods or name != "pods"))

    def lacks(self, name: str) -> bool:
        """Say whether there is nothing of a resource."""
        return self[name] < STEP

    def is_empty(self) -> bool:
        """Say whether there is nothing of anything but ``pods``."""
        return all(self.lacks(name) for name in self if name != "pods")

    # Arithmetic

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts({name: self[name] + other[name] for name in self._either(other)})

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts({name: self[name] - other[name] for name in self._either(other)})

    def __mul__(self, ratio: float) -> "Amounts":
        return Amounts({name: self[name] * ratio for name in self})

    def plus(self, name: str, amount: float) -> "Amounts":
        """Add to one resource."""
        return self + Amounts({name: amount})

    def at_least(self, other: "Amounts") -> "Amounts":
        """Take the larger amount of each resource; one given on one side counts as it is."""
        return Amounts(
            {
                name: max(self.get(name, -INFINITY), other.get(name, -INFINITY))
                for name in self._either(other)
            }
        )

    def at_most(self, other: "Amounts", missing: float) -> "Amounts":
        """Cut each own resource to what the other has of it."""
        return Amounts({name: min(self[name], other.get(name, missing)) for name in self})

    def difference(self, other: "Amounts", missing: float) -> tuple["Amounts", "Amounts"]:
        """Give what is more here, and what is less here; against infinity it is infinite."""
        more, less = {}, {}
        for name in self._either(other):
            own, theirs = self.get(name, missing), other.get(name, missing)
            if own > theirs:
                more[name] = own - theirs
            else:
                less[name] = 0.0 if own == theirs else theirs - own
        return Amounts(more), Amounts(less)

    def left_after(self, request: "Amounts") -> "Amounts":
        """Take a request away, and a step more where it asks for anything; negative: too little."""
        taken = {name: request[name] + STEP for name in request if request[name] > 0}
        return self - Amounts(taken)

    # Comparison of all resources

    def below(self, other: "Amounts", missing: float) -> bool:
        """Say whether there is less of every own resource."""
        return not self._endless(other, missing) and all(
            self[name] < other.get(name, missing) for name in self
        )

    def fits(self, other: "Amounts", missing: float) -> bool:
        """Say whether there is at most as much, within the step, of every own resource."""
        return not self._endless(other, missing) and not self.exceeding(other, missing)

    def below_somewhere(self, other: "Amounts", missing: float) -> bool:
        """Say whether there is less of some resource; Volcano: one not given is less than zero."""
        return self._gives_less(other, missing) or any(
            self[name] < other.get(name, missing) for name in self
        )

    def fits_somewhere(self, other: "Amounts", missing: float) -> bool:
        """Say whether there is at most as much, within the step, of some resource."""
        return self._gives_less(other, missing) or any(
            _within(self[name], other.get(name, missing)) for name in self
        )

    def exceeding(self, other: "Amounts", missing: float) -> tuple[str, ...]:
        """Name the own resources of which there is more, by a step at least."""
        return tuple(n for n in self if not _within(self[n], other.get(n, missing)))

    def equals(self, other: "Amounts") -> bool:
        """Say whether there is as much of every own resource, within the step."""
        return all(self[n] == other[n] or abs(self[n] - other[n]) < STEP for n in self)

    # Comparison of what a request asks for, ``pods`` left out

    def over(
        self, limit: "Amounts", asked: "Amounts", *, given_only: bool = False
    ) -> tuple[str, ...]:
        """Name the resources asked for of which there is more than the limit, without tolerance.

        ``given_only`` passes over what the limit does not give.
        """
        return tuple(
            name
            for name in _wanted(asked)
            if self[name] > limit[name] and not (given_only and not limit.gives(name))
        )

    def covered(
        self, by: "Amounts", asked: "Amounts", *, skip_unused: bool = False
    ) -> tuple[str, ...]:
        """Name the resources asked for of which the other has as much, within the step.

        ``skip_unused`` passes over those of which neither has anything.
        """
        return tuple(
            name
            for name in _wanted(asked)
            if _within(self[name], by[name])
            and not (skip_unused and self.lacks(name) and by.lacks(name))
        )

    def _either(self, other: "Amounts") -> Iterator[str]:
        yield from self
        yield from (name for name in other if name not in self)

    def _endless(self, other: "Amounts", missing: float) -> bool:
        """Tell an infinite amount here against a given one there."""
        return missing == INFINITY and any(name not in self for name in other)

    def _gives_less(self, other: "Amounts", missing: float) -> bool:
        """Tell a resource that is not given here but is there, and so counts as less."""
        return missing == ZERO and any(name not in self for name in other)


def _wanted(asked: Amounts) -> Iterator[str]:
    return (name for name in asked if asked[name] > 0 and name != "pods")


def _within(own: float, theirs: float) -> bool:
    return own <= theirs or own - theirs < STEP
