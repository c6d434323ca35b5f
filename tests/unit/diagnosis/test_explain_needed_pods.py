"""Which pods of a job are to blame: those that it cannot start without."""

from typing import Any

from pumice.diagnosis.explain import explain_job
from pumice.testing import hyper_node, node, pod, pod_group, queue

WORLD = [queue("default"), node("n1", cpu=4)]
GATE = [{"name": "hold"}]


def asked(world: Any, objects: Any, *tiers: str, **options: Any) -> Any:
    return explain_job(world(objects, *tiers, **options), "j", unblock=False, foresee=False)


def codes(found: Any) -> list[str]:
    return [cause.code.value for cause in found.causes]


def gated(name: str, **fields: Any) -> Any:
    return pod(name, group="j", spec={"schedulingGates": GATE}, **fields)


def test_a_gate_before_a_pod_that_the_gang_counts_as_placed_is_no_cause(world: Any) -> None:
    """A gang counts waiting pods without requests as placed."""
    pods = [pod("j-0", group="j", cpu=8), gated("j-1")]
    found = asked(world, [*WORLD, pod_group("j", min_member=2), *pods])
    assert codes(found) == ["InsufficientResource"]


def test_without_a_plugin_for_gangs_one_free_pod_is_enough(world: Any) -> None:
    there = [*WORLD, pod_group("j", min_member=2), pod("j-0", group="j", cpu=8), gated("j-1")]
    assert codes(asked(world, there, "predicates")) == ["InsufficientResource"]


def test_a_gate_before_the_last_pod_of_a_role_is_a_cause(world: Any) -> None:
    group = pod_group("j", min_member=2, min_task_member={"a": 1, "b": 1})
    pods = [pod(f"j-{i}", group="j", role="a", cpu=1) for i in range(2)]
    found = asked(world, [*WORLD, group, *pods, gated("j-2", role="b", cpu=1)])
    assert codes(found)[0] == "Gated"


def test_pods_behind_gates_that_the_gang_does_not_need_are_not_examined(world: Any) -> None:
    pods = [gated("j-0", cpu=100), pod("j-1", group="j", cpu=5)]
    found = asked(world, [*WORLD, pod_group("j", min_member=1), *pods])
    assert found.causes[0].numbers["pod"] == "default/j-1"


def test_a_kind_of_pod_that_never_fits_is_not_decisive_if_the_gang_can_do_without_it(
    world: Any, job: Any
) -> None:
    pods = [pod("j-0", group="j", cpu=100), pod("j-1", group="j", cpu=2)]
    old = job("old", cpu=3, nodes=["n1"])
    found = asked(world, [*WORLD, *old, pod_group("j", min_member=1), *pods])
    assert found.causes[0].numbers["pod"] == "default/j-1"
    both = asked(world, [*WORLD, *old, pod_group("j", min_member=2), *pods])
    assert both.causes[0].numbers["pod"] == "default/j-0"


def test_a_claim_of_a_pod_that_the_gang_can_do_without_comes_last(world: Any, job: Any) -> None:
    claim = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "none"}}]}
    pods = [pod("j-0", group="j", cpu=1, spec=claim), pod("j-1", group="j", cpu=2)]
    old = job("old", cpu=3, nodes=["n1"])
    found = asked(world, [*WORLD, *old, pod_group("j", min_member=1), *pods])
    assert codes(found) == ["InsufficientResource", "Volume"]
    both = asked(world, [*WORLD, *old, pod_group("j", min_member=2), *pods])
    assert codes(both)[0] == "Volume"


def test_waiting_pods_without_requests_count_for_a_gang(world: Any) -> None:
    group = pod_group("j", min_member=3, min_task_member={"a": 1, "b": 2})
    pods = [
        pod("j-0", group="j", role="a", cpu=2),
        pod("j-1", group="j", role="b", cpu=8),
        pod("j-2", group="j", role="b"),
        pod("j-3", group="j", role="a"),
    ]
    found = asked(world, [*WORLD, group, *pods], actions="enqueue, allocate, backfill")
    (role,) = [cause for cause in found.causes if cause.code.value == "RoleShort"]
    assert role.numbers == {"role": "b", "found": 1, "needed": 2}
    assert "GangShort" not in codes(found)


def test_a_job_without_room_on_any_node_is_not_told_of_its_network_first(
    world: Any, job: Any
) -> None:
    objects = [*WORLD, hyper_node("s1", nodes=["n1"]), *job("j", cpu=8)]
    group = next(one for one in objects if one["kind"] == "PodGroup")
    group["spec"]["networkTopology"] = {"mode": "hard", "highestTierAllowed": 1}
    found = asked(world, objects, "gang predicates network-topology-aware")
    assert codes(found) == ["InsufficientResource", "NetworkDomain"]


def test_a_job_that_runs_does_not_wait_for_its_missing_queue(world: Any, job: Any) -> None:
    found = asked(world, [*WORLD, *job("j", cpu=1, nodes=["n1"], queue="gone")])
    assert (found.state, found.causes) == ("runs", [])


def test_a_promise_for_which_nobody_leaves_is_not_waited_for(world: Any) -> None:
    """Reclaim promises room that is free, where allocate does not try pods of a role again."""
    old = [pod(f"old-{i}", group="old", cpu=3, node=f"n{i}") for i in range(2)]
    found = asked(
        world,
        [
            queue("default"),
            queue("blue"),
            *(node(f"n{i}", cpu=4) for i in range(2)),
            pod_group("old", min_member=2, phase="Running"),
            *old,
            pod_group("j", queue="blue", phase="Inqueue"),
            *(pod(f"j-{i}", group="j", cpu=cpu, role="w") for i, cpu in enumerate((3, 1))),
        ],
        "gang predicates proportion",
        actions="allocate, reclaim",
    )
    assert found.places == {"default/j-1": "n0"}
    assert codes(found) == ["InsufficientResource"]
