"""How a workload is run, and how large it may be: options of `pumice sim` and `pumice sweep`.

The limits are in docs/sim.md too.  They are far beyond every public trace, and small enough that
a file with a typing error ends in a sentence and not in a machine out of memory.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final, Literal, TypeGuard, get_args

from pumice.errors import InputError

if TYPE_CHECKING:  # a command's help reads the options, and loads nothing that simulates
    from pumice.sim.workload import JobSpec

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


def _is_zero(value: object) -> bool:
    return is_number(value) and float(value) == 0


def _is_moment(value: object) -> bool:
    """Return whether a value counts seconds since 1970 to a day that can be written."""
    first, last = _WRITABLE
    return is_number(value) and first <= float(value) <= last


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """Choices that hold for every configuration, trace and seed alike."""

    period: float = 1.0
    """Seconds between two cycles, at least; 0: a cycle begins with each event."""
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
        if not (_is_positive(self.period) or _is_zero(self.period)):
            raise InputError(wanted="a number from 0", found=self.period, field="period")
        if not _is_positive(self.speed):
            raise InputError(wanted="a number above 0", found=self.speed, field="speed")
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


MAX_TRACE_BYTES: Final = 256 << 20
"""Of a trace, unpacked."""
MAX_LINE: Final = 1 << 20
"""Characters in a line of a trace that is a table or a log."""
MAX_DESCRIPTION_BYTES: Final = 1 << 20
"""Of the description of a synthetic workload."""
MAX_JOBS: Final = 1_000_000
MAX_JOB_PODS: Final = 100_000
MAX_PODS: Final = 5_000_000
MAX_NODES: Final = 100_000
MAX_SECONDS: Final = 1_000_000_000
"""From the first arrival to the last, and of one run: 31 years."""


def check_at_most(
    found: float, most: int, what: str, *, file: str = "", field: str = "", hint: str = ""
) -> None:
    """Refuse a number beyond its limit.

    Raises:
        InputError: It is.
    """
    if not found <= most:
        raise InputError(
            wanted=f"at most {most:,} {what}", found=found, field=field, file=file, hint=hint
        )


def within_limits(jobs: "Iterable[JobSpec]", file: str) -> "Iterator[JobSpec]":
    """Yield jobs as they are read, up to the limits.

    Raises:
        InputError: There are too many jobs or pods, or a pod runs too long.
    """
    pods = 0
    for number, job in enumerate(jobs, start=1):
        size, seconds = job.size, job.run_seconds
        pods += size
        if (
            number <= MAX_JOBS
            and size <= MAX_JOB_PODS
            and pods <= MAX_PODS
            and seconds <= MAX_SECONDS
        ):
            yield job
            continue
        field = f"job {job.name}"
        check_at_most(number, MAX_JOBS, "jobs", file=file, hint="see --limit")
        check_at_most(size, MAX_JOB_PODS, "pods of a job", file=file, field=field)
        check_at_most(pods, MAX_PODS, "pods in all", file=file, field=field, hint="see --limit")
        check_at_most(seconds, MAX_SECONDS, "seconds of a run", file=file, field=field)


def check_arrivals(jobs: "tuple[JobSpec, ...]", file: str) -> None:
    """Refuse jobs, in the order of their arrival, that arrive too long after the first.

    Raises:
        InputError: The last one does.
    """
    if jobs:
        field = f"job {jobs[-1].name}"
        check_at_most(
            jobs[-1].arrival,
            MAX_SECONDS,
            "seconds from the first arrival to the last",
            file=file,
            field=field,
        )


def check_nodes(count: float, file: str, field: str = "") -> None:
    """Refuse too many nodes.

    Raises:
        InputError: There are.
    """
    check_at_most(count, MAX_NODES, "nodes", file=file, field=field)
