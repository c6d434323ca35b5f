"""Workloads written as Pumice's own table of jobs, CSV or Parquet."""

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pumice.sim.csv_cells import write_csv
from pumice.sim.output import write_table
from pumice.sim.readers.job_table import AMOUNTS, REQUEST
from pumice.sim.traces.uniform_jobs import UniformJob
from pumice.sim.workload import Workload, seconds_text

_COLUMNS: Final = (
    *("name", "user", "queue", "priority_class", "arrival", "run", "walltime", "pods", "needed"),
)
_MEBI: Final = 1 << 20


def write_parquet(workload: Workload, path: Path) -> None:
    """Write jobs as Parquet, numbers as such."""
    equal = [UniformJob.of(job) for job in workload.jobs]
    columns = _columns(equal)
    write_table(path, columns, _typed(_rows(equal, columns)))


def as_csv(workload: Workload) -> str:
    """Write jobs as CSV."""
    out = io.StringIO()
    equal = [UniformJob.of(job) for job in workload.jobs]
    columns = _columns(equal)
    write_csv(out, columns, _rows(equal, columns))
    return out.getvalue()


def _columns(jobs: Iterable[UniformJob]) -> list[str]:
    own = {resource: column for column, resource in AMOUNTS.items()}
    names = {name: None for job in jobs for name in job.asked}
    return [*_COLUMNS, *(own.get(name, f"{REQUEST}{name}") for name in names)]


def _rows(jobs: Iterable[UniformJob], columns: Sequence[str]) -> Iterator[list[str]]:
    resources = [AMOUNTS.get(name, name.removeprefix(REQUEST)) for name in columns]
    for each in jobs:
        job, walltime = each.job, each.job.walltime
        yield [
            job.name,
            job.user,
            job.queue,
            job.priority_class,
            seconds_text(job.arrival),
            seconds_text(each.run),
            "" if walltime is None else seconds_text(walltime),
            str(each.pods),
            str(max(job.min_member, 1)),
            *(
                _quantity(name, each.asked[name]) if name in each.asked else ""
                for name in resources[len(_COLUMNS) :]
            ),
        ]


def _typed(rows: Iterable[Sequence[str]]) -> Iterator[list[Any]]:
    """Write the numbers of a row as such."""
    for row in rows:
        name, user, queue, ranked, arrival, run, walltime, pods, needed, *asked = row
        seconds = [float(text) if text else None for text in (arrival, run, walltime)]
        yield [name, user, queue, ranked, *seconds, int(pods), int(needed), *asked]


def _quantity(resource: str, amount: float) -> str:
    """Write an amount as a quantity: bytes as such, else in thousandths if it is not whole."""
    if resource in ("memory", "ephemeral-storage"):
        whole, rest = divmod(round(amount), _MEBI)
        return str(round(amount)) if rest else f"{whole}Mi"
    thousandths = round(1000 * amount)
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)
