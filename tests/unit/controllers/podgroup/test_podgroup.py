"""PodGroup for plain pods: names, members, marks."""

from typing import Any

import pytest

from pumice.controllers.podgroup import PodGroupController
from tests.unit.controllers.fakes import FakeView

PODGROUP = "PodGroup.scheduling.volcano.sh"
GROUP_NAME = "scheduling.k8s.io/group-name"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
API = {"Job": "batch/v1"}


def pod(
    name: str = "p",
    *,
    owners: Any = (),
    scheduler: str = "volcano",
    annotations: Any = None,
    labels: Any = None,
    **spec: Any,
) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "ownerReferences": list(owners),
            "annotations": annotations or {},
            "labels": labels or {},
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "250m"}}}],
            **spec,
        },
    }


def owner(kind: str = "ReplicaSet", *, annotations: Any = None, **spec: Any) -> Any:
    return {
        "apiVersion": API.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": "o", "namespace": "ns", "annotations": annotations or {}},
        "spec": spec,
    }


def reference(kind: str = "ReplicaSet", *, controller: bool = True) -> Any:
    made_by = {"apiVersion": API.get(kind, "apps/v1"), "kind": kind, "name": "o"}
    return {**made_by, "uid": "uid-of-o", **({"controller": True} if controller else {})}


def settle(*manifests: Any, **flags: Any) -> Any:
    view = FakeView(*manifests)
    view.settle(PodGroupController(**flags), *view.objects.values())
    return view


def group(view: Any) -> Any:
    (found,) = view.list(PODGROUP)
    return found


