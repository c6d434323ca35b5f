"""How large a simulation may be, checked before it starts.

The numbers are in docs/sim.md too.  They are far beyond every public trace, and small enough that
a file with a typing error ends in a sentence and not in a machine out of memory.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from pumice.errors import InputError
from pumice.sim.workload import JobSpec

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


def within_limits(jobs: Iterable[JobSpec], file: str) -> Iterator[JobSpec]:
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


def check_arrivals(jobs: tuple[JobSpec, ...], file: str) -> None:
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
