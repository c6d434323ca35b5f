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


def test_queues_that_ask_for_more_than_there_is_share_by_weight(divided: Any) -> None:
    world = [queue("a", weight=1), queue("b", weight=3)]
    world += waiting("ja", "a", [12]) + waiting("jb", "b", [12])
    assert divided(*world) == {"a": 3.0, "b": 9.0}


def test_what_one_queue_does_not_ask_for_goes_to_the_others(divided: Any) -> None:
    world = [queue("a", weight=1), queue("b", weight=3)]
    world += waiting("ja", "a", [12]) + waiting("jb", "b", [5])
    assert divided(*world) == pytest.approx({"a": 7.0, "b": 5.0})


def test_queues_without_jobs_have_no_part(divided: Any) -> None:
    world = [queue("a"), queue("idle", weight=9), *waiting("ja", "a", [12])]
    assert divided(*world) == {"a": 12.0, "idle": 0.0}


def test_a_capability_caps_a_part(divided: Any) -> None:
    world = [queue("a", capability={"cpu": 2}), queue("b")]
    world += waiting("ja", "a", [12]) + waiting("jb", "b", [12])
    assert divided(*world) == pytest.approx({"a": 2.0, "b": 10.0})


@pytest.mark.parametrize("capability", [{"memory": "1Gi"}, {"cpu": 0, "memory": "1Gi"}])
def test_cpu_that_a_capability_leaves_out_is_not_limited(divided: Any, capability: Any) -> None:
    world = [queue("a", capability=capability), *waiting("ja", "a", [12])]
    assert divided(*world) == {"a": 12.0}


def test_a_guarantee_is_a_floor_even_for_a_queue_that_asks_for_less(divided: Any) -> None:
    world = [queue("a", guarantee={"cpu": 4}), queue("b")]
    world += waiting("ja", "a", [1]) + waiting("jb", "b", [12])
    assert divided(*world) == pytest.approx({"a": 4.0, "b": 8.0})


def test_what_others_are_guaranteed_is_out_of_reach_also_if_they_are_idle(divided: Any) -> None:
    """The real capability is the total less all guarantees, with the queue's own added."""
    world = [queue("a", guarantee={"cpu": 1}), queue("idle", guarantee={"cpu": 4})]
    world += waiting("ja", "a", [12])
    assert divided(*world) == {"a": 8.0, "idle": 0.0}


def test_queues_of_no_weight_leave_the_cluster_undivided(divided: Any) -> None:
    assert divided(queue("a", weight=None), *waiting("ja", "a", [1])) == {"a": 0.0}


def test_a_part_never_exceeds_what_running_and_pending_pods_ask_for(divided: Any) -> None:
    gone = pod("gone", group="ja", cpu=4, node="n", phase="Succeeded")
    world = [queue("a"), *running("ja", "a", [2]), gone, pod("p", group="ja", cpu=1)]
    assert divided(*world) == {"a": 3.0}


def decide(objects: Any, actions: str = "allocate", plugins: Any = ("proportion",)) -> Any:
    lines = "\n".join(f"  - name: {name}" for name in plugins)
    conf = parse_conf(f'actions: "{actions}"\ntiers:\n- plugins:\n{lines}\n')
    return Scheduler(conf).cycle([node("n", cpu=12), *objects], 0.0)


def bound(decisions: Any) -> Any:
    return sorted(key.removeprefix("default/") for key in decisions.binds)


def test_a_queue_does_not_grow_beyond_its_part() -> None:
    """Three of six one-cpu pods: the part of a quarter of 12."""
    world = [queue("a", weight=1), queue("b", weight=3)]
    world += waiting("ja", "a", [1] * 6) + waiting("jb", "b", [9, 9])
    assert bound(decide(world)) == ["ja-0", "ja-1", "ja-2", "jb-0"]


def test_a_task_is_measured_in_what_it_asks_for_alone() -> None:
    """The queue has all its memory; a task that asks for cpu only still fits."""
    world = [queue("a"), queue("b"), *running("jb", "b", [1])]
    old = pod("old", group="ja", memory="7Gi", cpu=1, node="n")
    new = pod("new", group="ja", cpu=1)
    big = pod("big", group="jb", memory="8Gi")
    group = pod_group("ja", queue="a", phase="Running")
    assert bound(decide([*world, group, old, new, big])) == ["new"]


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown", None])
def test_a_queue_that_is_not_open_gets_nothing(state: Any) -> None:
    world = [queue("a", state=state), *waiting("j", "a", [1], min_resources={"cpu": 1})]
    assert bound(decide(world)) == []
    pending = [queue("a", state=state)]
    pending += waiting("j", "a", [1], phase="Pending", min_resources={"cpu": 1})
    assert decide(pending, "enqueue").pod_groups["default/j"].phase == "Pending"


def test_a_queue_with_all_it_deserves_of_everything_is_overused(open_session: Any) -> None:
    world = [queue("a"), queue("b"), *waiting("jb", "b", [12])]
    plugin = Proportion()
    ssn = open_session([node("n", cpu=12), *world, *running("ja", "a", [6])], plugin)
    a, b = (ssn.snapshot.queues.row_of[name] for name in "ab")
    assert (ssn.policy.overused(a), ssn.policy.overused(b)) == (True, False)


