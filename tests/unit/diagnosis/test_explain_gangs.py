"""What a gang found at its turn, and would have found if it had gone first."""

from typing import Any

from pumice.diagnosis.explain import explain_job
from pumice.testing import hyper_node, node, pod, pod_group, queue

WORLD = [queue("default"), node("n1", cpu=4)]


def changes(found: Any) -> list[str]:
    return [remedy.text for remedy in found.remedies]


def test_a_gang_states_what_it_found_at_its_turn_and_would_find_if_it_went_first(
    world: Any, job: Any
) -> None:
    objects = [queue("default"), *(node(f"n{i}", cpu=4) for i in range(3))]
    found = explain_job(world([*objects, *job("a", cpu=3, pods=2), *job("b", cpu=3, pods=4)]), "b")
    gang = found.causes[0]
    assert gang.text == (
        "only 1 of the 4 pods that its gang needs found a node at its turn; "
        "even if the job went first, only 3 would"
    )
    assert gang.numbers == {"found": 1, "minMember": 4, "foundIfFirst": 3}
    assert "lower minMember from 4 to 1" in changes(found)


def test_a_gang_that_finds_nothing_at_its_turn_says_so(world: Any, job: Any) -> None:
    found = explain_job(world([*WORLD, *job("a", cpu=3), *job("b", cpu=3, pods=2)]), "b")
    assert found.causes[0].text == (
        "none of the 2 pods that its gang needs found a node at its turn; "
        "even if the job went first, only 1 would"
    )


def test_a_gang_without_a_turn_states_what_it_would_find(world: Any, job: Any) -> None:
    objects = [queue("default", capability={"cpu": "1"}), node("n1", cpu=4)]
    found = explain_job(
        world([*objects, *job("j", cpu=3, pods=2)], "gang predicates capacity"), "j", unblock=False
    )
    (gang,) = [each for each in found.causes if each.code.value == "GangShort"]
    assert gang.text == (
        "only 1 of the 2 pods that its gang needs would find a node, "
        "even if it went first and its queue had no limit"
    )


def test_a_role_states_what_it_found_at_its_turn(world: Any, job: Any) -> None:
    group = pod_group("b", min_member=3)
    group["spec"]["minTaskMember"] = {"worker": 3}
    workers = [pod(f"b-{i}", group="b", cpu=3) for i in range(3)]
    for one in workers:
        one["metadata"]["annotations"]["volcano.sh/task-spec"] = "worker"
    objects = [queue("default"), node("n1", cpu=4), node("n2", cpu=4)]
    found = explain_job(world([*objects, *job("a", cpu=3), group, *workers]), "b")
    (role,) = [each for each in found.causes if each.code.value == "RoleShort"]
    assert role.text == (
        "role worker needs nodes for 3 pods and found 1 at its turn; "
        "even if the job went first, it would find only 2"
    )


def test_a_smaller_gang_is_offered_once(world: Any, job: Any) -> None:
    group = pod_group("j", min_member=2)
    group["spec"]["minTaskMember"] = {"worker": 2}
    workers = [pod(f"j-{i}", group="j", cpu=3) for i in range(2)]
    for one in workers:
        one["metadata"]["annotations"]["volcano.sh/task-spec"] = "worker"
    found = explain_job(world([*WORLD, group, *workers]), "j")
    assert [text for text in changes(found) if "minMember" in text] == [
        "lower minTaskMember of role worker from 2 to 1 and minMember from 2 to 1"
    ]


def test_pods_without_requests_have_the_reasons_of_their_nodes(world: Any, job: Any) -> None:
    apart = {"nodeSelector": {"disk": "ssd"}}
    there = [*WORLD, *job("j", cpu=None, pods=2, spec=apart)]
    found = explain_job(world(there, actions="allocate, backfill"), "j", unblock=False)
    assert [each.code.value for each in found.causes] == ["NodeSelector"]
    assert found.text == "node n1 does not match the node selector: disk=ssd is on no node"


def test_a_kind_of_pod_that_no_node_can_ever_take_comes_first(world: Any, job: Any) -> None:
    """Room that others hold is found first, and would not help."""
    pods = [
        *(pod(f"j-{i}", group="j", cpu=3, role="a") for i in range(2)),
        pod("j-2", group="j", cpu=1, role="b", resources={"nvidia.com/gpu": 1}),
    ]
    there = [*WORLD, pod_group("j", min_member=3, min_task_member={"a": 2, "b": 1}), *pods]
    found = explain_job(world(there), "j", unblock=False)
    assert found.text == ("no node has nvidia.com/gpu: j-2 asks for nvidia.com/gpu 1")


def test_a_domain_for_one_pod_is_counted_as_one(world: Any, job: Any) -> None:
    tight = {"mode": "hard", "highestTierAllowed": 1}
    there = [*WORLD, node("n2", cpu=4), hyper_node("s0", nodes=["n1"])]
    there += job("old", cpu=3, nodes=["n1"])
    wanted = job("j", cpu=2, network_topology=tight)
    found = explain_job(world([*there, *wanted], "gang predicates network-topology-aware"), "j")
    assert "its gang needs 1 pod in one" in found.text
