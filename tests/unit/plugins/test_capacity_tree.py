"""capacity, queues in a tree: limits of all ancestors hold, and one bad queue stops only itself.

The tree of most tests: a cluster of 100 cpu; team-a deserves 60 (at most 70, 20 guaranteed) and
team-b 40 (at most 50, 20 guaranteed), each with two leaves.
"""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.core.resources import CPU
from pumice.framework.refusals import Why
from pumice.plugins.capacity import Capacity
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

CLUSTER = node("n", cpu=100, memory="400Gi", pods=1000)


def stated(name: Any, parent: Any, deserved: Any, capability: Any, guarantee: Any) -> Any:
    amounts = {"deserved": deserved, "capability": capability, "guarantee": guarantee}
    stated: dict[str, Any] = {key: {"cpu": cpu} for key, cpu in amounts.items()}
    return queue(name, parent=parent, **stated)


TREE = [
    queue("root"),
    stated("team-a", "root", 60, 70, 20),
    stated("team-b", "", 40, 50, 20),
    stated("training", "team-a", 40, 50, 10),
    stated("inference", "team-a", 20, 30, 10),
    stated("batch", "team-b", 30, 40, 15),
    stated("interactive", "team-b", 10, 20, 5),
]


def running(job: Any, in_queue: Any, cpus: Any, **more: Any) -> Any:
    pods = [pod(f"{job}-{i}", group=job, cpu=cpu, node="n") for i, cpu in enumerate(cpus)]
    return [pod_group(job, queue=in_queue, phase="Running", **more), *pods]


def waiting(job: Any, in_queue: Any, cpus: Any, **more: Any) -> Any:
    pods = [pod(f"{job}-{i}", group=job, cpu=cpu) for i, cpu in enumerate(cpus)]
    return [pod_group(job, queue=in_queue, phase="Inqueue", **more), *pods]


@pytest.fixture
def tree(open_session: Any) -> Any:
    def opened(*objects: Any) -> Any:
        return open_session([CLUSTER, *objects], Capacity(), enableHierarchy=True)

    return opened


def cpus(ssn: Any, column: Any, *names: Any) -> Any:
    amounts, rows = getattr(ssn.plugins[0]._limits, column)[CPU], ssn.snapshot.queues.row_of
    return [amounts[rows[name]] / 1000 for name in names]


def held(ssn: Any, *names: Any) -> Any:
    rows = ssn.snapshot.queues.row_of
    return [ssn.plugins[0]._held(rows[name])[CPU] / 1000 for name in names]


def shares(ssn: Any, *names: Any) -> Any:
    rows = ssn.snapshot.queues.row_of
    return [ssn.plugins[0]._share(rows[name]) for name in names]


def order(ssn: Any, *names: Any) -> Any:
    queues = ssn.snapshot.queues
    rows = ssn.ordering.sort_queues(queues.row_of[name] for name in names)
    return [queues.names[row] for row in rows]


def scheduling(actions: str = "allocate") -> Scheduler:
    text = (
        f'actions: "{actions}"\ntiers:\n- plugins:\n  - name: capacity\n    enableHierarchy: true\n'
    )
    return Scheduler(parse_conf(text))


def decide(objects: Any, actions: str = "allocate") -> Any:
    return scheduling(actions).cycle([CLUSTER, *objects], 0.0)


def bound(objects: Any) -> Any:
    return sorted(key.removeprefix("default/") for key in decide(objects).binds)


# Limits


def test_the_root_deserves_and_guarantees_what_its_children_do(tree: Any) -> None:
    """60 + 40 deserved, 20 + 20 guaranteed."""
    ssn = tree(*TREE)
    assert cpus(ssn, "deserved", "root") == [100.0]
    assert cpus(ssn, "guarantee", "root") == [40.0]


