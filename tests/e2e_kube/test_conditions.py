"""Pods without a node on a real API server: what autoscalers and users see of them."""

from typing import Any

import pytest

from pumice.testing.builders import pod, pod_group
from tests.e2e_kube.space import job
from tests.e2e_kube.waiting import until

pytestmark = pytest.mark.usefixtures("controllers", "webhooks", "default_scheduler")


def waiting(space: Any) -> dict[str, tuple[str, str]]:
    """Return reason and message of the pods whose condition is that they have no node."""
    return {
        each["metadata"]["name"]: (one["reason"], one.get("message", ""))
        for each in space.pods()
        for one in each["status"].get("conditions") or ()
        if (one["type"], one["status"]) == ("PodScheduled", "False")
    }


def create(space: Any, group: str, cpus: list[int], least: int) -> None:
    made = [pod_group(group, min_member=least, namespace=space.namespace, phase=None)]
    for number, cpu in enumerate(cpus):
        name = f"{group}-{number}"
        made.append(pod(name, group=group, cpu=cpu, namespace=space.namespace))
    for each in made:
        each["metadata"].pop("uid", None)
    space.kubectl.create(*made)


def test_every_waiting_pod_shows_its_own_reason_once(space: Any) -> None:
    space.nodes(2, cpu=4)
    create(space, "elastic", [1, 5], least=1)
    short = "0/2 nodes are unavailable: 2 Insufficient cpu."
    until(
        "the pod beyond the minimum is seen",
        lambda: waiting(space),
        lambda found: found == {"elastic-1": ("Unschedulable", short)},
    )
    create(space, "gang", [1, 1, 5], least=3)
    until(
        "all pods of the gang are seen",
        lambda: waiting(space),
        lambda found: found.keys() == {"elastic-1", "gang-0", "gang-1", "gang-2"},
    )
    found = waiting(space)
    assert {reason for reason, _ in found.values()} <= {"Schedulable", "Unschedulable"}
    assert found["gang-2"] == ("Unschedulable", short)
    space.nodes(1, prefix="more", cpu=4)
    until(
        "the condition follows the nodes",
        lambda: waiting(space)["elastic-1"][1],
        lambda text: text == short.replace("2", "3"),
    )
    about = [
        each["message"]
        for each in space.events("FailedScheduling")
        if each["involvedObject"]["name"] == "elastic-1"
    ]
    assert sorted(about) == sorted({*about}), "each text is recorded once"
    assert short in about


def test_a_job_is_scaled_by_applying_its_file_again(space: Any) -> None:
    """The file leaves out what the webhook filled in."""
    space.nodes(1, cpu=4)
    space.kubectl.apply(job("train", replicas=1, min_available=1))
    space.wait_running("train", 1)
    space.kubectl.apply(job("train", replicas=2, min_available=1))
    space.wait_running("train", 2)
    (task,) = space.kubectl.get("vcjob/train")["spec"]["tasks"]
    assert task["maxRetry"] == 3
