"""Every remedy does what it says: the job starts by it, numbers move as named, costs are named."""

import json
from typing import Any

import pytest

from pumice.diagnosis.changes import Change
from pumice.diagnosis.explain import explain_job
from pumice.diagnosis.runner import played
from pumice.diagnosis.sources import load_world
from pumice.testing import (
    device,
    device_class,
    device_request,
    hyper_node,
    node,
    pod,
    pod_group,
    priority_class,
    queue,
    resource_claim,
    resource_slice,
)
from tests.staged.truth import wrong_moves

NODES = [node("n1", cpu=4), node("n2", cpu=4)]
PLAIN = [queue("default"), *NODES]


def conf(actions: str, *tiers: str, **arguments: Any) -> Any:
    plugins = [
        [{"name": name, "arguments": arguments.get(name, {})} for name in tier.split()]
        for tier in tiers
    ]
    return {"actions": actions, "tiers": [{"plugins": each} for each in plugins]}


USUAL = conf("enqueue, allocate, backfill", "priority gang", "predicates nodeorder")
CAPACITY = conf("enqueue, allocate, backfill", "priority gang", "predicates capacity")
RECLAIM = conf("enqueue, allocate, reclaim, backfill", "priority gang", "predicates capacity")


def load(objects: Any, configuration: Any = USUAL) -> Any:
    scene = {"objects": objects, "conf": configuration, "now": "2026-01-15T10:00:00Z"}
    return load_world([json.dumps(scene)])


def volcano_job(least: int | None, **tasks: Any) -> Any:
    """Make a Volcano job; a task is its replicas, cpu, least number (or None), further fields."""
    made = []
    for name, (replicas, cpu, fewest, *more) in tasks.items():
        requests = {"requests": {"cpu": str(cpu)}}
        container = {"name": "main", "image": "busybox:1", "resources": requests}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        task = {"name": name, "replicas": replicas, "template": template, **dict(*more)}
        made.append(task if fewest is None else {**task, "minAvailable": fewest})
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"schedulerName": "volcano", "queue": "default", "tasks": made}
        | ({} if least is None else {"minAvailable": least}),
    }


PARTITIONS = {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2}}
SUB_GROUPS = {
    "name": "w",
    "subGroupSize": 2,
    "minSubGroups": 2,
    "matchLabelKeys": ["part"],
    "labelSelector": {"matchLabels": {"role": "w"}},
}


def members(n: int, cpu: int, *homes: str, **more: Any) -> list[Any]:
    where = [*homes, *[None] * (n - len(homes))]
    return [pod(f"j-{i}", group="j", cpu=cpu, node=home, **more) for i, home in enumerate(where)]


GANGS: dict[str, Any] = {
    "more than the replicas": [volcano_job(5, a=(3, 1, None))],
    "more of a task than its replicas": [volcano_job(1, a=(3, 1, 5))],
    "more of a task, and of the job": [volcano_job(None, a=(3, 1, 5))],
    "too large for the nodes": [volcano_job(None, a=(4, 3, None))],
    "too large in one of two tasks": [volcano_job(None, a=(4, 3, None), b=(1, 1, None))],
    "least numbers of tasks below that of the job": [volcano_job(5, a=(4, 3, 1), b=(2, 3, 1))],
    "partitions": [volcano_job(1, a=(4, 3, None, PARTITIONS))],
    "sub-groups without pods": [
        pod_group("j", min_member=1, spec={"subGroupPolicy": [SUB_GROUPS]}),
        *members(3, 1, labels={"role": "w", "part": "0"}),
    ],
    "a role without pods": [
        pod_group("j", min_member=3, min_task_member={"a": 2, "b": 1}),
        *members(3, 1, role="b"),
    ],
    "a role too large": [
        pod_group("j", min_member=3, min_task_member={"a": 3}),
        *members(3, 3, role="a"),
    ],
    "some run": [pod_group("j", min_member=3, phase="Running"), *members(3, 3, "n1")],
    "fewer pods than needed": [pod_group("j", min_member=4), *members(2, 3)],
    "least resources": [
        pod_group("j", min_member=3, min_resources={"cpu": 9}),
        *members(3, 3),
    ],
    "pods of two sizes": [
        pod_group("j", min_member=3),
        pod("j-0", group="j", cpu=1),
        pod("j-1", group="j", cpu=3),
        pod("j-2", group="j", cpu=6),
    ],
}


