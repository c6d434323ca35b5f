"""Pods that wait on their node for their claims: writes, their time, and releases."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.base import DirectWriter
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.embedded.volumes import VolumeController
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group

CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"
SELECTED = "volume.kubernetes.io/selected-node"
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates, arguments: {volumebinding.bindTimeoutSeconds: 20}}
"""


class Wire:
    """A writer that notes everything and does it, unless a kind's answers are set to fail."""

    def __init__(self, cluster: Any) -> None:
        self._direct = DirectWriter(cluster)
        self.writes: list[Any] = []
        self.fail: dict[str, Any] = {}
        self.loses_answer = False
        self.delayed: list[Any] | None = None

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        kind = write.arguments.get("kind", write.verb)
        self.writes.append((kind, write.arguments))
        if kind in (CLAIM, VOLUME) and self.delayed is not None:
            self.delayed.append((write, lane, done))
        elif kind in self.fail:
            if self.loses_answer:
                self._direct.submit(write, lane=lane)
            done(self.fail[kind])
        else:
            self._direct.submit(write, lane=lane, done=done)

    def go(self) -> None:
        delayed, self.delayed = self.delayed or [], None
        for write, lane, done in delayed:
            self._direct.submit(write, lane=lane, done=done)

    def flush(self, timeout_s: Any) -> bool:
        return True

    def of(self, kind: str) -> list[Any]:
        return [arguments for found, arguments in self.writes if found == kind]


class World:
    """A cluster with two nodes of one CPU, a class that waits, and a scheduler."""

    def __init__(self, *, assume: bool = True) -> None:
        self.cluster = EmbeddedCluster(VirtualClock(0.0))
        make_queues(self.cluster)
        for name in ("a", "b"):
            add_node(self.cluster, name, {"cpu": "1", "memory": "8Gi"})
        self.storage_class("made", "disk.test")
        self.storage_class("local", "kubernetes.io/no-provisioner")
        self.binder = VolumeController(self.cluster)
        self.wire = Wire(self.cluster)
        self.live = self.scheduler(assume=assume)

    def scheduler(self, *, assume: bool = True) -> Any:
        return LiveScheduler(
            self.cluster, Scheduler(parse_conf(CONF)), assume=assume, writer=self.wire
        )

    def storage_class(self, name: str, provisioner: str) -> None:
        self.cluster.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        )

    def claim(self, name: str, storage_class: str = "made", size: str = "1Gi") -> None:
        spec = {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        }
        self.cluster.create(
            {"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": name}, "spec": spec}
        )

    def volume(self, name: str, node: str, **spec: Any) -> None:
        only = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        spec = {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [only]}]}},
            **spec,
        }
        self.cluster.create(
            {"apiVersion": "v1", "kind": VOLUME, "metadata": {"name": name}, "spec": spec}
        )
        self.cluster.merge_status(VOLUME, "", name, {"phase": "Available"})

    def pod(self, name: str, *claims: str, group: str = "", cpu: Any = 1) -> None:
        if not group:
            self.cluster.create(pod_group(f"of-{name}", phase=None))
        volumes = [
            {"name": f"v-{each}", "persistentVolumeClaim": {"claimName": each}} for each in claims
        ]
        spec = {"volumes": volumes}
        self.cluster.create(pod(name, group=group or f"of-{name}", cpu=cpu, spec=spec))

    def node_of(self, name: str) -> Any:
        return self.cluster.get("Pod", "default", name)["spec"].get("nodeName")

    def selected(self, name: str) -> Any:
        meta = self.cluster.get(CLAIM, "default", name)["metadata"]
        return (meta.get("annotations") or {}).get(SELECTED)

    def owner(self, name: str) -> Any:
        return self.cluster.get(VOLUME, "", name)["spec"].get("claimRef")

    def events(self) -> list[str]:
        found = self.cluster.list("Event")[0]
        return [each["message"] for each in found if each["reason"] == "FailedScheduling"]

    def second(self) -> Any:
        """Run a cycle and advance a second."""
        cycle = self.live.cycle()
        self.cluster.clock.advance(1)  # type: ignore[attr-defined]
        return cycle.decisions

    def turn(self, times: int = 1) -> None:
        """Run cycles with the volume controller between them."""
        for _ in range(times):
            self.second()
            self.binder.sync()


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("assume", [True, False])
def test_a_pod_is_bound_after_its_claim(assume: bool) -> None:
    world = World(assume=assume)
    world.claim("c")
    world.pod("p", "c")
    world.turn()
    assert world.selected("c") in ("a", "b")
    assert world.node_of("p") is None
    world.turn()
    assert world.node_of("p") == world.selected("c")
    assert [kind for kind, _ in world.wire.writes if kind in (CLAIM, "bind")] == [CLAIM, "bind"]


