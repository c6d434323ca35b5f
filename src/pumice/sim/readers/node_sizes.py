"""Nodes for traces that state none: large enough for every pod of the trace."""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from pumice.api.pods import PodSpec
from pumice.api.quantity import parse_quantity
from pumice.sim.workload import JobSpec, NodeHint

USUAL_NODE: Final = {"cpu": 64, "memory": 256 << 30, "pods": 110}
_NANO: Final = 1_000_000_000
_ODD: Final = 4
"""How many times what is usual, and what almost all jobs ask for, is odd."""
_MEMORY: Final = ("memory", "ephemeral-storage")


def amounts_of(spec: PodSpec) -> dict[str, float]:
    """Return what a pod asks for by resource, all its containers together."""
    found: dict[str, float] = {}
    for container in spec.containers:
        for name, amount in container.resources.requests.items():
            found[name] = found.get(name, 0.0) + parse_quantity(amount) / _NANO
    return found


def node_for(jobs: Iterable[JobSpec], usual: Mapping[str, float] = USUAL_NODE) -> NodeHint:
    """Describe a node that offers what is usual, or what the largest pod asks for."""
    most = dict(usual)
    specs = {id(task.spec): task.spec for job in jobs for task in job.tasks}
    for spec in specs.values():
        for name, amount in amounts_of(spec).items():
            most[name] = max(most.get(name, 8.0), amount)
    return NodeHint({name: _quantity(name, amount) for name, amount in most.items()})


def outlier_notes(jobs: Iterable[JobSpec], hint: NodeHint) -> list[str]:
    """Return a sentence for each amount of the nodes that only one job in a hundred or fewer needs.

    Such an amount is often a mistake of the trace, and it makes every node too large.
    """
    notes = []
    asked: dict[str, list[tuple[float, str]]] = {}
    for job in jobs:
        most: dict[str, float] = {}
        for task in job.tasks:
            for name, amount in amounts_of(task.spec).items():
                most[name] = max(most.get(name, 0.0), amount)
        for name, amount in most.items():
            asked.setdefault(name, []).append((amount, job.key))
    for name, usual in USUAL_NODE.items():
        found = sorted(asked.get(name, ()))
        if not found or found[-1][0] < _ODD * max(usual, found[int(0.99 * (len(found) - 1))][0]):
            continue
        offered, rest = hint.allocatable.get(name, ""), found[int(0.99 * (len(found) - 1))][0]
        notes.append(
            f"each node offers {offered} {name} because a pod of {found[-1][1]} asks for it, where "
            f"99 % of the jobs ask for {_quantity(name, rest)} at most: state nodes to change that"
        )
    return notes


def _quantity(name: str, amount: float) -> str:
    """Write an amount as a quantity, rounded up to what is whole."""
    return f"{math.ceil(amount / (1 << 30))}Gi" if name in _MEMORY else str(math.ceil(amount))
