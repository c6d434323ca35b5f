"""Workloads and nodes that a program describes itself: jobs as rows, nodes as amounts."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pumice.api.objects import Node
from pumice.errors import InputError
from pumice.sim.inputs import equal_nodes
from pumice.sim.limits import check_nodes
from pumice.sim.readers.job_table import AMOUNTS, jobs_from
from pumice.sim.workload import Workload, in_order


def workload(jobs: Iterable[Mapping[str, Any]], *, name: str = "workload") -> Workload:
    """Make a workload from rows, one for each job.

    A row has ``arrival`` and ``run`` in seconds, and as it needs: ``name``, ``pods`` (1),
    ``needed`` (all of them), ``cpu`` (1), ``memory``, ``gpu``, ``request`` (resource to amount),
    ``queue``, ``priority_class``, ``user``, ``walltime`` (the seconds that its user asked for).

    Raises:
        InputError: A row lacks something, or has an unknown column.
    """
    found = list(jobs_from((f"jobs[{number}]", row) for number, row in enumerate(jobs)))
    if not found:
        raise InputError(wanted="at least one job", found="none", file=name)
    return Workload(name=name, format="rows", jobs=in_order(found))


def nodes(count: int, **amounts: Any) -> list[Node]:
    """Make equal nodes, as in ``nodes(8, cpu=32, memory="128Gi", gpu=4)``; 110 pods fit each.

    Raises:
        InputError: too many.
    """
    check_nodes(count, "nodes")
    named = {AMOUNTS.get(name, name): str(amount) for name, amount in amounts.items()}
    return equal_nodes(count, {"pods": "110", **named})


NodesSource = str | Path | list[Node] | None
"""A file of nodes, nodes made by :func:`nodes`, or None for what the workload says."""