def test_children_share_what_their_parent_may_have_less_their_siblings_guarantees(
    tree: Any,
) -> None:
    """Under team-a's 70, the siblings' 10 leaves 60, cut to 50 and 30; under team-b's 50 it is 45
    and 35, cut to 40 and 20."""
    ssn = tree(*TREE)
    leaves = ("training", "inference", "batch", "interactive")
    assert cpus(ssn, "real_capability", "team-a", "team-b") == [70.0, 50.0]
    assert cpus(ssn, "real_capability", *leaves) == [50.0, 30.0, 40.0, 20.0]


def test_a_child_without_a_capability_has_its_parents(tree: Any) -> None:
    """Also a resource that its own capability leaves out."""
    world = [queue("root"), queue("p", capability={"cpu": 8, "example.com/chip": 2})]
    world += [queue("a", parent="p"), queue("b", parent="p", capability={"memory": "1Gi"})]
    ssn = tree(*world, node("m", resources={"example.com/chip": 4}))
    assert cpus(ssn, "real_capability", "a", "b") == [8.0, 8.0]
    chip, rows = ssn.snapshot.resources.row("example.com/chip"), ssn.snapshot.queues.row_of
    real = ssn.plugins[0]._limits.real_capability[chip]
    assert [real[rows["a"]], real[rows["b"]]] == [2000.0, 2000.0]


def test_the_root_is_not_limited_by_the_cluster(tree: Any) -> None:
    """Jobs beyond the present nodes may be admitted; nodes may come."""
    assert (
        cpus(tree(queue("root"), queue("a")), "real_capability", "root", "a") == [float("inf")] * 2
    )


def test_what_no_node_names_is_not_to_be_had(tree: Any) -> None:
    """A resource that a node names with zero is unlimited, one that no node names unavailable."""
    world = [queue("root"), queue("a", deserved={"example.com/none": 1, "example.com/zero": 1})]
    ssn = tree(*world, node("m", resources={"example.com/zero": 0}))
    real, row = ssn.plugins[0]._limits.real_capability[:, 0], ssn.snapshot.resources.row
    assert real[row("example.com/none")] == 0.0
    assert real[row("example.com/zero")] == float("inf")


def test_cpu_that_the_roots_capability_leaves_out_is_none_at_all(tree: Any) -> None:
    world = [queue("root", capability={"memory": "4Gi"}), queue("a")]
    assert cpus(tree(*world), "real_capability", "root", "a") == [0.0, 0.0]


def test_deserved_is_raised_to_the_guarantee_but_not_cut_to_the_capability(tree: Any) -> None:
    world = [queue("root"), queue("a", deserved={"cpu": 90}, capability={"cpu": 5})]
    world += [queue("b", deserved={"cpu": 1}, guarantee={"cpu": 4})]
    assert cpus(tree(*world), "deserved", "a", "b") == [90.0, 4.0]


def test_children_that_ask_for_more_than_their_parent_has_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    over = [
        queue("root"),
        stated("team", "root", 60, 70, 20),
        stated("a", "team", 40, 80, 15),
        stated("b", "team", 30, 70, 10),
    ]
    scheduler = scheduling()
    for _ in range(2):
        scheduler.cycle([CLUSTER, *over], 0.0)
    assert [record.message for record in caplog.records] == [
        "capacity: queue a may have 80 of cpu, its parent team 70 of cpu",
        "capacity: the queues under team deserve 70 of cpu together, the queue itself 60 of cpu",
        (
            "capacity: the queues under team are guaranteed 25 of cpu together, "
            "the queue itself 20 of cpu"
        ),
    ]
    caplog.clear()
    scheduler.cycle([CLUSTER, *TREE], 0.0)
    assert not caplog.records
    scheduler.cycle([CLUSTER, *over], 0.0)
    assert len(caplog.records) == 3


def test_every_limit_on_the_way_up_holds() -> None:
    """team-a may have 70: with 30 in inference, training gets 40 of its own 50."""
    world = [*TREE, *running("old", "inference", [30]), *waiting("new", "training", [10] * 5)]
    assert len(bound(world)) == 4


