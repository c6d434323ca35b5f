"""allocate: queues in turn, their best job, one round of placing, all of a gang or none."""

from typing import Any

import pytest

from pumice.actions.allocate import allocate
from pumice.core.resources import CPU
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Why
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

QUEUE = queue("default")
OLD, NEW = "2026-01-15T08:00:00Z", "2026-01-15T09:00:00Z"


def gang(
    name: Any,
    n: Any,
    *,
    min_member: Any = None,
    cpu: Any = 1,
    created: Any = None,
    where: str = "default",
    **more: Any,
) -> Any:
    group = pod_group(
        name,
        min_member=n if min_member is None else min_member,
        phase="Inqueue",
        created=created,
        queue=where,
    )
    return [group, *(pod(f"{name}-w-{i}", group=name, cpu=cpu, **more) for i in range(n))]


def names(decisions: Any) -> Any:
    return [key.removeprefix("default/") for key in decisions.binds]


def test_a_gang_is_bound_as_a_whole(decide: Any) -> None:
    world = [QUEUE, node("n1", cpu=2), node("n2", cpu=1), *gang("a", 3)]
    assert len(decide(world, actions="allocate").binds) == 3


def test_a_gang_that_does_not_fit_leaves_its_room_to_the_next(decide: Any) -> None:
    world = [QUEUE, node("n1", cpu=2), *gang("a", 3, created=OLD), *gang("b", 2, created=NEW)]
    assert names(decide(world, actions="allocate")) == ["b-w-0", "b-w-1"]


def test_jobs_get_their_least_number_before_anyone_gets_more(decide: Any) -> None:
    world = [QUEUE, node("n1", cpu=3)]
    world += [*gang("a", 3, min_member=1, created=OLD), *gang("b", 1, created=NEW)]
    assert names(decide(world, actions="allocate")) == ["a-w-0", "b-w-0", "a-w-1"]


def test_a_group_is_admitted_if_no_enqueue_action_will(decide: Any) -> None:
    group = pod_group("a", phase="Pending")
    world = [QUEUE, node("n1"), group, pod("a-0", group="a", cpu=1)]
    assert names(decide(world, actions="allocate")) == ["a-0"]
    later = decide(world, actions="allocate, enqueue")
    assert later.binds == {}
    assert later.pod_groups["default/a"].phase == "Inqueue"


def test_pods_that_ask_for_nothing_and_gated_ones_are_left_alone(decide: Any) -> None:
    world = [QUEUE, node("n1"), pod_group("a", min_member=0, phase="Inqueue")]
    gated = pod("b", group="a", cpu=1, spec={"schedulingGates": [{"name": "g"}]})
    assert decide([*world, pod("a", group="a"), gated], actions="allocate").binds == {}


def test_room_that_is_being_freed_is_promised_not_given(decide: Any) -> None:
    leaving = pod("leaving", cpu=1, node="n1")
    leaving["metadata"]["deletionTimestamp"] = OLD
    decisions = decide([QUEUE, node("n1", cpu=1), leaving, *gang("a", 1)], actions="allocate")
    assert decisions.binds == {}
    assert decisions.pipelined == {"default/a-w-0": "n1"}
    assert decisions.nominated == {}


def test_a_gang_that_waits_for_such_room_keeps_all_of_its_places(decide: Any) -> None:
    """One pod has room now, the other soon; the next gang may have neither."""
    leaving = pod("leaving", cpu=1, node="n1")
    leaving["metadata"]["deletionTimestamp"] = OLD
    world = [QUEUE, node("n1", cpu=2), leaving]
    world += [*gang("a", 2, created=OLD), *gang("b", 1, created=NEW)]
    decisions = decide(world, actions="allocate")
    assert decisions.binds == {}
    assert decisions.task_statuses["default/a"] == {"Allocated": 1, "Pipelined": 1}
    assert decisions.task_statuses["default/b"] == {"Pending": 1}


