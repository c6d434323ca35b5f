"""The request of a pod as columns; the rule is that of ``api.pod_resources``."""

import operator
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from pumice.api.pod_resources import add_up, pod_level
from pumice.api.pods import Container, PodSpec
from pumice.api.quantity import Quantity
from pumice.core.resources import CPU, MEMORY, PODS, Column, Resources, saturate
from pumice.core.snapshot import Snapshot

NONZERO_CPU = 100.0
NONZERO_MEMORY = 200.0 * 1024 * 1024
"""What Kubernetes' scores assume for a container without requests."""


def learn(snapshot: Snapshot, *lists: Mapping[str, Quantity] | None, asked: bool = False) -> None:
    """Add a row for every resource in some lists to all tables.

    Raises:
        InputError: too many are ``asked`` for that no object offers.
    """
    for amounts in lists:
        if amounts and snapshot.resources.learn(amounts, asked=asked):
            snapshot.widen()


def resource_lists(spec: PodSpec) -> Iterable[Mapping[str, Quantity]]:
    """Return every resource list of a pod that counts in its request."""
    for container in (*spec.containers, *spec.init_containers):
        yield container.resources.requests
    if whole := _whole(spec):
        yield whole
    yield spec.overhead


def pod_request(spec: PodSpec, resources: Resources) -> Column:
    """Return a pod's request (R,), one unit of ``pods`` included."""
    request = _containers(spec, lambda c: resources.vector(c.resources.requests), len(resources))
    _replace(request, spec, resources)
    request = saturate(request + resources.vector(spec.overhead))
    request[PODS] = 1.0
    return request


def pod_nonzero(spec: PodSpec, resources: Resources) -> Column:
    """Return cpu and memory (2,) with defaults for containers that do not name them.

    In a pod with requests as a whole, defaults apply to what none of it names.
    """
    if not _whole(spec):
        return waiting_nonzero(spec, resources)
    named = {name for amounts in resource_lists(spec) for name in amounts}
    total = _with_defaults(spec, resources, named)
    _replace(total, spec, resources)
    return saturate(total + resources.vector(spec.overhead)[: MEMORY + 1])


def waiting_nonzero(spec: PodSpec, resources: Resources) -> Column:
    """Return cpu and memory (2,) that scores assume for a pod before it is on a node.

    Kubernetes: least and most allocated overlook the requests of that pod as a whole.
    """
    total = _with_defaults(spec, resources, set())
    return saturate(total + resources.vector(spec.overhead)[: MEMORY + 1])


def _with_defaults(spec: PodSpec, resources: Resources, named: set[str]) -> Column:
    """Add up containers (2,), with defaults for what they do not name, nor ``named`` holds."""

    def amounts(container: Container) -> Column:
        vector = resources.vector(container.resources.requests)[: MEMORY + 1]
        if "cpu" not in {*container.resources.requests, *named}:
            vector[CPU] = NONZERO_CPU
        if "memory" not in {*container.resources.requests, *named}:
            vector[MEMORY] = NONZERO_MEMORY
        return vector

    return _containers(spec, amounts, MEMORY + 1)


def _whole(spec: PodSpec) -> Mapping[str, Quantity]:
    """Return the requests of a pod as a whole; they replace those of its containers."""
    return pod_level(spec.resources.requests) if spec.resources is not None else {}


def _replace(request: Column, spec: PodSpec, resources: Resources) -> None:
    for name, quantity in _whole(spec).items():
        row = resources.row(name)
        if row is not None and row < len(request):
            request[row] = resources.amount(name, quantity)


def _containers(spec: PodSpec, amounts: Callable[[Container], Column], size: int) -> Column:
    running = [amounts(each) for each in spec.containers]
    starting = [(amounts(each), each.restart_policy == "Always") for each in spec.init_containers]
    return add_up(running, starting, np.zeros(size), operator.add, np.maximum)
