"""How a workload is run: the common options of `pumice sim` and `pumice sweep`."""

from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Final, Literal, TypeGuard, get_args

from pumice.errors import InputError

FORMATS: Final = (
    *("manifests", "openb", "philly", "swf", "synthetic", "alibaba2018", "alibaba2025", "jobs"),
)
"""Formats of a trace; ``readers.registry`` has the reader of each."""
WRITTEN: Final = ("jobs", "swf", "manifests")
"""Formats in which a trace can be written."""
Evicted = Literal["requeue", "restart", "lose"]
"""The fate of an evicted pod: a new one waits in its place; so do all pods of its job, if too
few are left; or it is gone."""

_WRITABLE: Final = (-62135596800, 253402214400)
"""The first day of the year 1 and the last of 9999, in seconds since 1970: a time can be written
for the days between them."""


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value of a program is a number; to Python, True is one too."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_count(value: object) -> bool:
    """Return whether a value of a program is a whole number from 1."""
    return isinstance(value, Integral) and is_number(value) and int(value) >= 1


def _is_positive(value: object) -> bool:
    return is_number(value) and 0 < float(value) < inf


def _is_moment(value: object) -> bool:
    """Return whether a value counts seconds since 1970 to a day that can be written."""
    first, last = _WRITABLE
    return is_number(value) and first <= float(value) <= last


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Choices that hold for every configuration, trace and seed alike."""

    period: float = 1.0
    """Seconds between two cycles, at least."""
    evicted: Evicted = "requeue"
    limit: int | None = None
    """How many jobs, from the first."""
    speed: float = 1.0
    """How many times faster than in the trace jobs arrive."""
    late_pods: bool = False
    """Whether pods are created only once their job is admitted."""
    start: float | None = None
    """When the first job arrives, in seconds since 1970; None: as the trace states."""

    def __post_init__(self) -> None:
        """Refuse values that cannot be used."""
        for field, value in (("period", self.period), ("speed", self.speed)):
            if not _is_positive(value):
                raise InputError(wanted="a number above 0", found=value, field=field)
        if not (self.limit is None or is_count(self.limit)):
            raise InputError(wanted="a whole number from 1", found=self.limit, field="limit")
        if self.evicted not in get_args(Evicted):
            wanted = ", ".join(get_args(Evicted))
            raise InputError(wanted=f"one of {wanted}", found=self.evicted, field="evicted")
        if not isinstance(self.late_pods, bool):
            raise InputError(wanted="True or False", found=self.late_pods, field="late_pods")
        if not (self.start is None or _is_moment(self.start)):
            wanted = 'a time such as "2026-01-15T10:00:19Z", or in seconds since 1970'
            raise InputError(wanted=wanted, found=self.start, field="start")
