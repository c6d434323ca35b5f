"""Claims and volumes of the embedded cluster: bound and provisioned as a real one does it."""

from typing import Any

import pytest

from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.embedded.volumes import VolumeController

CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"
SELECTED = "volume.kubernetes.io/selected-node"


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster()
    for name, provisioner, mode in (
        ("now", "disk.test", "Immediate"),
        ("wait", "disk.test", "WaitForFirstConsumer"),
        ("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
    ):
        cluster.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": mode,
            }
        )
    add_node(cluster, "n", {"cpu": "1"})
    return cluster


def claim(cluster: Any, name: str = "c", **spec: Any) -> Any:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
        **spec,
    }
    return cluster.create(
        {"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": name}, "spec": spec}
    )


def volume(cluster: Any, name: str, size: str = "2Gi", labels: Any = None, **spec: Any) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, **spec}
    metadata = {"name": name, "labels": labels or {}}
    cluster.create({"apiVersion": "v1", "kind": VOLUME, "metadata": metadata, "spec": spec})


def volume_of(cluster: Any, name: str = "c") -> Any:
    found = cluster.get(CLAIM, "default", name)
    named = found["spec"].get("volumeName", "")
    assert (found["status"]["phase"] == "Bound") == bool(named)
    return named


def phase(cluster: Any, name: str) -> Any:
    return cluster.get(VOLUME, "", name)["status"]["phase"]


def test_a_claim_without_a_class_takes_the_smallest_volume_that_fits(cluster: Any) -> None:
    for name, size in (("large", "9Gi"), ("fits", "3Gi"), ("small", "1Gi")):
        volume(cluster, name, size)
    claim(cluster)
    VolumeController(cluster).sync()
    assert volume_of(cluster) == "fits"
    assert [phase(cluster, name) for name in ("large", "fits")] == ["Available", "Bound"]
    assert cluster.get(CLAIM, "default", "c")["status"]["capacity"] == {"storage": "3Gi"}


def test_an_immediate_class_provisions_at_once(cluster: Any) -> None:
    made = claim(cluster, storageClassName="now")
    VolumeController(cluster).sync()
    assert volume_of(cluster) == f"pvc-{made['metadata']['uid']}"
    assert "nodeAffinity" not in cluster.get(VOLUME, "", volume_of(cluster))["spec"]


def test_a_class_that_waits_does_nothing_by_itself(cluster: Any) -> None:
    claim(cluster, storageClassName="wait")
    claim(cluster, "l", storageClassName="local")
    volume(cluster, "v", storageClassName="local")
    VolumeController(cluster).sync()
    assert not volume_of(cluster)
    assert not volume_of(cluster, "l")


@pytest.mark.parametrize(
    ("node", "where", "key"),
    [
        ("n", "matchExpressions", "kubernetes.io/hostname"),
        ("plain", "matchFields", "metadata.name"),
    ],
)
def test_a_selected_node_gets_the_volume(cluster: Any, node: str, where: str, key: str) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "plain"}})
    claim(cluster, storageClassName="wait")
    cluster.patch(CLAIM, "default", "c", {"metadata": {"annotations": {SELECTED: node}}})
    VolumeController(cluster).sync()
    required = cluster.get(VOLUME, "", volume_of(cluster))["spec"]["nodeAffinity"]["required"]
    wanted = {"key": key, "operator": "In", "values": [node]}
    assert required == {"nodeSelectorTerms": [{where: [wanted]}]}


@pytest.mark.parametrize(
    ("name", "node", "provisions"),
    [("wait", "gone", True), ("wait", "n", False), ("local", "n", True), ("absent", "n", True)],
)
def test_nothing_is_provisioned_without_a_node_or_a_driver(
    cluster: Any, name: str, node: str, provisions: bool
) -> None:
    claim(cluster, storageClassName=name)
    cluster.patch(CLAIM, "default", "c", {"metadata": {"annotations": {SELECTED: node}}})
    VolumeController(cluster, provisions=provisions).sync()
    assert not volume_of(cluster)


@pytest.mark.parametrize("given", [True, False])
def test_a_volume_whose_claim_got_another_is_free_again_if_it_was_given(
    cluster: Any, given: bool
) -> None:
    made = claim(cluster, storageClassName="local")
    owner = {"namespace": "default", "name": "c", "uid": made["metadata"]["uid"]}
    for name in ("v", "w"):
        volume(cluster, name, storageClassName="local", claimRef=owner)
        marks = {"pv.kubernetes.io/bound-by-controller": "yes"} if given else {}
        cluster.patch(VOLUME, "", name, {"metadata": {"annotations": marks}})
    VolumeController(cluster).sync()
    left = cluster.get(VOLUME, "", "w" if volume_of(cluster) == "v" else "v")
    assert bool(left["spec"].get("claimRef")) != given


