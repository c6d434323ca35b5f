"""Volumes on a bad day: no pod before its claims, no volume for two, no pod waits for ever."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.embedded.volumes import VolumeController
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group
from tests.properties.chaos import BadWriter, LateCluster

CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"
SELECTED = "volume.kubernetes.io/selected-node"
NODES = ("n0", "n1")
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - {name: predicates, arguments: {volumebinding.bindTimeoutSeconds: 4}}
  - {name: nodeorder}
"""
PODS = st.lists(
    st.tuples(
        st.integers(1, 2),  # pods of the gang
        st.sampled_from(["local", "made"]),
        st.booleans(),  # they share one claim
        st.integers(2, 6),  # they run
    ),
    min_size=1,
    max_size=6,
)


class Watchdog:
    """Checks every change of the cluster."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.owners: dict[str, str] = {}
        self.volumes: dict[str, str] = {}
        self.nodes: dict[str, str] = {}
        cluster.listeners.append(self.see)

    def see(self, kind: str, event: Any) -> None:
        thing = event.object
        if kind == "Pod" and event.type != "DELETED" and thing["spec"].get("nodeName"):
            self._see_bound(thing)
        elif kind == CLAIM and thing["spec"].get("volumeName"):
            name, volume = thing["metadata"]["name"], thing["spec"]["volumeName"]
            assert self.volumes.setdefault(name, volume) == volume
            assert list(self.volumes.values()).count(volume) == 1
        elif kind == VOLUME and thing["spec"].get("claimRef"):
            name, owner = thing["metadata"]["name"], thing["spec"]["claimRef"]["name"]
            before = self.owners.get(name, owner)
            assert before == owner or self.volumes[before] != name
            self.owners[name] = owner

    def _see_bound(self, found: Any) -> None:
        name, node = found["metadata"]["name"], found["spec"]["nodeName"]
        assert self.nodes.setdefault(name, node) == node
        for each in found["spec"].get("volumes") or ():
            claim = each["persistentVolumeClaim"]["claimName"]
            assert claim in self.volumes, f"{name} is bound before its claim {claim}"
            volume = self._cluster.peek(VOLUME, "", self.volumes[claim])
            (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
            assert term["matchExpressions"][0]["values"] == [node]


class World:
    """Two nodes, gangs with claims, and a scheduler that may be killed."""

    def __init__(self, gangs: Any, random: Any) -> None:
        self.random = random
        self.clock = VirtualClock(0.0)
        self.cluster = EmbeddedCluster(self.clock)
        self.kubelet = Kubelet(self.cluster)
        self.volumes = VolumeController(self.cluster)
        self.late = LateCluster(self.cluster, random)
        make_queues(self.cluster)
        for name in NODES:
            add_node(self.cluster, name, {"cpu": "2", "memory": "64Gi"})
        for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "disk")):
            self.cluster.create(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": name},
                    "provisioner": provisioner,
                    "volumeBindingMode": "WaitForFirstConsumer",
                }
            )
        for number, gang in enumerate(gangs):
            self.arrive(f"g{number}", *gang)
        self.watchdog = Watchdog(self.cluster)
        self.start()

    def start(self) -> None:
        self.writer = BadWriter(self.cluster, self.random)
        self.writer.calm = self.late.calm
        self.live = LiveScheduler(
            self.late, Scheduler(parse_conf(CONF)), assume=True, writer=self.writer, confirm_s=5.0
        )

    def arrive(self, name: str, size: int, storage_class: str, shared: bool, runs: int) -> None:
        self.cluster.create(pod_group(name, min_member=1, phase=None))
        for index in range(size):
            claim = f"{name}-c" if shared else f"{name}-c{index}"
            if not shared or not index:
                self.claim(claim, storage_class)
            marks = {"pumice.dev/run-seconds": str(runs)}
            mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
            spec = {"volumes": mounted}
            self.cluster.create(
                pod(f"{name}-{index}", group=name, cpu=1, annotations=marks, spec=spec)
            )

    def claim(self, name: str, storage_class: str) -> None:
        modes = {"accessModes": ["ReadWriteOnce"]}
        size = {"resources": {"requests": {"storage": "1Gi"}}}
        head = {"apiVersion": "v1", "metadata": {"name": name}}
        spec = {"storageClassName": storage_class, **modes, **size}
        self.cluster.create({**head, "kind": CLAIM, "spec": spec})
        if storage_class == "local":
            only = {
                "key": "kubernetes.io/hostname",
                "operator": "In",
                "values": [self.random.choice(NODES)],
            }
            term = {"nodeSelectorTerms": [{"matchExpressions": [only]}]}
            spec = {**modes, "capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": term}}
            spec["storageClassName"] = "local"
            head = {"apiVersion": "v1", "metadata": {"name": f"pv-{name}"}}
            status = {"status": {"phase": "Available"}}
            self.cluster.create({**head, "kind": VOLUME, "spec": spec, **status})

    def tick(self) -> None:
        self.kubelet.sync()
        self.writer.step()
        if self.late.calm or self.random.random() < 0.5:
            self.reject()
            self.volumes.sync()
        self.kubelet.sync()
        self.live.cycle()
        self.clock.advance(1.0)

    def reject(self) -> None:
        """Make the provisioner refuse a claim now and then."""
        for claim in self.cluster.list(CLAIM)[0]:
            meta = claim["metadata"]
            selected = SELECTED in (meta.get("annotations") or {})
            waits = selected and not claim["spec"].get("volumeName")
            if waits and not self.late.calm and self.random.random() < 0.3:
                change = {"metadata": {"annotations": {SELECTED: None}}}
                self.cluster.patch(CLAIM, "default", meta["name"], change)

    def is_over(self) -> bool:
        return {p["status"]["phase"] for p in self.cluster.list("Pod")[0]} == {"Succeeded"}


@settings(max_examples=8)
@given(PODS, st.randoms(use_true_random=True))
def test_no_pod_goes_before_its_claims_and_all_run_in_the_end(gangs: Any, random: Any) -> None:
    world = World(gangs, random)
    for _ in range(30):
        world.tick()
        if random.random() < 0.1:
            world.writer.kill()
            world.start()
    world.late.calm = world.writer.calm = True
    for _ in range(300):
        world.tick()
        if world.is_over():
            break
    assert world.is_over()
    for _ in range(10):
        world.tick()
    assert not len(world.live.volumes)
    assert world.live.recovery.open == 0
