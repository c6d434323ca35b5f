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


def roles(minima: Any, min_member: Any, *pods: Any) -> Any:
    group = pod_group("a", min_member=min_member, min_task_member=minima, phase="Inqueue")
    return [QUEUE, node("n1", cpu=4), group, *pods]


def role(name: Any, cpu: Any, of: Any) -> Any:
    return pod(name, group="a", cpu=cpu, role=of)


@pytest.mark.parametrize(("pods", "bound"), [(3, 3), (2, 0)])
def test_minima_that_add_up_to_more_than_the_gang_do_not_bind(
    decide: Any, pods: int, bound: int
) -> None:
    """Only the number of tasks counts then, and whether it can still be reached."""
    tasks = [role("a-w-0", 9, "worker"), *(role(f"a-p-{i + 1}", 1, "ps") for i in range(pods))]
    decisions = decide(roles({"worker": 2, "ps": 2}, 3, *tasks), actions="allocate")
    assert len(decisions.binds) == bound


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
