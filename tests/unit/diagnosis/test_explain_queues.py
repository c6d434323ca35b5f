"""Limits of queues in an answer: for whole gangs, at the queue that states them, by plain sums."""

from dataclasses import replace
from typing import Any

from pumice.api.codes import Cause
from pumice.diagnosis.explain import explain_job
from pumice.testing import node, pod, pod_group, queue

FLAT = "gang predicates capacity"


def cause(found: Any, code: Cause) -> Any:
    return next(each for each in found.causes if each.code is code)


def asked(world: Any, objects: Any, *tiers: str) -> Any:
    return explain_job(world(objects, *tiers), "j", unblock=False, foresee=False)


def test_a_gang_too_large_for_its_queue_is_found_although_no_node_has_room(
    world: Any, job: Any
) -> None:
    there = [
        queue("default", capability={"cpu": 4}),
        queue("other"),
        node("n1", cpu=8),
        *job("old", cpu=8, nodes=["n1"], queue="other"),
        *job("j", cpu=2, pods=3),
    ]
    found = asked(world, there, FLAT)
    assert [each.code for each in found.causes] == [
        Cause.QUEUE_OVER_CAPABILITY,
        Cause.INSUFFICIENT_RESOURCE,
    ]
    assert found.text == (
        "queue default would exceed its limit with the 3 pods that the gang needs: "
        "needs 6 CPU, limit 4"
    )


def test_pods_of_the_gang_are_asked_for_and_not_in_use(world: Any, job: Any) -> None:
    group = pod_group("j", min_member=3)
    pods = [pod(f"j-{i}", group="j", cpu=cpu) for i, cpu in enumerate((1, 2, 3, 3))]
    there = [
        queue("default", capability={"cpu": 6}),
        node("n1", cpu=16),
        *job("old", cpu=2, nodes=["n1"]),
        group,
        *pods,
    ]
    numbers = cause(asked(world, there, FLAT), Cause.QUEUE_OVER_CAPABILITY).numbers
    assert {key: numbers[key] for key in ("used", "request", "limit", "over", "pods")} == {
        "used": 2,
        "request": 6,
        "limit": 6,
        "over": 2,
        "pods": 3,
    }


def test_all_that_a_gang_exceeds_is_named(world: Any) -> None:
    group = pod_group("j", min_member=4)
    pods = [pod(f"j-{i}", group="j", cpu=2, memory="1Gi") for i in range(4)]
    limit = queue("default", capability={"cpu": 2, "memory": "3Gi"})
    found = asked(world, [limit, node("n1", cpu=16, memory="64Gi"), group, *pods], FLAT)
    assert found.text.endswith("needs 8 CPU, limit 2; needs 4Gi memory, limit 3Gi")


def test_a_gang_that_runs_in_part_asks_for_the_rest(world: Any, job: Any) -> None:
    there = [
        queue("default", capability={"cpu": 3}),
        node("n1", cpu=16),
        *job("j", cpu=1, pods=5, nodes=["n1"], phase="Inqueue"),
    ]
    assert asked(world, there, FLAT).text == (
        "queue default would exceed its limit with the 4 more pods that the gang needs: "
        "needs 4 CPU, 2 of 3 left"
    )


def tree(world: Any, objects: Any) -> Any:
    made = world(objects, FLAT)
    conf = made.conf.replace("- name: capacity", "- name: capacity\n    enableHierarchy: true")
    return type(made)(objects=made.objects, now=made.now, conf=conf)


def test_a_limit_is_that_of_the_queue_above_where_the_queue_itself_states_more(
    world: Any, job: Any
) -> None:
    there = [
        queue("root"),
        queue("team", parent="root", capability={"cpu": 4}),
        queue("leaf", parent="team", capability={"cpu": 8}),
        queue("sibling", parent="team"),
        node("n1", cpu=32),
        *job("old", cpu=1, nodes=["n1"], queue="sibling"),
        *job("j", cpu=5, queue="leaf"),
    ]
    found = explain_job(tree(world, there), "j", unblock=False, foresee=False)
    assert found.text == ("queue team would exceed its limit: needs 5 CPU, 3 of 4 left")


