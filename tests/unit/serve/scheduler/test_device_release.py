"""Devices of a bind that failed: they count as taken until the cluster has them back."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.kinds import RESOURCE_CLAIM
from pumice.clock import VirtualClock
from pumice.cluster.base import DirectWriter, Write
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ClusterError, ConflictError, RejectedError
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import device, device_class, pod, pod_group, resource_claim, resource_slice

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""


class SilentClaims(EmbeddedCluster):
    """Reports no change of a resource claim: that watch has fallen behind."""

    def watch(self, kind: str, *args: Any, **options: Any) -> Iterator[Any]:
        return iter(()) if kind == RESOURCE_CLAIM else super().watch(kind, *args, **options)


class Writer(DirectWriter):
    """Refuses writes as ``refuse`` demands, and carries the others out."""

    refuse: Callable[[Write], ClusterError | None] = staticmethod(lambda _: None)

    def submit(self, write: Write, *, lane: Any, done: Any = None) -> None:
        error = self.refuse(write)
        if error is None:
            super().submit(write, lane=lane, done=done)
        elif done is not None:
            done(error)


def refuse_bind_of_p(write: Write) -> ClusterError | None:
    is_it = write.verb == "bind" and write.arguments["pod"] == "p"
    return RejectedError("Pod", "default", "p", "no") if is_it else None


def refuse_release_too(write: Write) -> ClusterError | None:
    if "'allocation': None" in str(write.arguments):
        return ConflictError(RESOURCE_CLAIM, "default", "p")
    return refuse_bind_of_p(write)


class World:
    """Two pods that wait for one device, which the first of them gets."""

    def __init__(self, writer: type["Writer"] | None = None) -> None:
        self.clock = VirtualClock(0.0)
        self.cluster = cluster = SilentClaims(self.clock)
        make_queues(cluster)
        add_node(cluster, "n", {"cpu": "8", "memory": "8Gi"})
        cluster.create(device_class("gpu"))
        cluster.create(resource_slice("n", node="n", devices=[device("gpu0")]))
        for name in ("p", "r"):
            cluster.create(resource_claim(name))
            cluster.create(pod_group(name, phase=None))
            entries = [{"name": "gpu", "resourceClaimName": name}]
            cluster.create(pod(name, group=name, cpu=1, spec={"resourceClaims": entries}))
        self.writer: Any = (writer or Writer)(cluster)
        self.live = LiveScheduler(
            cluster, Scheduler(parse_conf(CONF)), assume=True, writer=self.writer, confirm_s=10.0
        )

    def cycle(self) -> list[str]:
        """Run a cycle; return the pods that it binds."""
        found = list(self.live.cycle().decisions.binds)
        self.clock.advance(0.5)
        return found

    def holders(self) -> list[str]:
        """List the claims that have a device."""
        claims = self.cluster.list(RESOURCE_CLAIM)[0]
        held = [each for each in claims if "allocation" in each.get("status", {})]
        return [each["metadata"]["name"] for each in held]


@pytest.fixture
def world() -> World:
    return World()


def test_a_device_that_may_still_be_held_is_given_to_nobody(world: World) -> None:
    world.writer.refuse = refuse_release_too
    assert world.cycle() == ["default/p"]
    assert world.holders() == ["p"]
    assert "default/r" not in [pod for _ in range(8) for pod in world.cycle()]
    assert world.holders() == ["p"]


class Slow(Writer):
    """Keeps writes about claims and binds until ``go``."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        super().__init__(cluster)
        self._waiting: list[tuple[Write, Any, Any]] = []

    def submit(self, write: Write, *, lane: Any, done: Any = None) -> None:
        if write.verb == "bind" or write.arguments.get("kind") == RESOURCE_CLAIM:
            self._waiting.append((write, lane, done))
        else:
            super().submit(write, lane=lane, done=done)

    def go(self) -> None:
        """Carry out all that waits, and what follows from it."""
        while self._waiting:
            write, lane, done = self._waiting.pop(0)
            super().submit(write, lane=lane, done=done)


def test_a_pod_is_not_placed_while_its_claims_are_being_released() -> None:
    world = World(Slow)
    world.writer.refuse = refuse_bind_of_p
    assert world.cycle() == ["default/p"]
    world.writer.go()
    assert [world.cycle() for _ in range(6)] == [[]] * 6
    world.writer.go()
    assert len(world.cycle()) == 1
    assert len(world.holders()) <= 1


def test_devices_under_release_count_as_taken_after_tables_are_rebuilt() -> None:
    world = World(Slow)
    world.writer.refuse = refuse_bind_of_p
    assert world.cycle() == ["default/p"]
    world.writer.go()
    assert world.cycle() == []
    world.live._start_over()
    assert world.cycle() == []