def test_priority_then_share_orders_queues(open_session: Any) -> None:
    world = [
        queue("full"),
        queue("empty", created="2026-01-02T00:00:00Z"),
        queue("urgent", priority=5, created="2026-01-03T00:00:00Z"),
    ]
    world += running("jf", "full", [2]) + waiting("je", "empty", [2]) + running("ju", "urgent", [9])
    ssn = open_session([node("n", cpu=12), *world], Proportion())
    names = ssn.snapshot.queues.names
    order = [names[row] for row in ssn.ordering.sort_queues(range(3))]
    assert order == ["urgent", "empty", "full"]


def test_large_priorities_are_kept_apart_from_shares(open_session: Any) -> None:
    """One step of priority outweighs any share, however large the numbers."""
    top = 2**31 - 1
    world = [queue("a", priority=top), queue("b", priority=top - 1)]
    world += running("ja", "a", [9]) + waiting("jb", "b", [9])
    ssn = open_session([node("n", cpu=12), *world], Proportion())
    assert ssn.ordering.sort_queues([1, 0]) == [0, 1]


def test_pods_beyond_the_part_of_their_queue_may_be_reclaimed(open_session: Any) -> None:
    """5 cpu in a part of 3: the first two of five may go, then the queue is down to its part."""
    world = [queue("a", weight=1), queue("b", weight=3)]
    world += running("ja", "a", [1] * 5) + waiting("jb", "b", [12])
    ssn = open_session([node("n", cpu=12), *world], Proportion())
    tasks = ssn.snapshot.tasks
    victims = [tasks.row_of[f"default/ja-{i}"] for i in range(5)]
    asking = ssn.task(tasks.row_of["default/jb-0"])
    assert ssn.policy.reclaimable(asking, victims) == victims[:2]


def test_a_queue_may_reclaim_up_to_its_part(open_session: Any) -> None:
    world = [queue("a", weight=1), queue("b", weight=3)]
    world += running("ja", "a", [1] * 5) + waiting("jb", "b", [9, 1, 12])
    ssn = open_session([node("n", cpu=12), *world], Proportion())
    b, request = ssn.snapshot.queues.row_of["b"], ssn.snapshot.request
    big, small, huge = (request(ssn.snapshot.tasks.row_of[f"default/jb-{i}"]) for i in range(3))
    assert ssn.policy.preemptive(b, big)
    assert ssn.policy.preemptive(b, small)
    assert not ssn.policy.preemptive(b, huge)


def admitted(objects: Any) -> Any:
    groups = decide(objects, "enqueue").pod_groups
    return sorted(key.removeprefix("default/") for key, s in groups.items() if s.phase == "Inqueue")


def test_a_job_is_admitted_beside_what_its_queue_holds_and_has_reserved() -> None:
    """5 running, 3 more reserved by the running job, capability 10: 2 fit, 2001m do not."""
    old = running("old", "a", [5], min_resources={"cpu": 8})
    for cpu, names in (("2", ["j"]), ("2001m", [])):
        job = pod_group("j", queue="a", min_resources={"cpu": cpu})
        assert admitted([queue("a", capability={"cpu": 10}), *old, job]) == names


def test_a_job_in_phase_inqueue_does_not_reserve_twice_what_it_holds() -> None:
    """2 of 5 are bound already: 5 in all are taken of 6."""
    old = waiting("old", "a", [3], min_resources={"cpu": 5}, min_member=2)
    held = pod("held", group="old", cpu=2, node="n")
    for cpu, names in (("1", ["j", "old"]), ("1001m", ["old"])):
        job = pod_group("j", queue="a", min_resources={"cpu": cpu})
        assert admitted([queue("a", capability={"cpu": 6}), *old, held, job]) == names


def test_what_jobs_hold_beyond_their_needs_does_not_stand_in_the_way() -> None:
    """10 running, of which the job needs 4: 6 are elastic, so 6 more may be admitted."""
    old = running("old", "a", [5, 5], min_resources={"cpu": 4})
    for cpu, names in (("6", ["j"]), ("6001m", [])):
        job = pod_group("j", queue="a", min_resources={"cpu": cpu})
        assert admitted([queue("a", capability={"cpu": 10}), *old, job]) == names


def test_a_job_admitted_by_an_earlier_tier_is_reserved_for_all_the_same() -> None:
    conf = parse_conf("""
actions: "enqueue"
tiers:
- plugins:
  - name: sla
    arguments:
      sla-waiting-time: 1s
- plugins:
  - name: proportion
""")
    jobs = [
        pod_group("late", queue="a", min_resources={"cpu": 9}, created="2026-01-01T00:00:00Z"),
        pod_group("new", queue="a", min_resources={"cpu": 2}, created="2099-01-01T00:00:00Z"),
    ]
    world = [node("n", cpu=12), queue("a", capability={"cpu": 10}), *jobs]
    groups = Scheduler(conf).cycle(world, 1_800_000_000.0).pod_groups
    assert {key: s.phase for key, s in groups.items()} == {
        "default/late": "Inqueue",
        "default/new": "Pending",
    }


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