def test_admission_says_what_of_the_use_it_does_not_count(world: Any, job: Any) -> None:
    there = [
        queue("default", capability={"cpu": 4}),
        node("n1", cpu=32),
        *job("old", cpu=3, nodes=["n1"]),
        *job("j", cpu=5, min_resources={"cpu": 5}),
    ]
    refused = cause(asked(world, there, "gang predicates proportion"), Cause.QUEUE_OVER_CAPABILITY)
    assert refused.text == (
        "queue default would exceed its limit: "
        "needs 5 CPU, limit 4; "
        "what running jobs hold beyond their minResources is not counted (cpu 3)"
    )
    assert refused.numbers["elastic"] == {"cpu": 3}


def test_what_is_wrong_with_queues_is_logged_once_for_all_that_is_tried(
    world: Any, job: Any, caplog: Any
) -> None:
    there = [
        queue("root"),
        queue("team", parent="root", deserved={"cpu": 4}),
        queue("a", parent="team", deserved={"cpu": 6}),
        node("n1", cpu=8),
        *job("j", cpu=12, pods=2, queue="a"),
    ]
    tree = world(there, "gang predicates capacity")
    tree = replace(
        tree, conf=tree.conf.replace("name: capacity", "{name: capacity, enableHierarchy: true}")
    )
    found = explain_job(tree, "j")
    assert found.tried > 1
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert any("deserve 6 of cpu together" in text for text in said)
    assert len(said) == len(set(said))
    explain_job(tree, "j")
    assert len(caplog.records) == len(said)


def test_a_refused_node_group_names_the_queue_whose_affinity_counts(world: Any, job: Any) -> None:
    affinity = {
        "nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["gpu"]},
    }
    team = queue("team", parent="root")
    team["spec"]["affinity"] = affinity
    there = [
        queue("root"),
        team,
        queue("a", parent="team"),
        node("n1", cpu=8, labels={"volcano.sh/nodegroup-name": "cpu"}),
        *job("j", cpu=1, queue="a"),
    ]
    alone = world(there, "gang predicates nodegroup")
    found = explain_job(alone, "j", unblock=False, foresee=False)
    assert found.text == (
        "node n1 is in group cpu, and queue a names no node group: "
        "node group affinity not specified"
    )
    numbers = cause(found, Cause.NODE_GROUP).numbers
    assert (numbers["queue"], numbers["groups"], numbers["affinity"]) == ("a", {"cpu": 1}, [])
    tree = replace(
        alone,
        conf=alone.conf.replace("name: nodegroup", "{name: nodegroup, enableHierarchy: true}"),
    )
    found = explain_job(tree, "j", unblock=False, foresee=False)
    assert found.text == (
        "node n1 is in group cpu, and queue a, whose affinity is that of queue team, may use gpu: "
        "node does not satisfy the node group affinity"
    )


def test_pods_placed_before_a_refused_one_are_asked_for_and_not_in_use(world: Any) -> None:
    """The queue could take two of the gang, but not those for which there are nodes."""
    group = pod_group("j", min_member=2)
    shapes: list[Any] = [{"cpu": 1}, {"cpu": 1, "spec": {"nodeSelector": {"pool": "none"}}}]
    pods = [pod(f"j-{i}", group="j", **shape) for i, shape in enumerate([*shapes, {"cpu": 3}])]
    there = [queue("default", capability={"cpu": 3}), node("n1", cpu=16), group, *pods]
    found = cause(asked(world, there, FLAT), Cause.QUEUE_OVER_CAPABILITY)
    assert found.text == (
        "queue default would exceed its limit with the 2 pods that the gang needs: "
        "needs 4 CPU, limit 3"
    )


def test_a_limit_that_the_job_ahead_uses_up_is_named_and_may_be_raised(
    world: Any, job: Any
) -> None:
    there = [
        queue("default", capability={"cpu": 10}),
        node("n1", cpu=16),
        *job("first", cpu=8),
        *job("j", cpu=4),
    ]
    found = explain_job(world(there, FLAT), "j")
    assert [each.code for each in found.causes] == [Cause.JOB_AHEAD, Cause.QUEUE_OVER_CAPABILITY]
    assert found.causes[1].text.endswith("needs 4 CPU, 2 of 10 left")
    assert found.remedies[0].text == "raise the capability of queue default: cpu from 10 to 12"
