"""The list of all jobs that wait: none is left out, and each has its code, number and place."""

import json
from typing import Any

from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.sources import load_world
from pumice.diagnosis.waiting_jobs import waiting_jobs
from pumice.examine.findings import ObjectRef
from pumice.testing import node, pod, pod_group, queue

WORLD = [queue("default"), node("n1", cpu=4)]


def listed(world: Any) -> dict[str, Any]:
    return {each.job: each for each in waiting_jobs(world)}


def test_jobs_wait_in_the_order_in_which_they_are_considered(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        *job("second", cpu=7, created="2026-01-15T09:00:00Z"),
        *job("first", cpu=6, created="2026-01-15T08:00:00Z"),
        *job("fits", cpu=1, created="2026-01-15T09:30:00Z"),
    ]
    found = waiting_jobs(world(objects))
    assert [each.job for each in found] == ["default/first", "default/second"]
    assert [(each.position.place, each.position.of) for each in found if each.position] == [
        (1, 3),
        (2, 3),
    ]
    assert [each.cause.code for each in found] == ["InsufficientResource"] * 2
    assert [each.cause.numbers["request"] for each in found] == [6.0, 7.0]


def test_every_waiting_job_is_listed_whatever_the_reason(world: Any, job: Any) -> None:
    objects = [
        *WORLD,
        *job("lost", cpu=1, queue="nowhere"),
        *job("gated", cpu=1, spec={"schedulingGates": [{"name": "example.com/hold"}]}),
        *job("elsewhere", cpu=1, spec={"schedulerName": "other"}),
        pod_group("empty", phase="Inqueue"),
        pod_group("unmade", min_resources={"cpu": 40}),
        pod_group("few", min_member=3),
        pod("few-0", group="few", cpu=1),
        *job("large", cpu=6),
        *job("runs", cpu=1, nodes=["n1"]),
    ]
    found = listed(world(objects, "gang overcommit predicates"))
    assert {key.partition("/")[2]: each.cause.code.value for key, each in found.items()} == {
        "lost": "QueueMissing",
        "gated": "Gated",
        "elsewhere": "OtherScheduler",
        "empty": "NoPods",
        "unmade": "NotAdmitted",
        "few": "TooFewPods",
        "large": "InsufficientResource",
    }
    assert found["default/lost"].cause.about == ObjectRef("Queue", "nowhere")
    assert found["default/few"].cause.numbers == {"pods": 1, "minMember": 3}


def test_a_suspended_volcano_job_is_listed() -> None:
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default", "uid": "u"},
        "spec": {
            "minAvailable": 3,
            "queue": "research",
            "schedulerName": "volcano",
            "tasks": [
                {
                    "name": "w",
                    "replicas": 3,
                    "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
                }
            ],
        },
        "status": {"state": {"phase": "Aborted"}},
    }
    objects = (*WORLD, queue("research"), job)
    text = "\n---\n".join(json.dumps(one) for one in objects) + "\n"
    (only,) = waiting_jobs(load_world([text]))
    assert (only.name, only.cause.code, only.position) == ("default/train", "Suspended", None)
    assert only.queue == "research"
    found = explain_job(load_world([text]), "train")
    assert (found.queue, found.phase, found.min_member) == ("research", "Aborted", 3)
