"""Alibaba's list of 2025: instances of recommendation services on CPU nodes and GPU nodes.

Instances serve until they are deleted.  Those without a time of creation were there before.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pumice.api.pods import PodSpec
from pumice.errors import InputError
from pumice.sim.options import within_limits
from pumice.sim.readers.node_sizes import node_for
from pumice.sim.readers.openb import GPU
from pumice.sim.readers.table_files import number, rows_of
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order

COLUMNS: Final = frozenset({"instance_sn", "app_name", "cpu_request", "gpu_request"})
RDMA: Final = "rdma/percent"
"""A share of the network card of a node, which has a hundred of it."""
_MOST: Final = 1e9
"""Beyond every amount and time of the list."""
_GI: Final = 1 << 30
_NODE: Final = {"cpu": 128, "memory": 1024 * _GI, "pods": 110, GPU: 8, RDMA: 100}


@dataclass(frozen=True, slots=True)
class _Instance:
    name: str
    app: str
    spec: PodSpec
    since: float
    """When it was created; 0 if it was there before."""
    seconds: float
    """How long it served; not a number if it still does."""


def read(path: Path) -> Workload:
    """Read a list of instances; each is a job of its own, in the queue of its service."""
    found = list(_instances(path))
    end = max((each.since + each.seconds for each in found if each.seconds >= 0), default=0.0)
    end = max(end, max((each.since for each in found), default=0.0) + 1)
    endless = sum(math.isnan(each.seconds) for each in found)
    jobs = (_job(each, end) for each in found)
    ordered = in_order(within_limits(jobs, str(path)))
    notes = ["how many instances of a service a node may have is not held to"]
    if endless:
        notes.append(f"{endless} instances that were not deleted serve until the list ends")
    return Workload(
        name=path.name,
        format="alibaba2025",
        jobs=ordered,
        node_hint=node_for(ordered, _NODE),
        notes=tuple(notes),
    )


def _job(each: _Instance, end: float) -> JobSpec:
    run = end - each.since if math.isnan(each.seconds) else each.seconds
    task = TaskSpec(each.spec, 1, run)
    return JobSpec(name=each.name, arrival=each.since, tasks=(task,), min_member=1, queue=each.app)


def _instances(path: Path) -> Iterator[_Instance]:
    specs, file = PodSpecs(), str(path)
    for line, row in rows_of(path):
        created, scheduled, deleted = (
            _time(row, column, file, line)
            for column in ("creation_time", "scheduled_time", "deletion_time")
        )
        since = 0.0 if math.isnan(created) else created
        begun = since if math.isnan(scheduled) else scheduled
        if deleted < begun:
            raise InputError(
                wanted="a deletion after the start",
                found=row["deletion_time"],
                field="deletion_time",
                file=f"{file}:{line}",
            )
        amounts = {
            "cpu": f"{round(1000 * _amount(row, 'cpu_request', file, line))}m",
            "memory": f"{round(1024 * _amount(row, 'memory_request', file, line))}Mi",
            GPU: f"{round(1000 * _amount(row, 'gpu_request', file, line))}m",
            RDMA: str(round(_amount(row, "rdma_request", file, line))),
        }
        asked = {name: text for name, text in amounts.items() if text.strip("0miM")}
        name, app = row.get("instance_sn") or f"instance-{line}", row.get("app_name") or "default"
        yield _Instance(
            name.replace("_", "-"), app.replace("_", "-"), specs.spec(asked), since, deleted - begun
        )


def _time(row: dict[str, str], column: str, file: str, line: int) -> float:
    """Read a time; not a number if it is before or after the list."""
    known = row.get(column, "").lower() not in ("", "nan")
    return number(row, column, file, line, most=_MOST) if known else math.nan


def _amount(row: dict[str, str], column: str, file: str, line: int) -> float:
    return number(row, column, file, line, most=_MOST) if row.get(column) else 0.0