def test_jobs_are_admitted_by_every_limit_on_the_way_up() -> None:
    """30 held and 25 reserved in team-a of 70: 15 more may be admitted next door."""
    world = [*TREE, *running("old", "inference", [30], min_resources={"cpu": 30})]
    world += [pod_group("asked", queue="training", min_resources={"cpu": 25}, phase="Inqueue")]
    for cpu, phase in (("15", "Inqueue"), ("15001m", "Pending")):
        job = pod_group("new", queue="training", min_resources={"cpu": cpu})
        assert decide([*world, job], "enqueue").pod_groups["default/new"].phase == phase


def test_a_refusal_names_the_queue_whose_limit_it_is(tree: Any) -> None:
    world = [*TREE, *running("old", "inference", [30]), *waiting("new", "training", [45])]
    ssn = tree(*world)
    task = ssn.task(ssn.snapshot.tasks.row_of["default/new-0"])
    refusal = ssn.policy.allocatable(task.queue, task)
    assert not refusal
    numbers = refusal.numbers
    assert numbers["at"] == "team-a"
    assert [numbers[key] for key in ("used", "request", "limit")] == [30000.0, 45000.0, 70000.0]


# Shares and order

# training 30, inference 15, batch 20, interactive 10
BUSY = [
    *running("jt", "training", [30]),
    *waiting("more", "training", [10]),
    *running("ji", "inference", [15]),
    *running("jb", "batch", [20]),
    *running("jx", "interactive", [10]),
]


def test_the_share_of_a_leaf_is_live_those_above_it_stay_as_at_session_open(tree: Any) -> None:
    """training reaches 40 of 40; team-a keeps 45 of 60 and root 75 of 100 for this session."""
    ssn = tree(*TREE, *BUSY)
    above = ("training", "team-a", "root")
    assert shares(ssn, *above) == [0.75, 0.75, 0.75]
    ssn.statement().place(ssn.snapshot.tasks.row_of["default/more-0"], 0)
    assert shares(ssn, *above) == [1.0, 0.75, 0.75]


def test_leaves_are_compared_where_their_branches_part(tree: Any) -> None:
    """team-a has 0.917 and team-b 0.75 of its due: batch goes before training, which has less."""
    world = [*running("jt", "training", [25]), *running("ji", "inference", [30])]
    world += running("jb", "batch", [24]) + running("jx", "interactive", [6])
    ssn = tree(*TREE, *world)
    assert shares(ssn, "team-a", "team-b") == [pytest.approx(0.917, abs=5e-4), 0.75]
    assert shares(ssn, "training", "batch") == [0.625, 0.8]
    assert order(ssn, "training", "batch") == ["batch", "training"]


def test_siblings_are_compared_by_their_own_shares(tree: Any) -> None:
    """training at 1.0 comes after inference at 0.5."""
    ssn = tree(*TREE, *running("jt", "training", [40]), *running("ji", "inference", [10]))
    assert shares(ssn, "training", "inference") == [1.0, 0.5]
    assert order(ssn, "training", "inference") == ["inference", "training"]


def test_a_leaf_next_to_a_branch_is_compared_with_that_branch(tree: Any) -> None:
    world = [*TREE, queue("solo", deserved={"cpu": 10}), *running("js", "solo", [8])]
    world += running("ji", "inference", [20]) + waiting("jt", "training", [1])
    ssn = tree(*world)
    assert shares(ssn, "solo", "team-a") == [0.8, pytest.approx(1 / 3)]
    assert order(ssn, "solo", "inference") == ["inference", "solo"]


def test_priority_comes_before_shares(tree: Any) -> None:
    world = [queue("root"), queue("a", deserved={"cpu": 9}), queue("b", priority=1)]
    assert order(tree(*world), "a", "b") == ["b", "a"]


