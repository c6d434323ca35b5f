"""proportion: the cluster is divided by weight, and no queue takes more than its part."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.core.resources import CPU
from pumice.framework.refusals import Why
from pumice.plugins.proportion import Proportion
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue


def running(job: Any, in_queue: Any, cpus: Any, on: str = "n", **more: Any) -> Any:
    """A running job of one-container pods, pod by pod."""
    pods = [pod(f"{job}-{i}", group=job, cpu=cpu, node=on) for i, cpu in enumerate(cpus)]
    return [pod_group(job, queue=in_queue, phase="Running", **more), *pods]


def waiting(job: Any, in_queue: Any, cpus: Any, phase: str = "Inqueue", **more: Any) -> Any:
    pods = [pod(f"{job}-{i}", group=job, cpu=cpu) for i, cpu in enumerate(cpus)]
    return [pod_group(job, queue=in_queue, phase=phase, **more), *pods]


def parts(ssn: Any, plugin: Any) -> Any:
    """Cpu that each queue deserves."""
    names = ssn.snapshot.queues.names
    return {names[q]: plugin._deserved[CPU, q] / 1000 for q in range(ssn.snapshot.queues.n)}


@pytest.fixture
def divided(open_session: Any) -> Any:
    def divide(*objects: Any) -> Any:
        plugin = Proportion()
        return parts(open_session([node("n", cpu=12), *objects], plugin), plugin)

    return divide


@pytest.mark.parametrize("capability", [{"memory": "1Gi"}, {"cpu": 0, "memory": "1Gi"}])
def test_cpu_that_a_capability_leaves_out_is_not_limited(divided: Any, capability: Any) -> None:
    world = [queue("a", capability=capability), *waiting("ja", "a", [12])]
    assert divided(*world) == {"a": 12.0}


def test_queues_of_no_weight_leave_the_cluster_undivided(divided: Any) -> None:
    assert divided(queue("a", weight=None), *waiting("ja", "a", [1])) == {"a": 0.0}


def decide(objects: Any, actions: str = "allocate", plugins: Any = ("proportion",)) -> Any:
    lines = "\n".join(f"  - name: {name}" for name in plugins)
    conf = parse_conf(f'actions: "{actions}"\ntiers:\n- plugins:\n{lines}\n')
    return Scheduler(conf).cycle([node("n", cpu=12), *objects], 0.0)


def bound(decisions: Any) -> Any:
    return sorted(key.removeprefix("default/") for key in decisions.binds)


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown", None])
def test_a_queue_that_is_not_open_gets_nothing(state: Any) -> None:
    world = [queue("a", state=state), *waiting("j", "a", [1], min_resources={"cpu": 1})]
    assert bound(decide(world)) == []
    pending = [queue("a", state=state)]
    pending += waiting("j", "a", [1], phase="Pending", min_resources={"cpu": 1})
    assert decide(pending, "enqueue").pod_groups["default/j"].phase == "Pending"


def test_large_priorities_are_kept_apart_from_shares(open_session: Any) -> None:
    """One step of priority outweighs any share, however large the numbers."""
    top = 2**31 - 1
    world = [queue("a", priority=top), queue("b", priority=top - 1)]
    world += running("ja", "a", [9]) + waiting("jb", "b", [9])
    ssn = open_session([node("n", cpu=12), *world], Proportion())
    assert ssn.ordering.sort_queues([1, 0]) == [0, 1]


def test_a_refused_task_is_recorded_with_its_numbers(open_session: Any) -> None:
    world = [queue("a"), *running("ja", "a", [1]), pod("p", group="ja", cpu=20)]
    ssn = open_session([node("n", cpu=12), *world], Proportion())
    task = ssn.task(ssn.snapshot.tasks.row_of["default/p"])
    refusal = ssn.policy.allocatable(0, task)
    assert not refusal
    assert refusal.why is Why.OVER_QUOTA
    assert refusal.numbers["at"] == "a"
    assert refusal.numbers["resource"] == "cpu"
    amounts = [refusal.numbers[key] for key in ("used", "request", "limit")]
    assert amounts == [1000.0, 20000.0, 12000.0]
