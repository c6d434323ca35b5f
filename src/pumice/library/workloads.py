"""Workloads and nodes that a program describes itself: jobs as rows, nodes as amounts."""

import math
from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any, Final

from pumice.api.annotations import RUN_SECONDS
from pumice.api.kinds import DEFAULT_QUEUE
from pumice.api.objects import Node
from pumice.errors import InputError
from pumice.sim.inputs import equal_nodes
from pumice.sim.limits import check_nodes
from pumice.sim.workload import JobSpec, PodSpecs, TaskSpec, Workload, in_order

_NUMBERS: Final = {"arrival": 0, "run": 0, "pods": 1, "needed": 1, "walltime": 0}
"""Columns of numbers, and the minimum of each."""
_COLUMNS: Final = frozenset({*_NUMBERS, "name", "queue", "priority_class", "request"})
_AMOUNTS: Final = {"cpu": "cpu", "memory": "memory", "gpu": "nvidia.com/gpu"}


def workload(jobs: Iterable[Mapping[str, Any]], *, name: str = "workload") -> Workload:
    """Make a workload from rows, one for each job.

    A row has ``arrival`` and ``run`` in seconds, and as it needs: ``name``, ``pods`` (1),
    ``needed`` (all of them), ``cpu`` (1), ``memory``, ``gpu``, ``request`` (resource to amount),
    ``queue``, ``priority_class``, ``walltime`` (the seconds that its user asked for).

    Raises:
        InputError: A row lacks something, or has an unknown column.
    """
    specs = PodSpecs()
    found = [_job(number, row, specs) for number, row in enumerate(jobs)]
    if not found:
        raise InputError(wanted="at least one job", found="none", file=name)
    return Workload(name=name, format="rows", jobs=in_order(found))


def _job(number: int, row: Mapping[str, Any], specs: PodSpecs) -> JobSpec:
    _check(number, row)
    pods = int(row.get("pods", 1))
    walltime = row.get("walltime")
    task = TaskSpec(specs.spec(_request(row)), pods, float(row["run"]))
    return JobSpec(
        name=str(row.get("name") or f"job-{number}"),
        arrival=float(row["arrival"]),
        tasks=(task,),
        min_member=int(row.get("needed", pods)),
        queue=str(row.get("queue") or DEFAULT_QUEUE),
        priority_class=str(row.get("priority_class") or ""),
        annotations={} if walltime is None else {RUN_SECONDS: f"{float(walltime):g}"},
    )


def _check(number: int, row: Mapping[str, Any]) -> None:
    place = f"jobs[{number}]"
    unknown = sorted(set(row) - _COLUMNS - set(_AMOUNTS))
    if unknown:
        known = ", ".join(sorted({*_COLUMNS, *_AMOUNTS}))
        raise InputError(
            wanted="a known column", found=unknown[0], field=place, hint=f"known: {known}"
        )
    for field, least in _NUMBERS.items():
        value = row.get(field)
        if value is None and field not in ("arrival", "run"):
            continue
        if not (isinstance(value, Real) and least <= float(value) < math.inf):
            raise InputError(wanted=f"a number from {least}", found=value, field=f"{place}.{field}")


def _request(row: Mapping[str, Any]) -> dict[str, str]:
    amounts = {resource: row[column] for column, resource in _AMOUNTS.items() if column in row}
    amounts.update(row.get("request") or {})
    return {name: str(amount) for name, amount in (amounts or {"cpu": 1}).items()}


def nodes(count: int, **amounts: Any) -> list[Node]:
    """Make equal nodes, as in ``nodes(8, cpu=32, memory="128Gi", gpu=4)``; 110 pods fit each.

    Raises:
        InputError: too many.
    """
    check_nodes(count, "nodes")
    named = {_AMOUNTS.get(name, name): str(amount) for name, amount in amounts.items()}
    return equal_nodes(count, {"pods": "110", **named})


NodesSource = str | Path | list[Node] | None
"""A file of nodes, nodes made by :func:`nodes`, or None for what the workload says."""
