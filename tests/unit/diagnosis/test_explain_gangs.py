"""What a gang found at its turn, and would have found if it had gone first."""

from typing import Any

from pumice.diagnosis.explain import explain_job
from pumice.testing import node, pod, pod_group, queue

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