@pytest.mark.parametrize("job", GANGS.values(), ids=GANGS)
def test_every_remedy_starts_the_job_and_moves_numbers_as_it_says(job: Any) -> None:
    overcommit = conf("enqueue, allocate, backfill", "priority gang", "overcommit predicates")
    world = load([*PLAIN, *job], overcommit)
    found = explain_job(world, "j")
    assert found.state == "waits"
    assert found.remedies
    for remedy in found.remedies:
        assert wrong_moves(remedy.text) == []
        changed = Change.from_data(remedy.changes)(world)
        assert played(changed, changed.find_job("j")).started, remedy.text


def remedies(objects: Any, configuration: Any = USUAL) -> dict[str, str]:
    found = explain_job(load(objects, configuration), "j", foresee=False)
    return {each.text: each.result for each in found.remedies}


def test_a_task_that_needs_more_pods_than_it_has_is_lowered_and_the_job_is_not_raised() -> None:
    assert remedies([*PLAIN, *GANGS["more of a task than its replicas"]]) == {
        "lower minAvailable of task a from 5 to 3": "3 pods start"
    }


def test_no_node_helps_a_job_that_admission_refuses() -> None:
    wrong = {"partitionPolicy": {"totalPartitions": 3, "partitionSize": 2}}
    assert remedies([*PLAIN, volcano_job(1, a=(4, 8, None, wrong))]) == {}


def test_least_resources_are_lowered_in_proportion() -> None:
    group = pod_group("j", min_member=3, min_resources={"cpu": 9, "memory": "1Gi"})
    text = "lower minMember from 3 to 2 and minResources in proportion, to cpu 6, memory 683Mi"
    assert text in remedies([*PLAIN, group, *members(3, 3)])


def test_only_pods_that_ask_for_too_much_ask_for_less() -> None:
    world = load([*PLAIN, node("n3", cpu=4), *GANGS["pods of two sizes"]])
    (way,) = [one for one in explain_job(world, "j").remedies if "less" in one.text]
    assert way.text == "ask for less: at most cpu 4 a pod"
    added = [one["object"] for one in way.changes if one["op"] == "add"]
    assert [one["metadata"]["name"] for one in added] == ["j-2"]


def test_an_init_container_that_is_too_large_asks_for_less() -> None:
    first = {"name": "first", "image": "a:1", "resources": {"requests": {"cpu": "6"}}}
    pods = members(2, 1)
    for one in pods:
        one["spec"] |= {"initContainers": [first], "overhead": {"cpu": "1"}}
    world = load([*PLAIN, pod_group("j", min_member=2), *pods])
    (way,) = [one for one in explain_job(world, "j").remedies if "less" in one.text]
    assert (way.text, way.result) == ("ask for less: cpu 4 a pod", "2 pods start")
    (one, _) = [one["object"]["spec"] for one in way.changes if one["op"] == "add"]
    assert one["initContainers"][0]["resources"]["requests"] == {"cpu": "3"}


# Costs

RUNNING = [
    pod_group("old", min_member=1, queue="p", phase="Running"),
    *(pod(f"old-{i}", group="old", cpu=2, node=f"n{1 + i // 2}") for i in range(4)),
]
QUEUES = [queue(name, deserved={"cpu": 2}) for name in ("p", "q", "r")]


def waiting(name: str, queue: str, cpu: int = 2) -> list[Any]:
    return [pod_group(name, queue=queue), pod(f"{name}-0", group=name, cpu=cpu)]


def test_evictions_for_other_jobs_are_part_of_the_price() -> None:
    objects = [*QUEUES, *NODES, *RUNNING, *waiting("other", "r"), *waiting("j", "q")]
    found = explain_job(load(objects, CAPACITY), "j")
    (way,) = [one for one in found.remedies if "reclaim" in one.text]
    assert len(way.evicts) == 2
    first, second = way.result.split("; ")
    assert first.startswith("it starts after 1 eviction: default/old-")
    assert second.startswith("this also evicts 1 pod of default/old (default/old-")
    assert found.to_dict()["remedies"][found.remedies.index(way)]["evicts"] == way.evicts


