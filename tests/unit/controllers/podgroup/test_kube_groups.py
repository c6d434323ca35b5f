"""Kubernetes' own PodGroups: the group that follows one, and what it is told."""

from typing import Any

import pytest

from pumice.controllers.expected import with_followed
from pumice.controllers.podgroup import PodGroupController
from pumice.errors import ManifestError
from tests.unit.controllers.fakes import FakeView
from tests.unit.controllers.podgroup.test_podgroup import GROUP_NAME, PODGROUP, group, pod, settle

QUEUE = "scheduling.volcano.sh/queue-name"
RACK = "example.com/rack"
KUBE = "PodGroup.scheduling.k8s.io"


def gang(
    *, version: str = "v1beta1", policy: Any = None, annotations: Any = None, **spec: Any
) -> Any:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {
            "name": "train",
            "namespace": "ns",
            "generation": 2,
            "annotations": annotations or {},
        },
        "spec": {"schedulingPolicy": policy or {"gang": {"minCount": 3}}, **spec},
    }


def member(name: str = "p", **more: Any) -> Any:
    return pod(name, schedulingGroup={"podGroupName": "train"}, **more)


def tier(name: str = RACK) -> Any:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "rack-a"},
        "spec": {"tier": 1, "tierName": name},
    }


def test_pods_of_a_group_get_one_that_follows_it() -> None:
    """Whichever is there first; what the group states comes before what the pod states."""
    spec = {"priorityClassName": "high"}
    marks = {QUEUE: "research", "volcano.sh/preemptable": "true"}
    view = settle(
        member("p", annotations={QUEUE: "other"}, priorityClassName="low"),
        member("q"),
        gang(annotations=marks, **spec),
    )
    made = group(view)
    assert made["metadata"]["name"] == "podgroup-uid-of-train"
    owner = made["metadata"]["ownerReferences"][0]
    assert (owner["apiVersion"], owner["name"]) == ("scheduling.k8s.io/v1beta1", "train")
    assert made["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
    assert made["spec"] == {
        "minMember": 3,
        "minResources": {"cpu": "750m", "pods": "3", "count/pods": "3"}
        | made["spec"]["minResources"],
        "queue": "research",
        "priorityClassName": "high",
    }
    notes = [one["metadata"]["annotations"][GROUP_NAME] for one in view.list("Pod")]
    assert notes == ["podgroup-uid-of-train"] * 2


@pytest.mark.parametrize(
    ("objects", "number"),
    [
        ([member()], 0),
        ([member(scheduler="default-scheduler"), gang()], 0),
        ([gang()], 0),
        ([member(), gang(policy={"basic": {}})], 1),
    ],
)
def test_when_there_is_a_group(objects: Any, number: int) -> None:
    assert [one["spec"]["minMember"] for one in settle(*objects).list(PODGROUP)] == [1] * number


def told(status: Any, *, version: str = "v1beta1", before: Any = ()) -> Any:
    """Return the conditions of a group whose follower has a status."""
    known = {**gang(version=version), "status": {"conditions": [*before]}}
    view = settle(member(), known)
    follower = {**group(view), "status": status}
    view = FakeView(*view.list(KUBE), follower)
    view.settle(PodGroupController(), *view.objects.values())
    return view.list(KUBE)[0]["status"]["conditions"]


WAITS = {
    "phase": "Inqueue",
    "conditions": [{"type": "Unschedulable", "status": "True", "message": "no"}],
}


@pytest.mark.parametrize(
    ("version", "kind"),
    [("v1alpha2", "PodGroupScheduled"), ("v1beta1", "PodGroupInitiallyScheduled")],
)
def test_a_group_is_told_as_by_kube_scheduler(version: str, kind: str) -> None:
    assert told({"phase": "Pending"}, version=version) == []
    other = {"type": "DisruptionTarget", "status": "True"}
    *rest, waiting = told(WAITS, version=version, before=[other])
    assert rest == [other]
    reason = {"type": kind, "status": "False", "reason": "Unschedulable", "message": "no"}
    assert waiting.items() >= {**reason, "observedGeneration": 2}.items()
    (again,) = told({"phase": "Running"}, version=version, before=[waiting])
    assert (again["status"], again["reason"], again["message"]) == ("True", "Scheduled", "")
    assert told(WAITS, version=version, before=[again]) == [again]


def test_a_changed_min_count_is_followed() -> None:
    view = settle(member(), gang())
    changed = {**view.list(KUBE)[0], "spec": gang(policy={"gang": {"minCount": 2}})["spec"]}
    view = FakeView(changed, group(view))
    view.settle(PodGroupController(), *view.objects.values())
    assert group(view)["spec"]["minMember"] == 2


def test_a_domain_is_a_tier_of_hyper_nodes() -> None:
    asked = gang(schedulingConstraints={"topology": [{"key": RACK}]})
    view = settle(member(), asked, tier("other"))
    assert view.list(PODGROUP) == []
    message = view.list(KUBE)[0]["status"]["conditions"][0]["message"]
    assert message.startswith(f"no HyperNode has the tierName {RACK}")
    view = FakeView(*view.objects.values(), tier())
    view.settle(PodGroupController(), tier())
    assert group(view)["spec"]["networkTopology"] == {"mode": "hard", "highestTierName": RACK}
    with pytest.raises(ManifestError, match=f"a HyperNode with the tierName {RACK}"):
        with_followed([member(), asked])


def test_files_get_the_same_groups() -> None:
    """A pod that a controller has put in a group stays there."""
    done = member("q", annotations={GROUP_NAME: "made"})
    lone, kept, made = with_followed([member(), done, gang()])
    assert (
        lone["metadata"]["annotations"][GROUP_NAME] == made["metadata"]["name"] == "podgroup-train"
    )
    assert (kept, made["spec"]["minMember"]) == (done, 3)
