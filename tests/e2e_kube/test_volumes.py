"""Claims that wait for their first consumer, with Kubernetes' own volume controllers.

A pod is bound once, and only after its claims are: the API server's audit log shows it.
"""

import signal
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from pumice.testing.builders import pod, pod_group
from tests.e2e_kube.provisioner import SELECTED, Provisioner, local_volume
from tests.e2e_kube.servers import STRICT, conf
from tests.e2e_kube.waiting import stays, until

DRIVER = "disk.pumice.test"
LOCAL = "kubernetes.io/no-provisioner"
SOON = {"name": "predicates", "arguments": {"volumebinding.bindTimeoutSeconds": 3}}
HASTY = conf("overcommit", "drf", SOON, "proportion", "nodeorder", first=STRICT)


@pytest.fixture(scope="module", autouse=True)
def volume_controllers(plane: Any) -> Iterator[Any]:
    """Run what binds claims and volumes."""
    with plane.volume_controllers() as process:
        yield process


@pytest.fixture
def disks(space: Any) -> Iterator["Disks"]:
    """Yield what makes classes, volumes and claims; they are removed afterwards."""
    disks = Disks(space)
    yield disks
    disks.clear()


class Disks:
    """Storage of one test; its classes are named after its namespace."""

    def __init__(self, space: Any) -> None:
        self._space = space
        self.kubectl = space.kubectl
        self.storage_class = space.namespace

    def add_class(self, provisioner: str) -> None:
        self.kubectl.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": self.storage_class},
                "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        )

    def add_volume(self, name: str, *nodes: str, **more: Any) -> str:
        name = f"{name}-{self._space.namespace}"
        self.kubectl.create(local_volume(name, *nodes, storage_class=self.storage_class, **more))
        self.kubectl.wait(f"pv/{name}", ".status.phase", "Available")
        return name

    def claim(self, name: str, mode: str = "ReadWriteOnce", size: str = "1Gi") -> None:
        self.kubectl.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name},
                "spec": {
                    "storageClassName": self.storage_class,
                    "accessModes": [mode],
                    "resources": {"requests": {"storage": size}},
                },
            }
        )

    def gang(self, name: str, *claims: str, size: int = 1, volumes: Any = ()) -> None:
        """Make a gang of which each pod has all claims and volumes."""
        mounted = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
        mounted += volumes
        space = self._space.namespace
        made = [pod_group(name, namespace=space, min_member=size)]
        made += [
            pod(f"{name}-{i}", namespace=space, group=name, cpu=1, spec={"volumes": mounted})
            for i in range(size)
        ]
        for each in made:
            each.pop("status")
            each["metadata"].pop("uid")
        self.kubectl.create(*made)

    def bound(self) -> dict[str, str]:
        """Return the volume of each claim that has one."""
        found = self.kubectl.items("pvc")
        return {
            each["metadata"]["name"]: each["spec"]["volumeName"]
            for each in found
            if each["status"]["phase"] == "Bound"
        }

    def selected(self, claim: str) -> str:
        """Return the node that was selected for a claim."""
        marks = self.kubectl.get("pvc", claim)["metadata"].get("annotations") or {}
        return str(marks.get(SELECTED, ""))

    def owner(self, volume: str) -> str:
        """Return the claim for which a volume is kept."""
        return str((self.kubectl.get("pv", volume)["spec"].get("claimRef") or {}).get("name", ""))

    def clear(self) -> None:
        """Remove what the space does not."""
        self.kubectl(
            "delete", "pod,podgroup.scheduling.volcano.sh", "--all", "--grace-period=0", "--force"
        )
        self.kubectl("delete", "pvc", "--all", "--timeout=30s")
        mine = [
            each["metadata"]["name"]
            for each in self.kubectl.items("pv")
            if each["spec"].get("storageClassName") == self.storage_class
        ]
        if mine:
            self.kubectl("delete", "pv", *mine, "--timeout=30s")
        self.kubectl.run("delete", "storageclass", self.storage_class)


@pytest.fixture
def provisioner(space: Any) -> Provisioner:
    return Provisioner(space.kubectl, DRIVER)


def wait_placed(space: Any, *names: str) -> dict[str, str]:
    return until(
        f"{', '.join(names)} placed", space.placed, lambda placed: set(names) <= set(placed)
    )


def wait_reported(space: Any, words: str) -> None:
    """Wait for an event on a pod with the reason why it is not placed."""
    until(
        f"{words} reported",
        lambda: space.events("FailedScheduling"),
        lambda events: any(words in each["message"] for each in events),
    )


