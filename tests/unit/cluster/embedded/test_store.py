"""The embedded store: versions, copies, defaults, subresources, preconditions."""

from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ForbiddenError, NotFoundError, RejectedError
from pumice.testing import pod, pod_group, priority_class, queue
from tests.present import present

QUEUE = "Queue.scheduling.volcano.sh"


def config(name: str = "a", **data: Any) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_the_same_seed_gives_the_same_uids_and_another_seed_others() -> None:
    uids = [EmbeddedCluster(seed=s).create(config())["metadata"]["uid"] for s in (1, 1, 2)]
    assert uids[0] == uids[1] != uids[2]


@pytest.mark.parametrize(
    "manifest",
    [
        {"kind": "Pod", "metadata": {"name": "p"}},
        {"apiVersion": "v1", "metadata": {"name": "p"}},
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {}},
    ],
)
def test_an_object_without_kind_or_name_is_refused(manifest: Any) -> None:
    with pytest.raises(RejectedError):
        EmbeddedCluster().create(manifest)


def test_what_the_caller_does_to_given_or_returned_objects_does_not_reach_the_store() -> None:
    cluster = EmbeddedCluster()
    given = config(k="v")
    made = cluster.create(given)
    given["data"]["k"] = made["data"]["k"] = "changed"
    cluster.get("ConfigMap", "default", "a")["data"]["k"] = "changed"
    assert cluster.get("ConfigMap", "default", "a")["data"] == {"k": "v"}


def test_a_pod_group_has_no_status_of_its_own() -> None:
    cluster = EmbeddedCluster()
    made = cluster.create(pod_group("g", phase="Pending"))
    assert made["status"] == {"phase": "Pending"}
    with pytest.raises(NotFoundError, match="status"):
        cluster.update_status(made)
    made["status"] = {"phase": "Running"}
    assert cluster.update(made)["status"] == {"phase": "Running"}


def test_a_server_keeps_what_only_it_may_write() -> None:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    made = cluster.create(config())
    forged = {"name": "a", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 99}
    after = cluster.update({**config(k="v"), "metadata": forged})["metadata"]
    assert after["creationTimestamp"] == made["metadata"]["creationTimestamp"]
    assert (after["uid"], after["generation"]) == (made["metadata"]["uid"], 2)


def test_a_pod_gets_the_priority_of_its_class_or_of_the_default_one() -> None:
    cluster = EmbeddedCluster()
    assert cluster.create(pod("none"))["spec"]["priority"] == 0
    cluster.create(priority_class("high", value=100))
    for name, value in (("later", 7), ("usual", 5)):  # of several defaults the lowest counts
        cluster.create(priority_class(name, value=value, global_default=True))
    assert cluster.create(pod("p", priority_class="high"))["spec"]["priority"] == 100
    assert cluster.create(pod("q"))["spec"]["priorityClassName"] == "usual"
    critical = cluster.create(pod("r", priority_class="system-node-critical"))
    assert critical["spec"]["priority"] == 2_000_001_000


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priority": 5}, r"priority \(5\) must not be provided .* computed 0"),
        ({"priority": 0, "priorityClassName": "high"}, r"priority \(0\) .* computed 100"),
        ({"preemptionPolicy": "Never"}, r"PreemptionPolicy \(Never\) .* PreemptLowerPriority"),
        ({"priorityClassName": "low"}, "no PriorityClass with name low was found"),
    ],
)
def test_a_pod_does_not_choose_its_priority(spec: Any, words: str) -> None:
    cluster = EmbeddedCluster()
    cluster.create(priority_class("high", value=100))
    chosen = pod("p")
    chosen["spec"].update(spec)
    with pytest.raises(ForbiddenError, match=f'pods "p" is forbidden: .*{words}') as refused:
        cluster.create(chosen)
    assert refused.value.code == 403


def test_a_pod_may_repeat_the_priority_that_is_computed() -> None:
    cluster = EmbeddedCluster()
    cluster.create(priority_class("high", value=100))
    made = cluster.create(pod("p", priority=100, priority_class="high"))
    assert made["spec"]["preemptionPolicy"] == "PreemptLowerPriority"


@pytest.mark.parametrize(
    "spec",
    [
        {"priority": 5},
        {"priorityClassName": "system-node-critical"},
        {"preemptionPolicy": "Never"},
        {"nodeName": "elsewhere"},
        {"schedulerName": "other"},
        {"nodeSelector": {"a": "b"}},
        {"schedulingGates": [{"name": "x"}]},
        {"containers": []},
        {"containers": [{"name": "other"}]},
    ],
)
def test_most_of_a_pod_never_changes(spec: Any) -> None:
    cluster = EmbeddedCluster()
    before = cluster.create(pod("p", cpu=1))
    with pytest.raises(RejectedError, match="pod updates may not change") as refused:
        cluster.patch("Pod", "default", "p", {"spec": spec})
    assert refused.value.code == 422
    with pytest.raises(RejectedError, match="pod updates may not change"):
        cluster.update({**before, "spec": {**before["spec"], **spec}})
    assert cluster.get("Pod", "default", "p") == before


