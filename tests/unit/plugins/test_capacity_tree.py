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


def test_leaves_go_before_queues_with_others_under_them(tree: Any) -> None:
    assert order(tree(*TREE), "root", "team-a", "batch") == ["batch", "root", "team-a"]


# Places


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