def test_a_bare_pod_gets_a_group_of_its_own() -> None:
    view = settle(pod(priorityClassName="high"))
    made = group(view)
    assert made["metadata"]["name"] == "podgroup-uid-of-p"
    assert made["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": "uid-of-p",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert made["spec"] == {
        "minMember": 1,
        "minResources": {"pods": "1", "count/pods": "1", "cpu": "250m", "requests.cpu": "250m"},
        "queue": "default",
        "priorityClassName": "high",
    }
    assert made["status"] == {"phase": "Pending"}
    assert view.get("Pod", "ns", "p")["metadata"]["annotations"][GROUP_NAME] == "podgroup-uid-of-p"


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
def test_pods_of_one_owner_share_a_group_of_the_size_the_owner_says(kind: str) -> None:
    view = settle(
        owner(kind, annotations={MIN_MEMBER: "3"}),
        pod("a", owners=[reference(kind)]),
        pod("b", owners=[reference(kind)]),
    )
    made = group(view)
    assert made["metadata"]["name"] == "podgroup-uid-of-o"
    assert made["metadata"]["ownerReferences"] == [reference(kind)]
    assert made["spec"]["minMember"] == 3
    assert made["spec"]["minResources"]["cpu"] == "750m"


def test_an_owner_that_does_not_control_the_pod_still_says_the_size() -> None:
    view = settle(owner(annotations={MIN_MEMBER: "5"}), pod(owners=[reference(controller=False)]))
    made = group(view)
    assert (made["metadata"]["name"], made["spec"]["minMember"]) == ("podgroup-uid-of-p", 5)


@pytest.mark.parametrize("text", ["-1", "many", "", "99999999999"])
def test_an_unusable_size_is_one(text: str) -> None:
    view = settle(owner(annotations={MIN_MEMBER: text}), pod(owners=[reference()]))
    assert group(view)["spec"]["minMember"] == 1


def test_a_group_of_nobody_asks_for_nothing() -> None:
    view = settle(owner(annotations={MIN_MEMBER: "0"}), pod(owners=[reference()]))
    assert (group(view)["spec"]["minMember"], group(view)["spec"]["minResources"]) == (0, {})


def test_owner_annotations_of_volcano_reach_the_group_and_the_pod_s_own_win() -> None:
    inherited = {
        "volcano.sh/x": "o",
        "volcano.sh/preemptable": "false",
        "scheduling.volcano.sh/y": "o",
        "plain": "o",
    }
    view = settle(
        owner(annotations=inherited),
        pod(owners=[reference()], annotations={"volcano.sh/preemptable": "true", "plain": "p"}),
    )
    assert group(view)["metadata"]["annotations"] == {
        "volcano.sh/x": "o",
        "volcano.sh/preemptable": "true",
    }


def test_owner_annotations_can_be_left_aside() -> None:
    view = settle(
        owner(annotations={MIN_MEMBER: "2", "volcano.sh/x": "o"}),
        pod(owners=[reference()]),
        inherit_owner_annotations=False,
    )
    assert (group(view)["spec"]["minMember"], group(view)["metadata"]["annotations"]) == (1, {})


def test_only_some_marks_of_a_pod_reach_its_group() -> None:
    marks = {
        "volcano.sh/cooldown-time": "60s",
        "volcano.sh/revocable-zone": "*",
        "volcano.sh/jdb-min-available": "1",
        "volcano.sh/jdb-max-unavailable": "3",
        "volcano.sh/other": "x",
        "scheduling.volcano.sh/queue-name": "q",
    }
    made = group(settle(pod(annotations=marks, labels={"volcano.sh/preemptable": "no", "l": "m"})))
    assert made["metadata"]["labels"] == {"volcano.sh/preemptable": "no"}
    assert made["metadata"]["annotations"] == {
        "volcano.sh/cooldown-time": "60s",
        "volcano.sh/revocable-zone": "*",
        "volcano.sh/jdb-min-available": "1",
    }
    assert made["spec"]["queue"] == "q"


@pytest.mark.parametrize(
    ("mode", "tier", "topology"),
    [
        ("Soft", "2", {"mode": "soft", "highestTierAllowed": 2}),
        (None, "x", {"mode": "hard"}),
        ("weird", None, {"mode": "hard"}),
    ],
)
def test_network_topology_of_a_pod(mode: Any, tier: Any, topology: Any) -> None:
    marks = {"mode": mode, "highest-tier": tier}
    annotations = {f"volcano.sh/network-topology-{n}": t for n, t in marks.items() if t}
    assert group(settle(pod(annotations=annotations)))["spec"]["networkTopology"] == topology


@pytest.mark.parametrize(
    "plain", [pod(scheduler="default-scheduler"), pod(annotations={GROUP_NAME: "mine"})]
)
def test_pods_of_others_and_pods_with_a_group_are_left_alone(plain: Any) -> None:
    assert settle(plain).list(PODGROUP) == []


def test_the_scheduler_s_name_can_be_another() -> None:
    assert settle(pod(), scheduler_names=["batchy"]).list(PODGROUP) == []
    assert settle(pod(scheduler="batchy"), scheduler_names=["batchy"]).list(PODGROUP) != []


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_scaled_to_nothing_an_owner_loses_its_group(kind: str) -> None:
    view = settle(made_by := owner(kind, replicas=1), pod(owners=[reference(kind)]))
    assert view.list(PODGROUP) != []
    view.objects[f"{kind}.apps", "ns", "o"]["spec"]["replicas"] = 0
    view.settle(PodGroupController(), made_by)
    assert view.list(PODGROUP) == []


def test_a_replica_set_that_its_deployment_replaced_loses_its_group() -> None:
    """The group is named after the ReplicaSet, not after the Deployment that controls it."""
    made_by = owner(replicas=1)
    above = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "uid-of-d"}
    made_by["metadata"]["ownerReferences"] = [{**above, "controller": True}]
    view = settle(made_by, pod(owners=[reference()]))
    assert group(view)["metadata"]["name"] == "podgroup-uid-of-o"
    view.objects["ReplicaSet.apps", "ns", "o"]["spec"]["replicas"] = 0
    view.settle(PodGroupController(), made_by)
    assert view.list(PODGROUP) == []


@pytest.mark.parametrize(
    ("one", "is_up_to_date"),
    [
        (pod(), False),
        (pod(annotations={GROUP_NAME: "g"}), True),
        (pod(annotations={GROUP_NAME: ""}), False),
        (pod(scheduler="other"), True),
        ({**pod(), "spec": None}, False),
        ({**pod(), "metadata": {"name": "p", "namespace": "ns", "annotations": ["odd"]}}, False),
        ({**pod(scheduler="other"), "metadata": {"name": "p", "namespace": "ns"}}, True),
    ],
)
def test_a_pod_with_a_group_or_another_scheduler_is_left_alone(
    one: Any, is_up_to_date: bool
) -> None:
    controller = PodGroupController()
    assert controller.is_up_to_date("Pod", one) is is_up_to_date
    assert not controller.is_up_to_date("ReplicaSet.apps", one)
    if is_up_to_date:
        [key] = controller.concerns("Pod", one, FakeView(one))
        assert controller.reconcile(key, FakeView(one)).effects == []