def test_leaves_go_before_queues_with_others_under_them(tree: Any) -> None:
    assert order(tree(*TREE), "root", "team-a", "batch") == ["batch", "root", "team-a"]


def test_a_branch_that_deserves_something_goes_first_at_equal_shares(tree: Any) -> None:
    world = [queue("root"), queue("free"), queue("due", deserved={"cpu": 5})]
    ssn = tree(*world, *running("j", "due", [5]))
    assert order(ssn, "free", "due") == ["due", "free"]


# Places


def test_a_missing_parent_stops_the_queue_and_what_is_under_it_only(tree: Any) -> None:
    world = [queue("root"), queue("good"), queue("lost", parent="gone")]
    world += [queue("child", parent="lost")]
    jobs = [each for q in ("good", "lost", "child") for each in waiting(f"j-{q}", q, [1])]
    assert bound([*world, *jobs]) == ["j-good-0"]
    assert tree(*world, *jobs).plugins[0].problems == {
        "lost": "there is no queue 'gone' as its parent",
        "child": "its parent is queue 'lost', which has no valid place",
    }


@pytest.mark.parametrize("names", ["abxg", "gxba", "xagb"])
def test_a_circle_stops_its_queues_and_what_is_under_them_only(tree: Any, names: str) -> None:
    """Whatever order the queues come in."""
    made = {
        "a": queue("a", parent="b"),
        "b": queue("b", parent="a"),
        "x": queue("x", parent="a"),
        "g": queue("g"),
    }
    world = [*(made[name] for name in names), queue("root")]
    jobs = [each for name in names for each in waiting(f"j{name}", name, [1])]
    assert bound([*world, *jobs]) == ["jg-0"]
    problems = tree(*world, *jobs).plugins[0].problems
    assert set(problems) == set("abx")
    assert problems["x"] == "its parent is queue 'a', which has no valid place"
    assert problems["a"].startswith("its parents form a cycle: ")


def test_a_queue_under_itself_is_a_circle(tree: Any) -> None:
    problems = tree(queue("root"), queue("a", parent="a")).plugins[0].problems
    assert problems == {"a": "its parents form a cycle: a under a"}


def test_a_job_in_a_queue_with_others_under_it_waits_and_stops_nobody_else(tree: Any) -> None:
    world = [*TREE, *waiting("stray", "team-a", [1]), *waiting("jt", "training", [1])]
    world += waiting("jb", "batch", [1])
    assert bound(world) == ["jb-0", "jt-0"]
    problems = tree(*world).plugins[0].problems
    assert problems == {"team-a": "it has child queues, so it takes no jobs of its own"}


def test_without_a_root_nothing_stands() -> None:
    world = [queue("a"), *waiting("j", "a", [1])]
    assert bound(world) == []


def test_a_misplaced_queue_neither_lets_jobs_in_nor_reclaims(tree: Any) -> None:
    world = [queue("root"), queue("lost", parent="gone", deserved={"cpu": 5})]
    world += [queue("rich"), *running("old", "rich", [1]), *waiting("new", "lost", [1])]
    ssn = tree(*world)
    rows = ssn.snapshot.tasks.row_of
    lost, asking = ssn.snapshot.queues.row_of["lost"], ssn.task(rows["default/new-0"])
    assert not ssn.policy.preemptive(lost, asking.request[:, 0])
    assert ssn.policy.reclaimable(asking, [rows["default/old-0"]]) == []
    job = ssn.snapshot.jobs.row_of["default/new"]
    refusal = ssn.policy.job_enqueueable(job)
    assert not refusal
    assert refusal.why is Why.QUEUE_MISPLACED
    assert refusal.numbers["problem"] == "there is no queue 'gone' as its parent"


def test_misplaced_queues_go_last(tree: Any) -> None:
    world = [queue("root"), queue("lost", parent="gone"), queue("zoo"), queue("mad", parent="mad")]
    assert order(tree(*world), "lost", "mad", "zoo", "root") == ["zoo", "root", "lost", "mad"]
