"""Lists of deep-learning jobs as CSV: when, how long, on how many GPUs, of which virtual cluster.

Every GPU of a job is a pod of its own; all pods of a job start together.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pumice.api.times import lenient_epoch
from pumice.api.wording import counted, verb
from pumice.errors import InputError
from pumice.sim.options import MAX_JOB_PODS, check_at_most, within_limits
from pumice.sim.readers.table_files import number, rows_of
from pumice.sim.workload import JobSpec, NodeHint, PodSpecs, TaskSpec, Workload, in_order

TIME_COLUMNS = ("timestamp", "submit_time", "submitted_time")
QUEUE_COLUMNS = ("cluster", "vc", "queue")
USER_COLUMNS = ("user", "user_id", "userid")
GPU = "nvidia.com/gpu"


@dataclass
class _Found:
    """Facts about a list."""

    skipped: int = 0
    has_dates: bool = False


def is_header(columns: set[str]) -> bool:
    """Return whether columns are those of such a list."""
    return {"duration", "num_gpus"} <= columns and bool(columns & set(TIME_COLUMNS))


def read(path: Path) -> Workload:
    """Read a list of jobs; virtual clusters are queues."""
    found = _Found()
    jobs = list(within_limits(_jobs(path, found), str(path)))
    notes = ["each GPU of a job is one pod that asks for nothing else"]
    if found.skipped:
        left_out = f"{verb(found.skipped, 'was', 'were')} left out"
        notes.append(f"{counted(found.skipped, 'job')} without a GPU {left_out}")
    return Workload(
        name=path.name,
        format="philly",
        jobs=in_order(jobs),
        start=min((job.arrival for job in jobs), default=None) if found.has_dates else None,
        node_hint=NodeHint({"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}),
        notes=tuple(notes),
    )


def _jobs(path: Path, found: _Found) -> Iterator[JobSpec]:
    spec, file = PodSpecs().spec({GPU: "1"}), str(path)
    for number_of_row, (line, row) in enumerate(rows_of(path)):
        gpus = int(number(row, "num_gpus", file, line))
        if gpus < 1:
            found.skipped += 1
            continue
        at = f"{file}:{line}"
        check_at_most(gpus, MAX_JOB_PODS, "GPUs of a job", file=at, field="num_gpus")
        seconds = number(row, "duration", file, line)
        yield JobSpec(
            name=_first(row, ("job_id", "jobid", "name")) or f"job-{number_of_row:06d}",
            arrival=_moment(row, file, line, found),
            tasks=(TaskSpec(spec, gpus, seconds, role="worker"),),
            min_member=gpus,
            queue=_first(row, QUEUE_COLUMNS) or "default",
            user=_first(row, USER_COLUMNS),
        )


def _first(row: Mapping[str, str], columns: tuple[str, ...]) -> str:
    for column in columns:
        if value := row.get(column):
            return value
    return ""


def _moment(row: Mapping[str, str], file: str, line: int, found: _Found) -> float:
    """Read a time: seconds, or a date and time."""
    column = next((name for name in TIME_COLUMNS if row.get(name)), TIME_COLUMNS[0])
    text = row.get(column, "")
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        if math.isfinite(seconds):
            return seconds
    try:
        found.has_dates = True
        return lenient_epoch(text)
    except ValueError:
        raise InputError(
            wanted="seconds or a date and time", found=text, field=column, file=f"{file}:{line}"
        ) from None