def test_the_smallest_volume_that_a_node_reaches_is_kept_for_the_claim(world: World) -> None:
    world.volume("large", "b", capacity={"storage": "9Gi"})
    world.volume("small", "b", capacity={"storage": "2Gi"})
    world.claim("c", "local", "2Gi")
    world.pod("p", "c")
    world.turn(2)
    assert world.node_of("p") == "b"
    assert world.owner("large") is None
    (patched,) = world.wire.of(VOLUME)
    claim = world.cluster.get(CLAIM, "default", "c")
    assert patched["name"] == "small"
    assert patched["patch"]["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    assert patched["patch"]["metadata"]["annotations"] == {
        "pv.kubernetes.io/bound-by-controller": "yes"
    }
    assert claim["spec"]["volumeName"] == "small"


def test_a_volume_that_its_user_kept_for_the_claim_is_not_marked_as_given(world: World) -> None:
    world.volume("mine", "b", claimRef={"namespace": "default", "name": "c"})
    world.volume("other", "a")
    world.claim("c", "local")
    world.pod("p", "c")
    world.turn(2)
    assert world.node_of("p") == "b"
    (patched,) = world.wire.of(VOLUME)
    assert (patched["name"], "annotations" in patched["patch"]["metadata"]) == ("mine", False)


def test_two_pods_of_one_cycle_take_two_volumes(world: World) -> None:
    world.volume("v", "a")
    for name in ("c", "d"):
        world.claim(name, "local")
        world.pod(f"p-{name}", name, cpu="100m")
    world.turn(3)
    assert len(world.wire.of(VOLUME)) == 1
    assert sorted(str(world.node_of(f"p-{name}")) for name in ("c", "d")) == ["None", "a"]
    world.volume("w", "b")
    world.turn(3)
    assert {world.node_of("p-c"), world.node_of("p-d")} == {"a", "b"}


def test_pods_that_come_while_a_claim_s_node_is_still_being_written_follow_it(
    world: World,
) -> None:
    world.claim("c")
    world.pod("p", "c", cpu="100m")
    world.wire.delayed = []
    (node,) = world.second().binds.values()
    assert world.selected("c") is None
    for number in range(4):
        world.pod(f"q{number}", "c", cpu="100m")
    later = world.second().binds
    assert (len(later), set(later.values())) == (4, {node})