def test_room_now_goes_before_a_better_score_later(decide: Any) -> None:
    leaving = pod("leaving", cpu=3, node="n1")
    leaving["metadata"]["deletionTimestamp"] = OLD
    world = [QUEUE, node("n1", cpu=3), node("n2", cpu=9), leaving, *gang("a", 1)]
    assert decide(world, "gang binpack", actions="allocate").binds == {"default/a-w-0": "n2"}


def test_the_promised_node_is_tried_first(decide: Any) -> None:
    world = [QUEUE, node("n1", cpu=2), node("n2", cpu=9), *gang("a", 1, nominated_node="n2")]
    assert decide(world, "gang binpack", actions="allocate").binds == {"default/a-w-0": "n2"}


def test_another_node_is_taken_if_the_promised_one_is_full(decide: Any) -> None:
    world = [QUEUE, node("n1", cpu=2), node("n2", cpu=1), pod("full", cpu=1, node="n2")]
    world += gang("a", 1, nominated_node="n2")
    assert decide(world, actions="allocate").binds == {"default/a-w-0": "n1"}


def test_a_task_beyond_the_quota_is_passed_over(decide: Any) -> None:
    """The large task would break the share of the queue, the small one after it does not."""
    world = [
        QUEUE,
        queue("other"),
        node("n1", cpu=4),
        pod_group("a", min_member=1, phase="Inqueue"),
    ]
    world += [pod("a-w-0", group="a", cpu=3), pod("a-w-1", group="a", cpu=1)]
    world += gang("b", 4, where="other")
    decisions = decide(world, "gang", "proportion", actions="allocate")
    assert "default/a-w-1" in decisions.binds
    assert "default/a-w-0" not in decisions.binds


def test_an_overused_queue_is_left_out(decide: Any) -> None:
    world = [QUEUE, queue("other"), node("n1", cpu=4), *gang("a", 1)]
    world += [pod_group("run", phase="Running")]
    world += [pod(f"run-{i}", group="run", cpu=1, node="n1") for i in range(3)]
    world += gang("b", 3, where="other")
    decisions = decide(world, "gang", "proportion", actions="allocate")
    assert "default/a-w-0" not in decisions.binds


ROLES = {"worker": 1, "ps": 1}


def roles(minima: Any, min_member: Any, *pods: Any) -> Any:
    group = pod_group("a", min_member=min_member, min_task_member=minima, phase="Inqueue")
    return [QUEUE, node("n1", cpu=4), group, *pods]


def role(name: Any, cpu: Any, of: Any) -> Any:
    return pod(name, group="a", cpu=cpu, role=of)


def test_after_a_role_failed_its_other_tasks_are_not_tried(decide: Any) -> None:
    """The second worker would fit, but its role has failed before."""
    pods = [role("a-w-0", 9, "worker"), role("a-w-1", 1, "worker"), role("a-p-2", 1, "ps")]
    decisions = decide(roles({}, 1, *pods), actions="allocate")
    assert names(decisions) == ["a-p-2"]


def test_pods_without_a_role_are_each_tried(decide: Any) -> None:
    pods = [role("a-w-0", 9, None), role("a-w-1", 1, None), role("a-p-2", 1, None)]
    decisions = decide(roles({}, 1, *pods), actions="allocate")
    assert names(decisions) == ["a-w-1", "a-p-2"]


def test_a_job_that_needs_all_of_its_tasks_stops_at_the_first_failure(decide: Any) -> None:
    pods = [role("a-w-0", 9, "worker"), role("a-p-1", 1, "ps")]
    decisions = decide(roles({}, 2, *pods), actions="allocate")
    assert decisions.unschedulable["default/a"].count("Schedulable") == 0
    assert names(decisions) == []


def test_a_job_stops_when_a_role_that_failed_lacks_its_least_number(decide: Any) -> None:
    pods = [role("a-w-0", 9, "worker"), role("a-p-1", 1, "ps"), role("a-p-2", 1, "ps")]
    decisions = decide(roles(ROLES, 2, *pods), actions="allocate")
    assert decisions.task_statuses["default/a"] == {"Pending": 3}
    assert "1 Schedulable" not in decisions.unschedulable["default/a"]