def test_what_was_made_goes_with_its_claim_and_the_rest_is_left_over(cluster: Any) -> None:
    volume(cluster, "v")
    claim(cluster)
    claim(cluster, "d", storageClassName="now")
    controller = VolumeController(cluster)
    controller.sync()
    made = volume_of(cluster, "d")
    for name in ("c", "d"):
        cluster.delete(CLAIM, "default", name)
    controller.sync()
    assert phase(cluster, "v") == "Released"
    assert cluster.peek(VOLUME, "", made) is None
    claim(cluster, "e")
    controller.sync()
    assert not volume_of(cluster, "e")


def test_odd_objects_hurt_only_themselves(cluster: Any) -> None:
    claim(cluster, "odd", resources={"requests": {"storage": "many"}})
    volume(cluster, "bad", size="much")
    volume(cluster, "good")
    claim(cluster)
    VolumeController(cluster).sync()
    assert volume_of(cluster) == "good"


def marks(cluster: Any, kind: str, name: str) -> set[str]:
    found = cluster.get(kind, "default" if kind == CLAIM else "", name)
    return {each.partition("/")[2] for each in found["metadata"].get("annotations") or {}}


def test_who_bound_the_two_is_marked_where_it_was_not_asked_for(cluster: Any) -> None:
    volume(cluster, "v", size="2Gi")
    volume(cluster, "w", size="9Gi")
    claim(cluster, "any")
    claim(cluster, "named", volumeName="w")
    VolumeController(cluster).sync()
    assert (volume_of(cluster, "any"), volume_of(cluster, "named")) == ("v", "w")
    assert marks(cluster, CLAIM, "any") == {"bind-completed", "bound-by-controller"}
    assert marks(cluster, CLAIM, "named") == {"bind-completed"}
    assert marks(cluster, VOLUME, "v") == marks(cluster, VOLUME, "w") == {"bound-by-controller"}
    reference = cluster.get(VOLUME, "", "v")["spec"]["claimRef"]
    uid = cluster.get(CLAIM, "default", "any")["metadata"]["uid"]
    assert reference == {
        "apiVersion": "v1", "kind": CLAIM, "namespace": "default", "name": "any", "uid": uid,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("of_volume", "of_claim", "suits"),
    [
        ({}, {}, True),
        ({"size": "1Gi"}, {}, False),
        ({"accessModes": ["ReadOnlyMany"]}, {}, False),
        ({"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}, {}, True),
        ({"storageClassName": "local"}, {}, False),
        ({"volumeMode": "Block"}, {}, False),
        ({"volumeMode": "Block"}, {"volumeMode": "Block"}, True),
        ({"claimRef": {"namespace": "default", "name": "other"}}, {}, False),
        ({"claimRef": {"namespace": "default", "name": "c"}}, {}, True),
        ({"claimRef": {"namespace": "default", "name": "c", "uid": "other"}}, {}, False),
        ({}, {"selector": {"matchLabels": {"a": "b"}}}, False),
        ({"labels": {"a": "b"}}, {"selector": {"matchLabels": {"a": "b"}}}, True),
        ({}, {"selector": {}}, True),
        ({}, {"volumeName": "v"}, True),
        ({}, {"volumeName": "w"}, False),
    ],
)
def test_which_volume_suits_a_claim(
    cluster: Any, of_volume: Any, of_claim: Any, suits: bool
) -> None:
    volume(cluster, "v", **of_volume)
    claim(cluster, **of_claim)
    VolumeController(cluster).sync()
    found = cluster.get(CLAIM, "default", "c")
    assert (found["status"]["phase"] == "Bound") == suits


def test_a_class_that_waits_takes_a_volume_that_the_claim_names(cluster: Any) -> None:
    volume(cluster, "v", storageClassName="local")
    claim(cluster, storageClassName="local", volumeName="v")
    VolumeController(cluster).sync()
    assert volume_of(cluster) == "v"


@pytest.mark.parametrize("of", ["claim", "volume"])
def test_what_is_leaving_is_not_bound(cluster: Any, of: str) -> None:
    volume(cluster, "v")
    claim(cluster)
    kind, namespace, name = (CLAIM, "default", "c") if of == "claim" else (VOLUME, "", "v")
    cluster.patch(kind, namespace, name, {"metadata": {"finalizers": ["x/y"]}})
    cluster.delete(kind, namespace, name)
    VolumeController(cluster).sync()
    assert cluster.get(CLAIM, "default", "c")["status"]["phase"] == "Pending"


def test_a_provisioned_volume_is_as_the_claim_wants_it(cluster: Any) -> None:
    made = claim(cluster, storageClassName="now", volumeMode="Block")
    claim(cluster, "bare", storageClassName="now", accessModes=None, resources=None)
    VolumeController(cluster).sync()
    found = cluster.get(VOLUME, "", volume_of(cluster))
    assert found["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "disk.test"
    reference = {"namespace": "default", "name": "c", "uid": made["metadata"]["uid"]}
    assert found["spec"] == {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": "Block",
        "storageClassName": "now",
        "persistentVolumeReclaimPolicy": "Delete",
        "claimRef": {"apiVersion": "v1", "kind": CLAIM, **reference},
    }
    bare = cluster.get(VOLUME, "", volume_of(cluster, "bare"))["spec"]
    assert (bare["capacity"], bare["accessModes"], bare["volumeMode"]) == ({}, [], "Filesystem")