def test_a_claim_that_is_never_bound_frees_the_room_with_a_reason(world: World) -> None:
    world.claim("c")
    world.pod("p", "c")
    world.second()
    for name in ("q", "r"):
        world.pod(name)
    for _ in range(19):
        world.second()
        assert {world.node_of("q"), world.node_of("r")} != {"a", "b"}
    world.second()
    assert {world.node_of("q"), world.node_of("r")} == {"a", "b"}
    node = world.selected("c")
    why = f'failed to bind volumes for node {node}: persistentvolumeclaim "c" not bound within 20 s'
    assert why in world.events()
    (condition,) = world.cluster.get("Pod", "default", "p")["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("SchedulerError", why)
    assert world.node_of("p") is None


def test_a_provisioner_that_takes_the_selection_back_lets_the_pod_go_elsewhere(
    world: World,
) -> None:
    world.claim("c")
    world.pod("p", "c")
    world.second()
    refused = world.selected("c")
    world.cluster.patch(CLAIM, "default", "c", {"metadata": {"annotations": {SELECTED: None}}})
    world.cluster.patch("Node", "", refused, {"spec": {"unschedulable": True}})
    world.second()
    assert 'provisioning failed for persistentvolumeclaim "c"' in world.events()[0]
    world.turn(4)
    assert world.node_of("p") == world.selected("c") == ("b" if refused == "a" else "a")


def test_a_volume_that_is_taken_away_again_is_not_waited_for(world: World) -> None:
    world.volume("v", "a")
    world.claim("c", "local")
    world.pod("p", "c")
    world.second()
    world.cluster.patch(VOLUME, "", "v", {"spec": {"claimRef": None}})
    world.second()
    assert 'persistentvolume "v" is no longer kept for the claim' in world.events()[0]
    world.turn(3)
    assert world.node_of("p") == "a"


def test_a_volume_that_somebody_else_took_is_not_taken_from_them(world: World) -> None:
    world.volume("v", "a")
    world.volume("w", "b")
    world.claim("c", "local")
    world.pod("p", "c")
    world.wire.delayed = []
    world.second()
    ((write, _, _),) = world.wire.delayed
    taken = write.arguments["name"]
    other = {"namespace": "default", "name": "x", "uid": "u"}
    world.cluster.patch(VOLUME, "", taken, {"spec": {"claimRef": other}})
    world.wire.go()
    world.turn(4)
    assert world.owner(taken) == other
    assert world.node_of("p") == ("b" if taken == "v" else "a")


@pytest.mark.parametrize("what", ["pod", "claim", "node", "volume"])
def test_what_goes_meanwhile_ends_the_wait(world: World, what: str) -> None:
    world.volume("v", "a")
    world.claim("c", "local")
    world.pod("p", "c")
    world.second()
    kind = {"pod": "Pod", "claim": CLAIM, "node": "Node", "volume": VOLUME}[what]
    name = {"pod": "p", "claim": "c", "node": "a", "volume": "v"}[what]
    if what == "node":
        world.binder.sync()
    space = "default" if what in ("pod", "claim") else ""
    world.cluster.delete(kind, space, name, grace_s=0)
    world.second()
    assert not len(world.live.volumes)
    assert bool(world.events()) == (what != "pod")
    assert not world.wire.of("bind")


def test_a_volume_bound_elsewhere_is_not_reached(world: World) -> None:
    world.claim("c")
    world.pod("p", "c")
    world.second()
    other = "b" if world.selected("c") == "a" else "a"
    world.volume("v", other)
    claim = {"spec": {"volumeName": "v"}, "metadata": {"annotations": {"x": "y"}}}
    world.cluster.patch(CLAIM, "default", "c", claim)
    world.cluster.merge_status(CLAIM, "default", "c", {"phase": "Bound"})
    world.second()
    assert "the node does not reach" in world.events()[0]
    world.turn(3)
    assert world.node_of("p") == other


@pytest.mark.parametrize("storage_class", ["made", "local"])
def test_a_new_scheduler_goes_on_where_a_killed_one_stopped(
    world: World, storage_class: str
) -> None:
    world.volume("v", "a")
    world.volume("w", "b")
    world.claim("c", storage_class)
    world.pod("p", "c")
    world.second()
    before = world.selected("c"), world.owner("v"), world.owner("w")
    assert any(before)
    world.live = world.scheduler()
    world.second()
    assert (world.selected("c"), world.owner("v"), world.owner("w")) == before
    assert world.node_of("p") is None
    world.turn(2)
    assert len(world.wire.of(CLAIM) + world.wire.of(VOLUME)) == 1
    assert len(world.wire.of("bind")) == 1
    assert world.node_of("p") == (before[0] or ("a" if before[1] else "b"))
