"""How objects go: grace, finalizers, owners, namespaces."""

from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import NamespaceTerminatingError, NotFoundError, RejectedError
from pumice.testing import pod


@pytest.fixture
def cluster() -> Any:
    return EmbeddedCluster(VirtualClock(0.0))


def config(name: Any, *owners: Any, finalizers: Any = ()) -> Any:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": o["metadata"]["name"]}
        | {"uid": o["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
        for o in owners
    ]
    metadata = {"name": name, "ownerReferences": references, "finalizers": list(finalizers)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def names(cluster: Any, kind: str = "ConfigMap") -> Any:
    return [m["metadata"]["name"] for m in cluster.list(kind)[0]]


def running(cluster: Any, name: str = "p") -> None:
    cluster.create(pod(name))
    cluster.bind("default", name, "n", {})
    cluster.merge_status("Pod", "default", name, {"phase": "Running"})


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", ""])
def test_a_pod_that_is_over_or_on_no_node_goes_at_once(cluster: Any, phase: str) -> None:
    if phase:
        running(cluster)
        cluster.merge_status("Pod", "default", "p", {"phase": phase})
    else:
        cluster.create(pod("p"))
    cluster.delete("Pod", "default", "p")
    assert names(cluster, "Pod") == []


def test_a_running_pod_is_marked_and_goes_when_confirmed(cluster: Any) -> None:
    running(cluster)
    cluster.delete("Pod", "default", "p")
    marked = cluster.get("Pod", "default", "p")["metadata"]
    assert marked["deletionTimestamp"] == "1970-01-01T00:00:30Z"
    assert marked["deletionGracePeriodSeconds"] == 30
    cluster.merge_status("Pod", "default", "p", {"reason": "still here"})
    assert names(cluster, "Pod") == ["p"]
    cluster.delete("Pod", "default", "p", grace_s=0)
    assert names(cluster, "Pod") == []


def test_a_second_deletion_may_only_shorten_the_grace(cluster: Any) -> None:
    running(cluster)
    cluster.delete("Pod", "default", "p", grace_s=10)
    before = cluster.version
    cluster.delete("Pod", "default", "p", grace_s=20)
    assert cluster.version == before
    for grace_s in (5, 1):
        cluster.delete("Pod", "default", "p", grace_s=grace_s)
        left = cluster.get("Pod", "default", "p")["metadata"]["deletionGracePeriodSeconds"]
        assert left == grace_s


def test_finalizers_keep_an_object_until_the_last_is_crossed_out(cluster: Any) -> None:
    cluster.create(config("a", finalizers=["x/y"]))
    cluster.delete("ConfigMap", "default", "a")
    kept = cluster.get("ConfigMap", "default", "a")
    assert kept["metadata"]["deletionTimestamp"]
    kept["metadata"]["finalizers"] = []
    cluster.update(kept)
    assert names(cluster) == []


def test_orphaned_objects_stay_and_name_only_their_other_owners(cluster: Any) -> None:
    one, two = (cluster.create(config(name)) for name in ("one", "two"))
    for name, owners in (("own", [one]), ("shared", [one, two])):
        cluster.create(config(name, *owners))
    cluster.delete("ConfigMap", "default", "one", propagation="Orphan")
    assert names(cluster) == ["own", "shared", "two"]
    assert "ownerReferences" not in cluster.get("ConfigMap", "default", "own")["metadata"]
    (left,) = cluster.get("ConfigMap", "default", "shared")["metadata"]["ownerReferences"]
    assert left["uid"] == two["metadata"]["uid"]
    cluster.delete("ConfigMap", "default", "two", propagation="Foreground")
    assert names(cluster) == ["own"]  # an owner of nothing that blocks it goes at once


def test_in_the_foreground_an_owner_waits_for_what_it_owns(cluster: Any) -> None:
    owner = cluster.create(config("owner"))
    child = pod("p")
    child["metadata"]["ownerReferences"] = config("", owner)["metadata"]["ownerReferences"]
    cluster.create(child)
    cluster.bind("default", "p", "n", {})
    cluster.delete("ConfigMap", "default", "owner", propagation="Foreground")
    waiting = cluster.get("ConfigMap", "default", "owner")["metadata"]
    assert waiting["finalizers"] == ["foregroundDeletion"]
    assert cluster.get("Pod", "default", "p")["metadata"]["deletionTimestamp"]
    cluster.delete("Pod", "default", "p", grace_s=0)
    assert names(cluster) == []


def test_an_owner_does_not_wait_for_what_does_not_block_it(cluster: Any) -> None:
    owner = cluster.create(config("owner"))
    child = config("child", owner, finalizers=["x/y"])
    del child["metadata"]["ownerReferences"][0]["blockOwnerDeletion"]
    cluster.create(child)
    cluster.delete("ConfigMap", "default", "owner", propagation="Foreground")
    assert names(cluster) == ["child"]
    assert cluster.get("ConfigMap", "default", "child")["metadata"]["deletionTimestamp"]


def test_an_object_made_for_an_owner_that_is_gone_is_collected(cluster: Any) -> None:
    owner = cluster.create(config("owner"))
    cluster.delete("ConfigMap", "default", "owner")
    cluster.create(config("late", owner))
    assert names(cluster) == ["late"]
    assert cluster.collect_garbage() == 1
    assert names(cluster) == []
    cluster.create(config("late", owner))
    cluster.delete("ConfigMap", "default", "late")
    assert cluster.collect_garbage() == 0


def test_an_owner_of_a_kind_that_is_not_served_proves_nothing(cluster: Any) -> None:
    manifest = config("a")
    unknown = {"apiVersion": "x.example.com/v1", "kind": "Strange", "name": "s", "uid": "u"}
    manifest["metadata"]["ownerReferences"] = [unknown]
    cluster.create(manifest)
    assert cluster.collect_garbage() == 0
    assert names(cluster) == ["a"]


def test_a_namespace_goes_with_and_after_everything_in_it(cluster: Any) -> None:
    cluster.create(pod("p", namespace="ns"))
    cluster.create(pod("q", namespace="ns"))
    cluster.bind("ns", "q", "n", {})
    cluster.delete("Namespace", "", "ns")
    assert cluster.get("Namespace", "", "ns")["status"]["phase"] == "Terminating"
    assert names(cluster, "Pod") == ["q"]
    with pytest.raises(NamespaceTerminatingError) as caught:
        cluster.create(pod("r", namespace="ns"))
    assert caught.value.problem == (
        'pods "r" is forbidden: unable to create new content in namespace ns '
        "because it is being terminated"
    )
    cluster.delete("Pod", "ns", "q", grace_s=0)
    with pytest.raises(NotFoundError):
        cluster.get("Namespace", "", "ns")


@pytest.mark.parametrize("key", ["apiVersion", "kind", "name", "uid"])
def test_a_reference_to_an_owner_that_says_too_little_is_refused(cluster: Any, key: str) -> None:
    child = config("child", cluster.create(config("owner")))
    del child["metadata"]["ownerReferences"][0][key]
    with pytest.raises(RejectedError, match=f"expected {key}"):
        cluster.create(child)
    assert names(cluster) == ["owner"]


@pytest.mark.parametrize(
    ("stated", "asked", "grace"),
    [
        (None, None, 30),
        (5, None, 5),
        (5, 7, 7),
        (5, 1, 1),
        (0, None, None),
        (5, 0, None),
        (None, -3, None),
        (None, 1 << 40, 1 << 31),
    ],
)
def test_the_grace_of_a_pod_that_may_run(
    cluster: Any, stated: int | None, asked: int | None, grace: int | None
) -> None:
    spec = {} if stated is None else {"terminationGracePeriodSeconds": stated}
    cluster.create(pod("p", spec=spec))
    cluster.bind("default", "p", "n", {})
    cluster.delete("Pod", "default", "p", grace_s=asked)
    found = cluster.peek("Pod", "default", "p")
    assert (found and found["metadata"]["deletionGracePeriodSeconds"]) == grace


def test_an_owner_that_waits_for_others_keeps_its_own_finalizers(cluster: Any) -> None:
    owner = cluster.create(config("owner", finalizers=["x/y"]))
    cluster.create(config("child", owner, finalizers=["x/z"]))
    for _ in range(2):
        cluster.delete("ConfigMap", "default", "owner", propagation="Foreground")
        waiting = cluster.get("ConfigMap", "default", "owner")["metadata"]
        assert waiting["finalizers"] == ["x/y", "foregroundDeletion"]
    cluster.patch("ConfigMap", "default", "child", {"metadata": {"finalizers": None}})
    assert names(cluster) == ["owner"]
    assert cluster.get("ConfigMap", "default", "owner")["metadata"]["finalizers"] == ["x/y"]
    cluster.patch("ConfigMap", "default", "owner", {"metadata": {"finalizers": None}})
    assert names(cluster) == []


def test_a_dependent_of_two_owners_goes_with_the_last(cluster: Any) -> None:
    owners = [cluster.create(config(name)) for name in "abc"]
    cluster.create(config("child", *owners))
    version = None
    for name, left in (("a", 2), ("b", 1)):
        cluster.delete("ConfigMap", "default", name)
        child = cluster.get("ConfigMap", "default", "child")["metadata"]
        assert len(child["ownerReferences"]) == left
        assert child["resourceVersion"] != version
        version = child["resourceVersion"]
    cluster.delete("ConfigMap", "default", "c")
    assert names(cluster) == []
