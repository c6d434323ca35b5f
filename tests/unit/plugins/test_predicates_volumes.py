"""predicates: claims that exist, volumes that can be reached, had, and attached."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.framework.session import close_session
from pumice.plugins.predicates import Predicates
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

FITS = "fits"
ZONE_LABEL = "topology.kubernetes.io/zone"
NODE = "node(s) didn't match PersistentVolume's node affinity"
LIMIT = "node(s) exceed max volume count"


def claim(
    name: Any, volume: str = "", storage_class: Any = None, size: str = "1Gi", **status: Any
) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "volumeName": volume,
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
        "status": {"phase": "Bound" if volume else "Pending", **status},
    }


def volume(
    name: Any,
    zone: Any = None,
    labels: Any = None,
    size: str = "1Gi",
    storage_class: str = "",
    driver: Any = None,
    **spec: Any,
) -> Any:
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            **spec,
        },
        "status": {"phase": "Available"},
    }
    if zone:
        condition = {"key": "zone", "operator": "In", "values": [zone]}
        terms = [{"matchExpressions": [condition]}]
        made["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if driver:
        made["spec"]["csi"] = {"driver": driver, "volumeHandle": f"h-{name}"}
    return made


def storage_class(
    name: Any,
    mode: str = "WaitForFirstConsumer",
    provisioner: str = "kubernetes.io/no-provisioner",
    **more: Any,
) -> Any:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def csi_node(name: Any, driver: Any, count: Any) -> Any:
    drivers = [{"name": driver, "nodeID": name, "allocatable": {"count": count}}]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": drivers},
    }


def using(name: Any, *claims: Any, **more: Any) -> Any:
    volumes = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": each}}
        for i, each in enumerate(claims)
    ]
    return pod(name, group="g", spec={"volumes": volumes}, **more)


NODES = [
    node("a", labels={"zone": "x", ZONE_LABEL: "x"}),
    node("b", labels={"zone": "y", ZONE_LABEL: "y"}),
    node("c"),
]


@pytest.fixture
def world(open_session: Any) -> Any:
    """Return a function that opens a session on nodes a (zone x), b (zone y), c (no zone)."""

    def opened(*objects: Any, **switches: Any) -> Any:
        return World(
            open_session(
                [queue("default"), pod_group("g"), *NODES, *objects], Predicates(**switches)
            )
        )

    return opened


class World:
    """A session asked by pod names."""

    def __init__(self, ssn: Any) -> None:
        self.ssn = ssn
        self.statement = ssn.statement()

    def task(self, name: Any) -> Any:
        return self.ssn.task(self.ssn.snapshot.tasks.row_of[f"default/{name}"])

    def problem(self, name: Any) -> Any:
        reason = self.ssn.policy.filter_task(self.task(name))
        return "" if reason is None else reason.text

    def reported(self, name: Any) -> Any:
        placing = self.ssn.placing
        verdict = placing.fit(self.task(name)).verdict.tolist()
        assert not self.ssn.failures.errors
        return [placing.reasons[code].text for code in verdict]


class TestClaims:
    def test_a_claim_that_does_not_exist_bars_the_pod(self, world: Any) -> None:
        assert world(using("p", "c")).problem("p") == 'persistentvolumeclaim "c" not found'

    def test_an_unbound_claim_that_should_be_bound_bars_the_pod(self, world: Any) -> None:
        want = "pod has unbound immediate PersistentVolumeClaims"
        now = storage_class("now", mode="Immediate")
        assert want == world(using("p", "c"), claim("c", storage_class="now"), now).problem("p")
        assert want == world(using("p", "c"), claim("c")).problem("p")

    def test_a_lost_claim_bars_the_pod(self, world: Any) -> None:
        assert "non-existent" in world(using("p", "c"), claim("c", phase="Lost")).problem("p")

    def test_without_volume_binding_a_claim_may_be_lost_or_going(self, world: Any) -> None:
        going = claim("c", storage_class="wait")
        going["metadata"]["deletionTimestamp"] = "2026-01-15T11:59:00Z"
        for each in (claim("c", "v", phase="Lost"), going):
            objects = (using("p", "c"), each, volume("v"), storage_class("wait"))
            assert world(*objects).problem("p")
            assert not world(*objects, volume_binding=False).problem("p")

    def test_a_claim_that_is_to_get_a_named_volume_bars_only_with_volume_binding(
        self, world: Any
    ) -> None:
        named = claim("c", "v", storage_class="now", phase="Pending")
        objects = (using("p", "c"), named, volume("v"), storage_class("now", mode="Immediate"))
        assert world(*objects).problem("p")
        assert not world(*objects, volume_binding=False).problem("p")
        missing = world(using("p", "c"), named, volume_binding=False).problem("p")
        assert missing == 'persistentvolume "v" not found'
        unnamed = claim("c", storage_class="now")
        waiting = (using("p", "c"), unnamed, storage_class("now", mode="Immediate"))
        assert world(*waiting, volume_binding=False).problem("p")
        assert not world(*waiting, volume_binding=False, volume_zones=False).problem("p")

    def test_zones_are_asked_for_claims_that_the_pod_names(self, world: Any) -> None:
        spec = {"volumes": [{"name": "v", "ephemeral": {}}]}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "default-p"}
        own = claim("p-v", storage_class="now")
        own["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        objects = (pod("p", group="g", spec=spec), own, storage_class("now", mode="Immediate"))
        assert world(*objects).problem("p")
        assert not world(*objects, volume_binding=False).problem("p")
        own["spec"]["volumeName"], own["status"] = "v", {"phase": "Bound"}
        near = volume("v", labels={ZONE_LABEL: "x"})
        fits = ["fits", "fits", "fits"]
        assert world(*objects, near, volume_binding=False).reported("p") == fits
        named = world(using("p", "p-v"), own, near, volume_binding=False).reported("p")
        assert named[0] == "fits"
        assert named[1] != "fits"

    def test_an_ephemeral_claim_must_belong_to_its_pod(self, world: Any) -> None:
        spec = {"volumes": [{"name": "v", "ephemeral": {}}]}
        mine, other = claim("p-v", "v1"), claim("q-v", "v2")
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": "default-p",
            "controller": True,
        }
        for each in (mine, other):
            each["metadata"]["ownerReferences"] = [owner]
        pods = [pod(name, group="g", spec=spec) for name in "pq"]
        w = world(*pods, mine, other, volume("v1"), volume("v2"))
        assert not w.problem("p")
        assert "not created for the pod" in w.problem("q")

    def test_other_kinds_of_volumes_ask_for_nothing(self, world: Any) -> None:
        w = world(pod("p", group="g", spec={"volumes": [{"name": "tmp", "emptyDir": {}}]}))
        assert not w.problem("p")
        assert w.reported("p") == [FITS] * 3

    def test_with_all_switches_off_nothing_is_asked(self, world: Any) -> None:
        off = {"volume_limits": False, "volume_zones": False, "volume_binding": False}
        w = world(using("p", "c"), **off)
        assert not w.problem("p")
        assert w.reported("p") == [FITS] * 3


class TestNodes:
    def test_pods_that_share_a_claim_follow_the_first_one(self, world: Any) -> None:
        w = world(
            using("p", "c"),
            using("q", "c", cpu=1),
            claim("c", storage_class="make"),
            storage_class("make", provisioner="disks"),
        )
        assert w.reported("q") == [FITS] * 3
        w.statement.pipeline(w.task("p").row, 1)
        assert w.reported("q") == [NODE, FITS, NODE]
        w.statement.unpipeline(w.task("p").row)
        assert w.reported("q") == [FITS] * 3


class TestLimits:
    def test_a_node_takes_only_so_many_volumes_of_a_driver(self, world: Any) -> None:
        w = world(
            using("p", "c1"),
            using("o", "c2", node="a"),
            using("o2", "c3", node="b"),
            claim("c1", "v1"),
            claim("c2", "v2"),
            claim("c3", "v3"),
            *(volume(f"v{i}", driver="disks") for i in (1, 2, 3)),
            csi_node("a", "disks", 1),
            csi_node("b", "disks", 2),
        )
        assert w.reported("p") == [LIMIT, FITS, FITS]
        fit = w.ssn.placing.fit(w.task("p"))
        assert not w.ssn.placing.incurable(fit).any()  # evictions could help


def driver(name: str, *, tells: bool = True) -> Any:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}}
    return {**head, "spec": {"storageCapacity": tells}}


def capacity(name: str, selector: Any, amount: Any = "10Gi", **more: Any) -> Any:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": name, "namespace": "default"},
        "storageClassName": "make",
        "nodeTopology": selector,
        "capacity": amount,
        **more,
    }


class TestCapacity:
    FULL = "node(s) did not have enough free storage"
    MAKE = (using("p", "c"), storage_class("make", provisioner="disks"))

    def reported(self, world: Any, *objects: Any, size: str = "10Gi") -> Any:
        wanted = claim("c", storage_class="make", size=size)
        return world(*self.MAKE, wanted, *objects).reported("p")

    @pytest.mark.parametrize(
        ("selector", "reached"),
        [
            ({"matchLabels": {"zone": "x"}}, "a"),
            ({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, "ab"),
            ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["x"]}]}, "bc"),
            ({"matchExpressions": [{"key": "zone", "operator": "In"}]}, ""),
            ({}, "abc"),
            (None, ""),
        ],
    )
    def test_capacity_counts_on_the_nodes_it_is_for(
        self, world: Any, selector: Any, reached: str
    ) -> None:
        reported = self.reported(world, driver("disks"), capacity("k", selector))
        assert reported == [FITS if name in reached else self.FULL for name in "abc"]

    @pytest.mark.parametrize(
        ("more", "fits"),
        [
            ({}, True),
            ({"amount": "9Gi"}, False),
            ({"amount": None}, False),
            ({"maximumVolumeSize": "9Gi", "amount": "99Gi"}, False),
            ({"maximumVolumeSize": "10Gi", "amount": None}, True),
            ({"storageClassName": "other"}, False),
        ],
    )
    def test_one_volume_must_fit_as_a_whole(self, world: Any, more: Any, fits: bool) -> None:
        found = self.reported(world, driver("disks"), capacity("k", {}, **more))
        assert found == [FITS if fits else self.FULL] * 3

    def test_a_claim_without_a_size_asks_for_no_room(self, world: Any) -> None:
        wanted = claim("c", storage_class="make")
        wanted["spec"]["resources"] = {}
        assert world(*self.MAKE, wanted, driver("disks")).reported("p") == [FITS] * 3


class TestChoices:
    OBJECTS = (
        using("p", "c", "d"),
        claim("c", storage_class="wait"),
        claim("d", storage_class="make"),
        storage_class("wait"),
        storage_class("make", provisioner="disks"),
        volume("v", zone="x", storage_class="wait"),
    )

    def close(self, world: Any, *objects: Any, **switches: Any) -> Any:
        w = world(*objects, **switches)
        w.statement.place(w.task("p").row, 0)
        w.statement.commit()
        return close_session(w.ssn)

    def test_a_pod_to_be_bound_names_its_choices(self, world: Any) -> None:
        decisions = self.close(world, *self.OBJECTS, bind_timeout_s=7)
        (wanted,) = decisions.volumes.values()
        assert (wanted.pod, wanted.timeout_s) == ("default/p", 7)
        assert [(c.claim, c.volume, c.node) for c in wanted.choices] == [
            ("default/c", "v", "a"),
            ("default/d", "", "a"),
        ]

    def test_without_volume_binding_nothing_is_chosen(self, world: Any) -> None:
        assert not self.close(world, *self.OBJECTS, volume_binding=False).volumes

    def test_with_all_switches_off_a_session_closes_well(self, world: Any) -> None:
        off = {"volume_limits": False, "volume_zones": False, "volume_binding": False}
        w = world(*self.OBJECTS, **off)
        w.statement.place(w.task("p").row, 0)
        w.statement.commit()
        w.ssn.close()
        assert not w.ssn.failures.errors

    def test_a_pod_placed_where_a_claim_finds_nothing_chooses_nothing(self, world: Any) -> None:
        objects = [each for each in self.OBJECTS if each["kind"] != "PersistentVolume"]
        assert not self.close(world, *objects).volumes

    def test_bound_claims_are_no_matter(self, world: Any) -> None:
        objects = (using("p", "c"), claim("c", "v"), volume("v"))
        assert not self.close(world, *objects).volumes


def test_a_claim_that_the_cluster_has_yet_to_make_is_waited_for(world: Any) -> None:
    w = world(pod("p", group="g", spec={"volumes": [{"name": "v", "ephemeral": {}}]}))
    made = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"'
    assert w.problem("p") == made


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
def test_a_gang_with_terms_about_other_pods_follows_the_claim_it_shares(kind: str) -> None:
    """The first of six equal pods fixes the node of the claim, and the others go there, too."""
    app = "x" if kind == "podAffinity" else "other"
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "zone"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spec = {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        "affinity": {kind: required},
    }
    pods = [pod(f"p{i}", group="g", cpu=1, labels={"app": "x"}, spec=spec) for i in range(6)]
    nodes = [node(name, cpu=8, labels={"zone": "z"}) for name in ("a", "b")]
    waits = storage_class("made", provisioner="disk.test")
    group = pod_group("g", min_member=6, phase="Inqueue")
    world = [queue("default"), group, *nodes, waits, claim("c", storage_class="made"), *pods]
    conf = parse_conf(
        'actions: "allocate"\ntiers:\n- plugins:\n'
        "  - name: gang\n  - name: predicates\n  - name: nodeorder\n"
    )
    binds = Scheduler(conf).cycle(world, 0.0).binds
    assert (len(binds), len(set(binds.values()))) == (6, 1)