def test_a_job_goes_on_when_the_failed_role_has_its_least_number(decide: Any) -> None:
    pods = [role("a-w-0", 1, "worker"), role("a-w-1", 9, "worker"), role("a-p-2", 1, "ps")]
    decisions = decide(roles(ROLES, 2, *pods), actions="allocate")
    assert names(decisions) == ["a-w-0", "a-p-2"]


@pytest.mark.parametrize(("pods", "bound"), [(3, 3), (2, 0)])
def test_minima_that_add_up_to_more_than_the_gang_do_not_bind(
    decide: Any, pods: int, bound: int
) -> None:
    """Only the number of tasks counts then, and whether it can still be reached."""
    tasks = [role("a-w-0", 9, "worker"), *(role(f"a-p-{i + 1}", 1, "ps") for i in range(pods))]
    decisions = decide(roles({"worker": 2, "ps": 2}, 3, *tasks), actions="allocate")
    assert len(decisions.binds) == bound


def test_what_one_action_promised_blocks_the_next(decide: Any) -> None:
    world = [QUEUE, node("n1", cpu=2), pod_group("old", min_member=0, phase="Running")]
    world += [pod("old-0", group="old", cpu=2, node="n1", priority=1)]
    world += [*gang("a", 1, cpu=2, created=OLD), *gang("b", 1, cpu=2, created=NEW)]
    decisions = decide(world, "gang", actions="preempt, allocate")
    assert decisions.pipelined == {"default/a-w-0": "n1"}
    assert decisions.binds == {}


CACHE_OFF = {"allocate": {"predicateErrorCacheEnable": "false"}}


@pytest.mark.parametrize(
    ("roles", "nominee", "arguments", "wanted"),
    [
        (("w", "w"), "n1", None, "n2"),
        (("w", "w"), "n2", None, "n2"),
        (("w", "v"), "n1", None, "n1"),
        ((None, None), "n1", None, "n1"),
        (("w", "w"), "n1", CACHE_OFF, "n1"),
    ],
    ids=["refused before", "never refused", "another role", "no role", "nothing remembered"],
)
def test_a_nominated_node_that_refused_the_role_in_this_round_is_not_asked(
    decide: Any, roles: Any, nominee: Any, arguments: Any, wanted: Any
) -> None:
    world = [
        QUEUE,
        *(node(name, cpu=cpu) for name, cpu in (("n1", 1), ("n2", 3), ("n3", 1))),
        pod_group("a", min_member=2, phase="Inqueue"),
        pod("a-1", group="a", role=roles[0], cpu="250m", nominated_node=nominee),
        pod("a-2", group="a", role=roles[1], cpu="2500m", priority=50),
    ]
    decisions = decide(world, "priority gang", actions="allocate", arguments=arguments)
    assert decisions.binds["default/a-1"] == wanted


def test_refusals_of_a_role_last_one_round(decide: Any) -> None:
    """The second round of a job that is ready asks nodes again."""
    world = [
        QUEUE,
        node("n1", cpu=1),
        node("n2", cpu=2),
        pod_group("a", min_member=1, phase="Inqueue"),
        pod("a-1", group="a", role="w", cpu=2, priority=50),
        pod("a-2", group="a", role="w", cpu=1),
    ]
    decisions = decide(world, "priority gang", actions="allocate")
    assert decisions.binds == {"default/a-1": "n2", "default/a-2": "n1"}


class Licensed(Plugin, name="licensed"):
    """Accepts pods by a mark of their own, so equal shapes are not accepted alike."""

    def allocatable(self, queue: Any, task: Any) -> bool:
        return "licence" in task.pod.metadata.annotations


