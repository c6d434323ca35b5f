"""The Cluster protocol, the same for the embedded cluster and for a client of its server."""

from collections.abc import Iterator
from typing import Any

import pytest

from pumice.apiserver.rest import RestApi
from pumice.apiserver.server import ApiServer
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.connection import Connection
from pumice.errors import AlreadyExistsError, ConflictError, GoneError, NotFoundError, RejectedError
from pumice.testing import pod, queue

QUEUE = "Queue.scheduling.volcano.sh"
P = ("Pod", "default", "p")


@pytest.fixture
def store() -> EmbeddedCluster:
    return EmbeddedCluster(VirtualClock(0.0))


@pytest.fixture(params=["embedded", "kube"])
def cluster(request: pytest.FixtureRequest, store: EmbeddedCluster) -> Iterator[Any]:
    if request.param == "embedded":
        yield store
        return
    server = ApiServer(RestApi(store))
    server.start()
    try:
        with KubeCluster(Connection(server.url), qps=0, attempts=1) as client:
            yield client
    finally:
        server.stop()


def config(name: str = "a", namespace: str = "default", **data: Any) -> Any:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_a_new_object_gets_identity_and_lives_in_a_namespace(cluster: Any) -> None:
    metadata = cluster.create(config())["metadata"]
    assert (metadata["namespace"], metadata["generation"]) == ("default", 1)
    assert metadata["creationTimestamp"] == "1970-01-01T00:00:00Z"
    assert metadata["uid"]
    assert int(metadata["resourceVersion"]) > 0


def test_a_name_is_taken_until_its_object_goes(cluster: Any) -> None:
    first = cluster.create(config())
    with pytest.raises(AlreadyExistsError):
        cluster.create(config())
    cluster.delete("ConfigMap", "default", "a")
    assert cluster.create(config())["metadata"]["uid"] != first["metadata"]["uid"]


def test_a_write_from_an_older_version_is_a_conflict_and_one_without_a_version_is_not(
    cluster: Any,
) -> None:
    old = cluster.create(config(k="1"))
    cluster.update({**old, "data": {"k": "2"}})
    with pytest.raises(ConflictError, match="resourceVersion"):
        cluster.update({**old, "data": {"k": "3"}})
    assert cluster.update(config(k="4"))["data"] == {"k": "4"}
    version = old["metadata"]["resourceVersion"]
    with pytest.raises(ConflictError):
        cluster.patch("ConfigMap", "default", "a", {"metadata": {"resourceVersion": version}})


def test_a_write_to_another_object_of_the_same_name_is_a_conflict(cluster: Any) -> None:
    first = cluster.create(config())
    cluster.delete("ConfigMap", "default", "a")
    cluster.create(config())
    del first["metadata"]["resourceVersion"]
    with pytest.raises(ConflictError, match="uid"):
        cluster.update(first)
    with pytest.raises(ConflictError, match="uid"):
        cluster.delete("ConfigMap", "default", "a", uid=first["metadata"]["uid"])


def test_a_write_that_changes_nothing_is_no_change(cluster: Any) -> None:
    made = cluster.create(config(k="1"))
    assert cluster.update(made) == made
    assert cluster.patch("ConfigMap", "default", "a", {"data": {"k": "1"}}) == made


def test_generation_counts_changes_of_the_specification_only(cluster: Any) -> None:
    made = cluster.create(queue("q"))
    labelled = cluster.patch(QUEUE, "", "q", {"metadata": {"labels": {"a": "b"}}})
    stated = cluster.patch(QUEUE, "", "q", {"status": {"state": "Open"}}, subresource="status")
    changed = cluster.patch(QUEUE, "", "q", {"spec": {"weight": 5}})
    generations = [m["metadata"]["generation"] for m in (made, labelled, stated, changed)]
    assert generations == [1, 1, 1, 2]


def test_status_is_written_apart_where_it_is_a_subresource(cluster: Any) -> None:
    made = cluster.create(queue("q", state="Open"))
    assert "status" not in made
    made["status"] = {"state": "Closed"}
    made["spec"]["weight"] = 7
    assert "status" not in cluster.update(made)
    written = cluster.update_status(
        {**queue("q"), "metadata": {"name": "q"}, "spec": {"weight": 9}}
    )
    assert (written["status"], written["spec"]["weight"]) == ({"state": "Open"}, 7)


@pytest.mark.parametrize(
    ("patch_type", "patch"),
    [
        ("merge", {"metadata": {"labels": {"a": None, "b": "2"}}}),
        ("strategic", {"metadata": {"labels": {"a": None, "b": "2"}}}),
        ("apply", {**pod("p"), "metadata": {"name": "p", "labels": {"a": None, "b": "2"}}}),
        (
            "json",
            [
                {"op": "remove", "path": "/metadata/labels/a"},
                {"op": "add", "path": "/metadata/labels/b", "value": "2"},
            ],
        ),
    ],
)
def test_objects_are_changed_by_every_kind_of_patch(
    cluster: Any, patch_type: str, patch: Any
) -> None:
    cluster.create(pod("p", labels={"a": "1"}))
    assert cluster.patch(*P, patch, patch_type=patch_type)["metadata"]["labels"] == {"b": "2"}