def test_some_of_a_pod_changes_and_what_is_left_out_stays() -> None:
    cluster = EmbeddedCluster()
    first = pod("p", cpu=1)
    first["spec"]["schedulingGates"] = [{"name": "a"}, {"name": "b"}]
    made = cluster.create(first)
    spec = {
        "schedulingGates": [{"name": "b"}],
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{**made["spec"]["containers"][0], "image": "other"}],
    }
    after = cluster.update({**made, "spec": spec})["spec"]
    assert after == {**made["spec"], **spec}
    cluster.patch("Pod", "default", "p", {"spec": {"schedulingGates": None}})
    assert "schedulingGates" not in cluster.get("Pod", "default", "p")["spec"]


def test_a_kind_nobody_heard_of_is_served_from_its_first_object() -> None:
    cluster = EmbeddedCluster()
    thing = {"apiVersion": "example.com/v1", "kind": "Policy", "metadata": {"name": "a"}}
    cluster.create({**thing, "metadata": {"name": "a", "namespace": "ns"}})
    assert present(cluster.kinds.by_plural("example.com", "policies")).namespaced
    assert len(cluster.list("Policy.example.com")[0]) == 1


def test_admission_may_change_or_refuse_a_write() -> None:
    def admit(operation: Any, new: Any, old: Any) -> Any:
        if operation == "DELETE":
            raise RejectedError(new["kind"], problem="stays")
        return {**new, "data": {"by": operation, "before": str(old is not None)}}

    cluster = EmbeddedCluster(admission=None)
    cluster.admission = admit
    assert cluster.create(config())["data"] == {"by": "CREATE", "before": "False"}
    assert cluster.update(config(k="v"))["data"] == {"by": "UPDATE", "before": "True"}
    with pytest.raises(RejectedError, match="stays"):
        cluster.delete("ConfigMap", "default", "a")


def test_restored_objects_keep_status_and_identity() -> None:
    cluster = EmbeddedCluster()
    cluster.restore([pod("p", node="n", created="2020-01-01T00:00:00Z"), queue("q")])
    found = cluster.get("Pod", "default", "p")
    assert (found["spec"]["nodeName"], found["status"]["phase"]) == ("n", "Running")
    assert found["metadata"]["uid"] == "default-p"
    assert found["metadata"]["creationTimestamp"] == "2020-01-01T00:00:00Z"
    cluster.restore([queue("q", weight=5)])
    assert cluster.get(QUEUE, "", "q")["spec"]["weight"] == 5


@pytest.mark.parametrize("metadata", [None, "odd", ["a"], 7])
def test_objects_without_metadata_are_not_restored(metadata: Any) -> None:
    cluster = EmbeddedCluster()
    with pytest.raises(RejectedError, match="metadata"):
        cluster.restore([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata}])


def test_a_status_of_a_claim_is_checked() -> None:
    cluster = EmbeddedCluster()
    kind, place = "ResourceClaim.resource.k8s.io", ("default", "c")
    metadata = {"name": "c", "namespace": "default"}
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}
    cluster.create({**made, "spec": {}})
    used = {"status": {"reservedFor": [{"uid": "u"}]}}
    with pytest.raises(RejectedError, match=r"status\.reservedFor: Forbidden"):
        cluster.patch(kind, *place, used, subresource="status")
    allocated = {"allocation": {"devices": {}}, "reservedFor": [{"uid": "u"}]}
    after = cluster.patch(kind, *place, {"status": allocated}, subresource="status")
    assert after["status"] == allocated
    cluster.update_status({**cluster.get(kind, *place), "status": None})
    assert "status" not in cluster.get(kind, *place)


def test_a_restored_object_takes_the_place_of_another() -> None:
    cluster = EmbeddedCluster()
    given = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "one"}}
    cluster.restore([given])
    since = str(cluster.version)
    cluster.restore([{**given, "metadata": {"name": "p", "uid": "two"}}])
    found = [(e.type, e.object["metadata"]["uid"]) for e in cluster.watch("Pod", since=since)]
    assert found == [("DELETED", "one"), ("ADDED", "two")]


def test_a_kind_that_is_not_served_is_named() -> None:
    with pytest.raises(NotFoundError, match="serves no such kind"):
        EmbeddedCluster().list("Strange")
