"""capacity, queues side by side: what a queue deserves is stated, limits are real capabilities."""

from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.core.resources import CPU, MEMORY
from pumice.core.views import Queue
from pumice.framework.columns import Queues
from pumice.plugins.capacity import Capacity
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

CLUSTER = node("n", cpu=100, memory="400Gi", pods=1000)


def running(job: Any, in_queue: Any, cpus: Any, **more: Any) -> Any:
    pods = [pod(f"{job}-{i}", group=job, cpu=cpu, node="n") for i, cpu in enumerate(cpus)]
    return [pod_group(job, queue=in_queue, phase="Running", **more), *pods]


def waiting(job: Any, in_queue: Any, cpus: Any, **more: Any) -> Any:
    pods = [pod(f"{job}-{i}", group=job, cpu=cpu) for i, cpu in enumerate(cpus)]
    return [pod_group(job, queue=in_queue, phase="Inqueue", **more), *pods]


def cpus(ssn: Any, column: Any) -> Any:
    """Cpu of a column of limits, by queue."""
    names, amounts = ssn.snapshot.queues.names, getattr(ssn.plugins[0]._limits, column)[CPU]
    return {names[q]: amounts[q] / 1000 for q in range(ssn.snapshot.queues.n)}


def shares(ssn: Any) -> Any:
    queues = ssn.snapshot.queues
    return {queues.names[q]: ssn.plugins[0]._share(q) for q in range(queues.n)}


def decide(objects: Any, actions: str = "allocate") -> Any:
    conf = parse_conf(f'actions: "{actions}"\ntiers:\n- plugins:\n  - name: capacity\n')
    return Scheduler(conf).cycle([CLUSTER, *objects], 0.0)


def bound(decisions: Any) -> Any:
    return sorted(key.removeprefix("default/") for key in decisions.binds)


@pytest.mark.parametrize(
    ("held", "share"), [([], 0.0), ([10], 0.25), ([40], 1.0), ([40, 10], 1.25)]
)
def test_a_share_is_what_is_held_of_what_is_deserved(
    open_session: Any, held: Any, share: float
) -> None:
    """Nothing held is 0, all of it 1, more is above 1."""
    world = [queue("a", deserved={"cpu": 40, "memory": "160Gi"}), *running("j", "a", held)]
    assert shares(open_session([CLUSTER, *world], Capacity())) == {"a": share}


@pytest.mark.parametrize("held", [[], [1], [90]])
def test_a_queue_that_deserves_nothing_always_has_share_one(open_session: Any, held: Any) -> None:
    world = [queue("free"), *running("j", "free", held)]
    assert shares(open_session([CLUSTER, *world], Capacity())) == {"free": 1.0}


@pytest.mark.parametrize("capability", [{"memory": "200Gi"}, {"cpu": 0, "memory": "200Gi"}])
def test_cpu_that_a_capability_leaves_out_is_not_limited(
    open_session: Any, capability: Any
) -> None:
    ssn = open_session([CLUSTER, queue("a", capability=capability)], Capacity())
    assert cpus(ssn, "real_capability") == {"a": 100.0}
    assert ssn.plugins[0]._limits.real_capability[MEMORY, 0] == 200 * 2**30


@pytest.mark.parametrize("state", ["Closed", "Closing", None])
def test_a_queue_that_is_not_open_gets_nothing(state: Any) -> None:
    world = [queue("a", state=state), *waiting("j", "a", [1])]
    assert bound(decide(world)) == []
    pending = pod_group("j", queue="a", min_resources={"cpu": 1})
    world = [queue("a", state=state), pending]
    assert decide(world, "enqueue").pod_groups["default/j"].phase == "Pending"


@pytest.mark.parametrize(("cpu", "phase"), [("27", "Inqueue"), ("27001m", "Pending")])
def test_a_job_is_admitted_beside_what_its_queue_holds_and_reserves_less_what_is_elastic(
    cpu: str, phase: str
) -> None:
    """20 and 8 held, 15 more reserved, 10 elastic: 33 of 60 are taken."""
    world = [
        queue("a", capability={"cpu": 60}),
        *running("needs", "a", [8], min_resources={"cpu": 23}),
    ]
    world += running("elastic", "a", [10, 10], min_resources={"cpu": 10})
    job = pod_group("j", queue="a", min_resources={"cpu": cpu})
    assert decide([*world, job], "enqueue").pod_groups["default/j"].phase == phase


@pytest.mark.parametrize(
    ("left", "right", "first"),
    [
        ({"held": 10}, {"held": 20}, "a"),
        ({"held": 20}, {"held": 10}, "b"),
        ({"held": 40}, {"deserved": None, "held": 1}, "a"),
        ({"held": 41}, {"deserved": None, "held": 1}, "b"),
        ({"held": 10}, {"held": 20, "priority": 1}, "b"),
        ({"deserved": None}, {"deserved": None}, ""),
        ({"held": 10}, {"held": 10}, ""),
    ],
)
def test_two_queues_are_compared_and_ordered_alike(
    open_session: Any, left: Any, right: Any, first: str
) -> None:
    """Priority first, then the smallest share, then the queue that deserves something."""
    world: list[Any] = []
    for name, facts in (("a", left), ("b", right)):
        due = {"cpu": 40} if facts.get("deserved", 40) else {}
        world.append(queue(name, deserved=due, priority=facts.get("priority")))
        world += running(f"j{name}", name, [facts.get("held", 0)])
    ssn = open_session([CLUSTER, *world], Capacity())
    plugin, rows = ssn.plugins[0], ssn.snapshot.queues.row_of
    one, two = (Queue(ssn.snapshot, rows[name]) for name in "ab")
    compared = plugin.compare_queues(one, two)
    assert {-1: "a", 0: "", 1: "b"}[int(np.sign(compared))] == first
    assert plugin.compare_queues(two, one) == -compared
    keys = plugin.order_queues(Queues(ssn.snapshot, np.array([one.row, two.row]))).T.tolist()
    assert {True: "a", False: "b"}[keys[0] < keys[1]] == (first or "b")
    assert (keys[0] == keys[1]) is (not first)