def test_an_apply_creates_what_is_not_there_and_merges_into_what_is(cluster: Any) -> None:
    first = cluster.patch(*P, pod("p", labels={"a": "1"}), patch_type="apply")
    applied = {**pod("p"), "metadata": {"name": "p", "labels": {"b": "2"}}}
    again = cluster.patch(*P, applied, patch_type="apply")
    assert again["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert again["metadata"]["uid"] == first["metadata"]["uid"]


def test_a_patch_must_leave_an_object_and_an_existing_part(cluster: Any) -> None:
    cluster.create(pod("p"))
    with pytest.raises(RejectedError):
        cluster.patch(*P, [{"op": "replace", "path": "", "value": 1}], patch_type="json")
    with pytest.raises(NotFoundError):
        cluster.patch(*P, {}, subresource="odd")


def test_lists_are_in_order_and_can_be_narrowed(cluster: Any) -> None:
    for namespace, name, labels in [("b", "x", {"k": "1"}), ("a", "z", {}), ("a", "y", {"k": "1"})]:
        if namespace not in {one["metadata"]["name"] for one in cluster.list("Namespace")[0]}:
            cluster.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            )
        made = cluster.create(pod(name, namespace=namespace, labels=labels))

    def names(*args: Any, **kwargs: Any) -> Any:
        items, version = cluster.list("Pod", *args, **kwargs)
        assert version == made["metadata"]["resourceVersion"]
        return [f"{m['metadata']['namespace']}/{m['metadata']['name']}" for m in items]

    assert names() == ["a/y", "a/z", "b/x"]
    assert names("a") == ["a/y", "a/z"]
    assert names(labels={"k": "1"}) == ["a/y", "b/x"]
    assert names("nowhere") == []


def test_what_is_not_there_is_not_found(cluster: Any) -> None:
    asked: list[Any] = [
        lambda: cluster.get(*P),
        lambda: cluster.update(pod("p")),
        lambda: cluster.delete(*P),
        lambda: cluster.patch(*P, {}),
        lambda: cluster.bind("default", "p", "n", {}),
        lambda: cluster.evict("default", "p", ""),
    ]
    for ask in asked:
        with pytest.raises(NotFoundError):
            ask()


def test_a_watch_reports_what_happened_since(cluster: Any, store: EmbeddedCluster) -> None:
    _, since = cluster.list("ConfigMap")
    made = cluster.create(config("a"))
    cluster.update({**made, "data": {"k": "v"}})
    store.create(config("b", "other"))
    cluster.delete("ConfigMap", "default", "a")
    steps = [e for e in cluster.watch("ConfigMap", "", since) if e.type != "BOOKMARK"]
    reported = [(e.type, e.object["metadata"]["name"]) for e in steps]
    assert reported == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    store.compact()
    with pytest.raises(GoneError):
        list(cluster.watch("ConfigMap", since=since))


def test_a_bind_writes_node_annotations_and_condition_once(
    cluster: Any, store: EmbeddedCluster
) -> None:
    cluster.create(pod("p", annotations={"a": "1"}))
    store.merge_status(*P, {"nominatedNodeName": "m"})
    cluster.bind("default", "p", "n", {"b": "2"})
    bound = cluster.get(*P)
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["generation"] == 2
    assert bound["metadata"]["annotations"] == {"a": "1", "b": "2"}
    assert "nominatedNodeName" not in bound["status"]
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    with pytest.raises(ConflictError, match="already assigned to node n"):
        cluster.bind("default", "p", "m", {})
    assert cluster.get(*P) == bound


def test_only_the_very_pod_that_stays_is_bound(cluster: Any) -> None:
    cluster.create(pod("p"))
    with pytest.raises(ConflictError):
        cluster.bind("default", "p", "n", {}, uid="another")
    cluster.patch(*P, {"metadata": {"finalizers": ["x/y"]}})
    cluster.delete(*P)
    with pytest.raises(ConflictError, match="being deleted"):
        cluster.bind("default", "p", "n", {})


def test_an_evicted_pod_states_why_and_gets_its_grace(cluster: Any) -> None:
    uid = cluster.create(pod("p"))["metadata"]["uid"]
    cluster.bind("default", "p", "n", {})
    with pytest.raises(ConflictError):
        cluster.evict("default", "p", "room is wanted", uid="another")
    cluster.evict("default", "p", "room is wanted", uid=uid)
    evicted = cluster.get(*P)
    (target,) = [c for c in evicted["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["status"], target["message"]) == ("True", "room is wanted")
    assert evicted["metadata"]["deletionGracePeriodSeconds"] == 30


def test_an_event_names_its_object_and_its_source(cluster: Any) -> None:
    about = cluster.create(pod("p"))
    for reason in ("Failed", "Other"):
        cluster.record(about, "Warning", reason, "m", "volcano")
    events = cluster.list("Event")[0]
    assert {event["reason"]: event["count"] for event in events} == {"Failed": 1, "Other": 1}
    assert events[0]["involvedObject"]["uid"] == about["metadata"]["uid"]
    assert events[0]["source"] == {"component": "volcano"}
