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


@pytest.mark.parametrize("text", ["-1", "many", "", "99999999999"])
def test_an_unusable_size_is_one(text: str) -> None:
    view = settle(owner(annotations={MIN_MEMBER: text}), pod(owners=[reference()]))
    assert group(view)["spec"]["minMember"] == 1


def test_a_group_of_nobody_asks_for_nothing() -> None:
    view = settle(owner(annotations={MIN_MEMBER: "0"}), pod(owners=[reference()]))
    assert (group(view)["spec"]["minMember"], group(view)["spec"]["minResources"]) == (0, {})


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