def check_order(audit: Any, space: Any, claims: int) -> None:
    """Check that every pod was bound once, and that what its claim needs was written before."""
    binds = audit.binds(space.namespace)
    assert set(binds) == set(space.placed())
    assert set(binds.values()) == {1}
    written: Counter[str] = Counter()
    bindings = 0
    for each in audit.requests():
        if each.resource in ("persistentvolumeclaims", "persistentvolumes"):
            written[each.name] += each.verb == "patch" and each.status < 300
        elif each.resource == "pods/binding":
            bindings += 1
            assert written.total() >= min(bindings, claims)
    assert sorted((+written).values()) == [1] * claims


def test_each_pod_gets_the_local_volume_of_its_node(
    space: Any, disks: Disks, scheduler: Any, audit: Any
) -> None:
    nodes = space.nodes(3, cpu=4)
    disks.add_class(LOCAL)
    small = disks.add_volume("small", nodes[2], size="1Gi")
    large = disks.add_volume("large", nodes[1], size="5Gi")
    for name, size in (("one", "1Gi"), ("two", "2Gi")):
        disks.claim(name, size=size)
    with scheduler():
        disks.gang("one", "one")
        disks.gang("two", "two")
        placed = wait_placed(space, "one-0", "two-0")
        check_order(audit, space, claims=2)
    assert disks.bound() == {"one": small, "two": large}
    assert placed == {"one-0": nodes[2], "two-0": nodes[1]}


def test_pods_of_one_cycle_do_not_take_the_same_volume(
    space: Any, disks: Disks, scheduler: Any, audit: Any
) -> None:
    nodes = space.nodes(2, cpu=8)
    disks.add_class(LOCAL)
    volumes = {disks.add_volume(f"disk-{i}", nodes[i % 2]) for i in range(4)}
    for i in range(5):
        disks.claim(f"c{i}")
        disks.gang(f"g{i}", f"c{i}")
    with scheduler():
        until("four pods placed", space.placed, lambda placed: len(placed) == 4)
        stays("four pods placed", lambda: len(space.placed()), lambda n: n == 4, for_s=2)
        check_order(audit, space, claims=4)
        (left,) = {f"g{i}-0" for i in range(5)} - set(space.placed())
        conditions = space.kubectl.get("pod", left)["status"]["conditions"]
    assert set(disks.bound().values()) == volumes
    assert "didn't find available persistent volumes to bind" in conditions[0]["message"]


def test_a_volume_is_provisioned_on_the_node_that_was_selected(
    space: Any, disks: Disks, scheduler: Any, audit: Any, provisioner: Provisioner
) -> None:
    space.nodes(2, cpu=4)
    disks.add_class(DRIVER)
    disks.claim("data")
    with scheduler(), provisioner.running():
        disks.gang("work", "data")
        placed = wait_placed(space, "work-0")
        check_order(audit, space, claims=1)
    assert disks.selected("data") == placed["work-0"]


