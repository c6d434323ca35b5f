"""Queues on a real API server: shares, reclaim, preemption, hierarchy, closing."""

from typing import Any

import pytest

from pumice.testing.builders import priority_class, queue
from tests.e2e_kube.servers import STRICT, conf
from tests.e2e_kube.space import command, fresh, job
from tests.e2e_kube.waiting import until

pytestmark = pytest.mark.usefixtures("controllers", "webhooks")


def sharing(action: str) -> str:
    actions = f"enqueue, allocate, {action}, backfill"
    return conf("predicates", "proportion", "nodeorder", first=STRICT, actions=actions)


def running(space: Any, *jobs: Any) -> Any:
    return [space.running(each) for each in jobs]


def test_two_queues_share_and_the_second_reclaims_its_part(space: Any, scheduler: Any) -> None:
    space.nodes(2, cpu=4)
    space.kubectl.create(fresh(queue("left", weight=1)), fresh(queue("right", weight=1)))
    with scheduler(sharing("reclaim")):
        space.kubectl.create(job("first", replicas=8, min_available=1, queue="left"))
        space.wait_running("first", 8)
        space.kubectl.create(job("second", replicas=8, min_available=4, queue="right"))
        until(
            "four pods each",
            lambda: running(space, "first", "second"),
            lambda seen: seen == [4, 4],
        )
        until("notified of the eviction", lambda: space.events("Evict"))  # once it was answered


def test_a_more_important_job_preempts_in_its_queue(space: Any, scheduler: Any) -> None:
    space.nodes(1, cpu=4)
    space.kubectl.create(
        fresh(priority_class("low", value=10)), fresh(priority_class("high", value=1000))
    )
    with scheduler(sharing("preempt")):
        small = job("small", replicas=4, min_available=1, priority_class="low")
        space.kubectl.create(small)
        space.wait_running("small", 4)
        space.kubectl.create(job("urgent", replicas=2, priority_class="high"))
        until(
            "two urgent pods, two others",
            lambda: running(space, "small", "urgent"),
            lambda seen: seen == [2, 2],
        )


def test_capacity_holds_on_every_level_of_the_hierarchy(space: Any, scheduler: Any) -> None:
    """The department may use 6 of 8 CPUs; of these each team deserves 3, and one may borrow 1."""
    space.nodes(2, cpu=4)
    department = queue("dept", capability={"cpu": 6}, deserved={"cpu": 6}, parent="root")
    team: dict[str, Any] = {"capability": {"cpu": 4}, "deserved": {"cpu": 3}, "parent": "dept"}
    tree = {"name": "capacity", "enableHierarchy": True}
    actions = "enqueue, allocate, reclaim, backfill"
    with scheduler(conf("predicates", tree, "nodeorder", actions=actions)):
        space.kubectl.create(fresh(department))
        space.kubectl.create(fresh(queue("team-a", **team)), fresh(queue("team-b", **team)))
        space.kubectl.create(job("first", replicas=6, min_available=1, queue="team-a"))
        space.wait_running("first", 4)
        space.kubectl.create(job("second", replicas=6, min_available=3, queue="team-b"))
        until(
            "three pods each",
            lambda: running(space, "first", "second"),
            lambda seen: seen == [3, 3],
        )
        until(
            "six CPUs allocated in the department",
            lambda: space.queue("dept").get("status", {}).get("allocated", {}).get("cpu"),
            lambda cpu: cpu == "6",
        )


def test_a_closed_queue_finishes_its_work_and_takes_no_more(space: Any, scheduler: Any) -> None:
    space.nodes(1, cpu=4)
    space.kubectl.create(fresh(queue("night")))
    space.kubectl.wait("queue/night", ".status.state", "Open")
    with scheduler():
        space.kubectl.create(job("train", replicas=1, queue="night"))
        space.wait_running("train", 1)
        night = space.kubectl.get("queue/night")
        space.kubectl.create(command("close-night", "CloseQueue", "Queue", night))
        space.kubectl.wait("queue/night", ".status.state", "Closing")
        said = space.kubectl.refuses(job("late", queue="night"))
        assert "night" in said
        assert "Closing" in said or "Open" in said
        assert space.running("train") == 1
        space.kubectl("delete", "vcjob/train")
        space.kubectl(
            "delete", "podgroups.scheduling.volcano.sh,pods", "--all", "--grace-period=0", "--force"
        )
        space.kubectl.wait("queue/night", ".status.state", "Closed")
        space.kubectl.create(command("open-night", "OpenQueue", "Queue", night))
        space.kubectl.wait("queue/night", ".status.state", "Open")
        space.kubectl.create(job("late", queue="night"))
        space.wait_running("late", 1)