def test_what_a_queue_deserves_is_raised_by_the_least_amount_and_the_evictions_are_named() -> None:
    queues = [queue("p", deserved={"cpu": 7}), queue("q", deserved={"cpu": 1})]
    found = remedies([*queues, *NODES, *RUNNING, *waiting("j", "q")], RECLAIM)
    result = found["raise what queue q deserves: cpu from 1 to 2"]
    assert result.startswith("it starts after 1 eviction: default/old-")


def test_a_job_that_would_start_otherwise_is_named() -> None:
    first = [
        pod_group("first", min_member=2, created="2026-01-15T09:00:00Z"),
        *(pod(f"first-{i}", group="first", cpu=4) for i in range(2)),
    ]
    later = [pod_group("j", created="2026-01-15T09:30:00Z"), pod("j-0", group="j", cpu=4)]
    found = remedies([*PLAIN, *first, *later])
    assert found["give it a priority above 0"] == (
        "1 pod starts; 2 pods of default/first that would start otherwise wait"
    )
    assert found["wait for default/first to end (2 pods)"] == "1 pod starts"


def partly_running(needed: int) -> list[Any]:
    """Return a Volcano job and what belongs to it: two pods of three run."""
    job = volcano_job(needed, a=(3, 3, None))
    job["metadata"]["uid"] = "u1"
    job["status"] = {"state": {"phase": "Running"}}
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": "j", "uid": "u1"}
    group = pod_group("j-u1", min_member=needed, phase="Running")
    marks = {"volcano.sh/task-spec": "a", "volcano.sh/job-name": "j"}
    homes = ["n1", "n2", None]
    pods = [
        pod(f"j-a-{i}", group="j-u1", cpu=3, node=home, annotations=marks, labels=marks)
        for i, home in enumerate(homes)
    ]
    for one in (group, *pods):
        one["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return [job, group, *pods]


def test_running_pods_that_go_with_a_resubmitted_job_are_counted() -> None:
    found = remedies([*PLAIN, *partly_running(3)])
    assert found["ask for less: cpu 1 a pod"] == (
        "3 pods start; its 2 running pods are created again"
    )
    assert found["add a node like n1"] == "1 pod starts"


@pytest.mark.parametrize("room", [1, 2, 3])
def test_a_job_is_not_submitted_again_to_run_no_more_pods_than_now(room: int) -> None:
    capped = queue("default", capability={"cpu": 6})
    other = queue("other", capability={"cpu": 3 * room})
    more = [node("n3", cpu=4)]
    found = remedies([capped, other, *NODES, *more, *partly_running(1)], CAPACITY)
    assert ("submit it to queue other" in found) == (room == 3)


def test_several_jobs_that_lose_pods_are_counted_each() -> None:
    old = [
        each
        for name in ("a", "b", "c", "d")
        for each in (
            pod_group(name, min_member=0, phase="Running"),
            pod(f"{name}-0", group=name, cpu=4, node=f"n-{name}"),
        )
    ]
    nodes = [node(f"n-{name}", cpu=4) for name in ("a", "b", "c", "d")]
    urgent = [
        priority_class("high", value=100),
        pod_group("j", min_member=4, priority_class="high"),
        *members(4, 4, priority=100, priority_class="high"),
    ]
    found = remedies([queue("default"), *nodes, *old, *urgent])
    assert found["add the action preempt to the configuration"].startswith(
        "it starts after 4 evictions: "
    )
    assert " and 1 more" in found["add the action preempt to the configuration"]


# What is offered


def test_jobs_to_wait_for_are_named_and_no_more_than_needed() -> None:
    nodes = [node(f"n{i}", cpu=4) for i in range(6)]
    busy = [pod(f"busy-{i}", cpu=4, node=f"n{i}") for i in range(6)]
    found = remedies(
        [queue("default"), *nodes, *busy, pod_group("j", min_member=4), *members(4, 4)]
    )
    assert (
        "wait for pod default/busy-0, pod default/busy-1, pod default/busy-2 and 1 more to end "
        "(4 pods)"
    ) in found


def test_only_the_taints_that_a_node_has_are_taken_from_it() -> None:
    taints = [
        {"key": "a", "value": "b", "effect": "NoSchedule"},
        {"key": "c", "effect": "NoExecute"},
    ]
    nodes = [node(f"n{i}", cpu=4, taints=[taint]) for i, taint in enumerate(taints)]
    found = remedies([queue("default"), *nodes, pod_group("j"), *members(1, 2)])
    assert "remove the taint a=b:NoSchedule from node n0" in found


def test_a_capability_that_others_guarantees_eat_is_not_raised_downwards() -> None:
    queues = [
        queue("q", capability={"cpu": 7}),
        queue("p", guarantee={"cpu": 6}, deserved={"cpu": 6}),
    ]
    found = remedies([*queues, *NODES, *waiting("j", "q", 4)], CAPACITY)
    assert not [text for text in found if "capability" in text]
    assert found["lower the guarantee of queue p for cpu from 6 to 4"] == "1 pod starts"


def test_a_guarantee_of_memory_is_written_as_a_quantity() -> None:
    queues = [
        queue("q", capability={"memory": "16Gi"}),
        queue("p", guarantee={"memory": "12Gi"}, deserved={"memory": "12Gi"}),
    ]
    job = [pod_group("j", queue="q"), pod("j-0", group="j", cpu=1, memory="6Gi")]
    found = remedies([*queues, *NODES, *job], CAPACITY)
    assert "lower the guarantee of queue p for memory from 12Gi to 10Gi" in found


def test_a_zone_is_opened_and_allowed_where_neither_alone_helps() -> None:
    zone = node("z1", cpu=8, labels={"volcano.sh/revocable-zone": "rz"})
    window = {"tdm": {"tdm.revocable-zone.rz": "20:00-23:00"}}
    configuration = conf("enqueue, allocate, backfill", "priority gang", "predicates tdm", **window)
    found = remedies(
        [queue("default"), zone, node("n1", cpu=2), pod_group("j"), *members(1, 4)], configuration
    )
    assert "allow its pods to use revocable zones and open the revocable zones all day" in found
    assert "add a node like n1 with cpu 4" in found


# Numbers of causes


def first_cause(objects: Any, configuration: Any) -> Any:
    return explain_job(load(objects, configuration), "j", unblock=False, foresee=False).causes[0]


def test_a_queue_that_is_too_small_for_a_gang_is_compared_with_all_of_it() -> None:
    old = [
        pod_group("old", queue="q", phase="Running"),
        pod("old-0", group="old", cpu=1, node="n1"),
    ]
    group = pod_group("j", min_member=5, queue="q")
    cause = first_cause(
        [queue("q", capability={"cpu": 3}), *NODES, *old, group, *members(5, 1)], CAPACITY
    )
    assert cause.text == (
        "queue q would exceed its limit with the 5 pods that the gang needs: "
        "needs 5 CPU, 2 of 3 left"
    )


def test_network_domains_are_compared_with_the_gang() -> None:
    nodes = [node(f"n{i}", cpu=4) for i in range(4)]
    racks = [hyper_node("r1", nodes=["n0", "n1"]), hyper_node("r2", nodes=["n2", "n3"])]
    busy = pod("busy", cpu=2, node="n0")
    group = pod_group("j", min_member=3, network_topology={"mode": "hard", "highestTierAllowed": 1})
    topology = conf("enqueue, allocate", "priority gang", "predicates network-topology-aware")
    cause = first_cause([queue("default"), *nodes, *racks, busy, group, *members(3, 3)], topology)
    assert cause.text == (
        "no network domain up to tier 1 takes it: its gang needs 3 pods in one, "
        "and the roomiest, r2, holds only 2"
    )
    assert cause.numbers["holds"] == 2


def test_a_limit_of_device_classes_is_explained_and_raised() -> None:
    devices = resource_slice("n1", node="n1", devices=[device(f"gpu-{i}") for i in range(8)])
    claims = [resource_claim(f"c{i}", requests=[device_request(count=2)]) for i in range(2)]
    pods = [
        pod(
            f"j-{i}",
            group="j",
            cpu=1,
            spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": f"c{i}"}]},
        )
        for i in range(2)
    ]
    queues = [queue("default", capability={"deviceclass/gpu": 3})]
    objects = [*queues, node("n1", cpu=4), device_class("gpu"), devices, *claims, *pods]
    found = explain_job(load([*objects, pod_group("j", min_member=2)], CAPACITY), "j")
    assert found.causes[0].code.value == "QueueOverCapability"
    assert "needs 2 deviceclass/gpu, 1 of 3 left" in found.causes[0].text
    assert "raise the capability of queue default: deviceclass/gpu from 3 to 4" in {
        each.text for each in found.remedies
    }
