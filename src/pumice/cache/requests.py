"""What a pod asks for: containers, init containers, sidecars and overhead added up."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from pumice.api.pods import Container, PodSpec
from pumice.api.quantity import Quantity
from pumice.core.resources import CPU, MEMORY, PODS, Column, Resources, saturate
from pumice.core.snapshot import Snapshot

NONZERO_CPU = 100.0
NONZERO_MEMORY = 200.0 * 1024 * 1024
"""What Kubernetes' scores assume of a container that asks for nothing."""


def learn(snapshot: Snapshot, *lists: Mapping[str, Quantity] | None, asked: bool = False) -> None:
    """Give every resource named in some lists a row in all tables.

    Raises:
        InputError: too many are ``asked`` for that nobody has.
    """
    for amounts in lists:
        if amounts and snapshot.resources.learn(amounts, asked=asked):
            snapshot.widen()


def resource_lists(spec: PodSpec) -> Iterable[Mapping[str, Quantity]]:
    """Return every resource list of a pod that counts in its request."""
    for container in (*spec.containers, *spec.init_containers):
        yield container.resources.requests
    yield spec.overhead


def pod_request(spec: PodSpec, resources: Resources) -> Column:
    """Add up a pod's request (R,), one unit of ``pods`` included."""
    request = _add_up(spec, lambda c: resources.vector(c.resources.requests), len(resources))
    request = saturate(request + resources.vector(spec.overhead))
    request[PODS] = 1.0
    return request


def pod_nonzero(spec: PodSpec, resources: Resources) -> Column:
    """Add up cpu and memory (2,) with defaults for containers that do not name them."""

    def amounts(container: Container) -> Column:
        vector = resources.vector(container.resources.requests)[: MEMORY + 1]
        if "cpu" not in container.resources.requests:
            vector[CPU] = NONZERO_CPU
        if "memory" not in container.resources.requests:
            vector[MEMORY] = NONZERO_MEMORY
        return vector

    total = _add_up(spec, amounts, MEMORY + 1)
    return saturate(total + resources.vector(spec.overhead)[: MEMORY + 1])


def _add_up(spec: PodSpec, amounts: Callable[[Container], Column], size: int) -> Column:
    """Sum containers and sidecars; an init container needs its own next to earlier sidecars."""
    running = np.zeros(size)
    for container in spec.containers:
        running = running + amounts(container)
    sidecars, starting = np.zeros(size), np.zeros(size)
    for container in spec.init_containers:
        own = amounts(container)
        if container.restart_policy == "Always":
            sidecars = sidecars + own
            own = sidecars
        else:
            own = own + sidecars
        starting = np.maximum(starting, own)
    return np.maximum(running + sidecars, starting)