def test_an_ephemeral_volume_is_provisioned_for_its_pod(
    space: Any, disks: Disks, scheduler: Any, audit: Any, provisioner: Provisioner
) -> None:
    space.nodes(2, cpu=4)
    disks.add_class(DRIVER)
    spec = {
        "storageClassName": disks.storage_class,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    own = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    with scheduler(), provisioner.running():
        disks.gang("work", size=2, volumes=[own])
        placed = wait_placed(space, "work-0", "work-1")
        check_order(audit, space, claims=2)
    for name, node in placed.items():
        assert disks.selected(f"{name}-scratch") == node


def test_one_claim_is_shared_by_a_gang(
    space: Any, disks: Disks, scheduler: Any, audit: Any, provisioner: Provisioner
) -> None:
    space.nodes(3, cpu=4)
    disks.add_class(DRIVER)
    disks.claim("shared", "ReadWriteMany")
    with scheduler(), provisioner.running():
        disks.gang("team", "shared", size=4)
        placed = wait_placed(space, *(f"team-{i}" for i in range(4)))
        check_order(audit, space, claims=1)
    assert set(placed.values()) == {disks.selected("shared")}


def test_a_claim_that_is_never_bound_gives_the_room_back_with_a_reason(
    space: Any, disks: Disks, scheduler: Any, audit: Any
) -> None:
    nodes = space.nodes(1, cpu=1)
    disks.add_class(DRIVER)  # and there is no provisioner
    disks.claim("data")
    with scheduler(HASTY):
        disks.gang("stuck", "data")
        until("a node selected", lambda: disks.selected("data"))
        disks.gang("other")
        stays("no room", space.placed, lambda placed: not placed, for_s=1)
        assert wait_placed(space, "other-0") == {"other-0": nodes[0]}
        message = 'node-0: persistentvolumeclaim "data" not bound within 3 s'
        wait_reported(space, message)
        (condition,) = space.kubectl.get("pod", "stuck-0")["status"]["conditions"]
    assert condition["reason"] in ("SchedulerError", "Unschedulable")
    assert audit.binds(space.namespace) == {"other-0": 1}


def test_a_provisioner_that_gives_up_is_asked_again(
    space: Any, disks: Disks, scheduler: Any, audit: Any, provisioner: Provisioner
) -> None:
    space.nodes(2, cpu=4)
    disks.add_class(DRIVER)
    disks.claim("data")
    provisioner.rejects = 1
    with scheduler(), provisioner.running():
        disks.gang("work", "data")
        wait_placed(space, "work-0")
        wait_reported(space, "provisioning failed")
    assert audit.binds(space.namespace) == {"work-0": 1}


def test_provisioning_goes_on_after_the_scheduler_was_killed_in_the_middle(
    space: Any, disks: Disks, scheduler: Any, servers: Any, audit: Any, provisioner: Provisioner
) -> None:
    space.nodes(3, cpu=4)
    disks.add_class(DRIVER)
    disks.claim("data", "ReadWriteMany")
    with scheduler() as first:
        disks.gang("work", "data", size=2)
        selected = until("a node selected", lambda: disks.selected("data"))
        servers.kill(first)
    assert not space.placed()
    with scheduler(), provisioner.running():
        placed = wait_placed(space, "work-0", "work-1")
    assert set(placed.values()) == {selected}
    assert set(audit.binds(space.namespace).values()) == {1}


def test_a_local_volume_that_a_killed_scheduler_gave_is_used(
    space: Any, disks: Disks, scheduler: Any, servers: Any, audit: Any, volume_controllers: Any
) -> None:
    nodes = space.nodes(3, cpu=4)
    disks.add_class(LOCAL)
    volumes = [disks.add_volume(f"disk-{i}", nodes[i]) for i in range(3)]
    disks.claim("data")
    volume_controllers.send(signal.SIGSTOP)  # so that the claim is not bound yet
    try:
        with scheduler() as first:
            disks.gang("work", "data")
            owned = until("a volume kept", lambda: [v for v in volumes if disks.owner(v)])
            servers.kill(first)
        assert not space.placed()
        with scheduler():
            stays("one volume", lambda: [v for v in volumes if disks.owner(v)] == owned, for_s=2)
            volume_controllers.send(signal.SIGCONT)
            placed = wait_placed(space, "work-0")
    finally:
        volume_controllers.send(signal.SIGCONT)
    assert placed["work-0"] == nodes[volumes.index(owned[0])]
    assert disks.bound() == {"data": owned[0]}
    assert set(audit.binds(space.namespace).values()) == {1}


def test_a_driver_that_tells_its_capacity_gets_no_volume_that_does_not_fit(
    space: Any, disks: Disks, scheduler: Any, provisioner: Provisioner
) -> None:
    nodes = space.nodes(3, cpu=4)
    disks.add_class(DRIVER)
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver"}
    space.kubectl.create(
        {**driver, "metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}},
        *(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSIStorageCapacity",
                "metadata": {"name": name},
                "storageClassName": disks.storage_class,
                "nodeTopology": {"matchLabels": {"kubernetes.io/hostname": name}},
                "capacity": "100Gi" if name == nodes[1] else "1Gi",
            }
            for name in nodes
        ),
    )
    disks.claim("data", size="10Gi")
    disks.claim("vast", size="1Ti")
    try:
        with scheduler(), provisioner.running():
            disks.gang("work", "data")
            disks.gang("never", "vast")
            assert wait_placed(space, "work-0") == {"work-0": nodes[1]}
            wait_reported(space, "enough free storage")
    finally:
        space.kubectl("delete", "csidriver", DRIVER)
        space.kubectl("delete", "csistoragecapacity", "--all")


def test_an_unbound_claim_of_an_immediate_class_lets_its_pod_wait(
    space: Any, disks: Disks, scheduler: Any, provisioner: Provisioner
) -> None:
    space.nodes(1, cpu=4)
    disks.storage_class = ""
    disks.claim("data")
    with scheduler():
        disks.gang("work", "data")
        wait_reported(space, "unbound immediate")
        assert not space.placed()