def test_equal_tasks_are_all_asked_about_where_a_plugin_looks_at_more_than_amounts() -> None:
    pods = [pod(f"a-{i}", group="a", cpu=1) for i in range(5)]
    for each in pods[1:3]:
        each["metadata"]["annotations"]["licence"] = "1"
    group = pod_group("a", min_member=1, phase="Inqueue")
    ssn = open_session([QUEUE, node("n1", cpu=9), group, *pods], [Licensed()])
    allocate(ssn)
    assert sorted(str(made.pod) for made in ssn.intents.made) == ["default/a-1", "default/a-2"]


def test_jobs_of_one_pod_are_all_asked_about_where_a_plugin_looks_at_more_than_amounts() -> None:
    """Also if there are so many of them that their turns could be foreseen."""
    groups = [pod_group(f"j{i}", phase="Inqueue") for i in range(40)]
    pods = [pod(f"j{i}-0", group=f"j{i}", cpu=1) for i in range(40)]
    for each in pods[1::2]:
        each["metadata"]["annotations"]["licence"] = "1"
    ssn = open_session([QUEUE, node("n1", cpu=99), *groups, *pods], [Licensed()])
    allocate(ssn)
    placed = {str(made.pod) for made in ssn.intents.made}
    assert placed == {f"default/j{i}-0" for i in range(1, 40, 2)}


def test_equal_tasks_use_nodes_that_the_first_of_them_opens(decide: Any) -> None:
    """Spread closes a, the emptier one, until b has one more, and so in turn."""
    spread = {
        "topologyKey": "zone",
        "maxSkew": 3,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    marked: dict[str, Any] = {
        "labels": {"app": "x"},
        "spec": {"topologySpreadConstraints": [spread]},
    }
    world = [QUEUE, *(node(name, cpu=30, labels={"zone": name}) for name in "ab")]
    world += [pod(f"old-{i}", cpu=1, node="a", labels={"app": "x"}) for i in range(3)]
    world += [pod("other", cpu=20, node="b"), *gang("g", 5, **marked)]
    binds = decide(world, "gang", "predicates nodeorder", actions="allocate").binds
    assert sorted(binds.values()) == ["a", "a", "b", "b", "b"]


class Full(Plugin, name="full"):
    """Has a queue wait once it holds five cpus, by this hook alone."""

    foreseeable = True

    def overused(self, queue: Any) -> bool:
        return bool(queue.allocated_or_pipelined[CPU] >= 5000)


@pytest.mark.parametrize("size", [1, 2])
def test_a_queue_that_has_its_share_gets_no_more_turns(size: int) -> None:
    """Turns of jobs with one pod are foreseen, others are not; the other queue goes on."""
    world = [queue("red"), queue("blue"), node("n1", cpu=99)]
    for i in range(20):
        world += gang(f"red{i}", size, where="red")
    world += gang("blue", 4, where="blue")
    ssn = open_session(world, [Full()])
    allocate(ssn)
    placed = [str(made.pod) for made in ssn.intents.made]
    red = [name for name in placed if "red" in name]
    assert (len(red), len(placed) - len(red)) == (5, 4)
    waits = ssn.records.by_job[ssn.snapshot.jobs.row_of["default/red19"]]
    assert waits.why is Why.QUEUE_OVERUSED


def test_records_of_jobs_without_a_node_show_the_nodes_at_their_turn(decide: Any) -> None:
    """The second record equals the first; the fourth shows what the third job left."""
    world = [QUEUE, node("n1", cpu=4), *gang("a", 2, cpu=5, created=OLD), *gang("b", 2, cpu=5)]
    world += [*gang("c", 3, created="2026-01-15T10:00:00Z")]
    world += [*gang("d", 1, cpu=5, created="2026-01-15T11:00:00Z")]
    records = decide(world, actions="allocate").records
    idle = {name: records[f"default/{name}"].numbers["idle"]["cpu"] for name in ["a", "b", "d"]}
    assert idle == {"a": 4000.0, "b": 4000.0, "d": 1000.0}
