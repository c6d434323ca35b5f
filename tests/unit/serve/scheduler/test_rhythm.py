"""Cycles by event: what begins one, how long changes gather, and what is not written meanwhile."""

import threading
from typing import Any

import pytest

from pumice.api.kinds import JOB, POD_GROUP, QUEUE
from pumice.cluster.embedded.node_operations import add_node
from pumice.metrics import Metrics
from pumice.serve.options import SchedulerOptions
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.loop import SchedulerLoop
from pumice.serve.scheduler.rhythm import Rhythm
from pumice.testing import pod, pod_group
from tests.unit.serve.scheduler.test_loop import Cluster, default, job, looping, node_of


@pytest.fixture
def cluster() -> Any:
    cluster = Cluster()
    make_queues(cluster)
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    return cluster


@pytest.fixture
def loop(cluster: Any) -> Any:
    """A loop that has seen the cluster."""
    loop = looping(cluster)
    loop._turn()
    loop._may_start()
    return loop


def test_what_the_scheduler_writes_begins_no_cycle(cluster: Any, loop: Any) -> None:
    job(cluster)
    assert loop._may_start()
    loop._turn()
    assert node_of(cluster) == "n"
    assert not loop._may_start()


def test_room_begins_a_cycle_only_if_something_waits(cluster: Any, loop: Any) -> None:
    job(cluster)
    loop._turn()
    cluster.delete("Pod", "default", "g-0", grace_s=0)
    add_node(cluster, "m", {"cpu": "1"})
    assert not loop._may_start()
    cluster.create(pod_group("large", phase=None))
    cluster.create(pod("large-0", group="large", cpu=9))
    assert loop._may_start()
    loop._turn()
    assert not loop._may_start()
    add_node(cluster, "large", {"cpu": "16"})
    assert loop._may_start()
    loop._turn()
    assert node_of(cluster, "large-0") == "large"


def test_a_gang_begins_a_cycle_once_it_is_whole(cluster: Any, loop: Any) -> None:
    cluster.create(pod_group("g", min_member=3, phase=None))
    for number in range(3):
        assert not loop._may_start()
        cluster.create(pod(f"g-{number}", group="g", cpu=1))
    assert loop._may_start()
    loop._turn()
    assert node_of(cluster, "g-2") == "n"


def test_a_part_of_a_gang_is_reported_after_a_moment(cluster: Any, loop: Any) -> None:
    cluster.create(pod_group("g", min_member=3, phase=None))
    cluster.create(pod("g-0", group="g", cpu=1))
    job(cluster, "other")
    assert loop._may_start()
    loop._turn()
    assert node_of(cluster, "other-0") == "n"
    assert not cluster.get(POD_GROUP, "default", "g").get("status")
    assert loop._live.next_due == cluster.now() + 0.5
    cluster.clock.advance(0.4)
    cluster.create(pod("g-1", group="g", cpu=1))
    assert not loop._may_start()
    assert loop._live.next_due == pytest.approx(cluster.now() + 0.5)
    cluster.clock.advance(0.6)
    loop._turn()
    (condition,) = cluster.get(POD_GROUP, "default", "g")["status"]["conditions"]
    assert condition["type"] == "Unschedulable"
    assert loop._live.next_due is None


def test_figures_of_queues_are_written_once_in_a_while(cluster: Any, loop: Any) -> None:
    def allocated() -> Any:
        return cluster.get(QUEUE, "", "default")["status"].get("allocated", {}).get("cpu")

    cluster.clock.advance(1)
    found = []
    for number in range(4):
        job(cluster, f"g{number}")
        loop._turn()
        found.append(allocated())
        cluster.clock.advance(0.2)
    assert found == ["1", "1", "1", "4"]


def test_the_group_of_a_volcano_job_is_admitted_at_once(cluster: Any, loop: Any) -> None:
    kind, _, api = JOB.partition(".")
    owner = {"apiVersion": f"{api}/v1alpha1", "kind": kind, "name": "j", "uid": "u"}
    group = pod_group("g", min_member=3, phase=None)
    group["metadata"]["ownerReferences"] = [owner]
    cluster.create(group)
    assert loop._may_start()
    loop._turn()
    assert cluster.get(POD_GROUP, "default", "g")["status"]["phase"] == "Inqueue"


def test_a_new_configuration_begins_a_cycle(cluster: Any) -> None:
    schedulers = [default()(), default()()]
    loop = looping(cluster, latest_scheduler=lambda: schedulers[0])
    loop._turn()
    assert not loop._may_start()
    del schedulers[0]
    assert loop._may_start()


def test_cycles_begin_with_events_in_a_thread(cluster: Any) -> None:
    wake, bound, stop = threading.Event(), threading.Event(), threading.Event()
    cluster.new_wake = lambda: wake
    cluster.listeners.append(lambda *_: wake.set())

    def seen(cycle: Any) -> None:
        if cycle.decisions.binds:
            bound.set()

    loop = SchedulerLoop(
        cluster, SchedulerOptions(schedule_period_s=60.0), default(), Metrics(), on_cycle=seen
    )
    thread = threading.Thread(target=loop.run, args=(stop,))
    thread.start()
    try:
        job(cluster)
        assert bound.wait(30)
    finally:
        stop.set()
        wake.set()
        thread.join()


@pytest.mark.parametrize(("change_after_s", "begins_after_s"), [(0.0, 0.015), (0.1, 0.105)])
def test_cycles_are_apart_but_a_pod_that_comes_alone_does_not_wait(
    change_after_s: float, begins_after_s: float
) -> None:
    class Waiting(threading.Event):
        """Waits on a clock of its own; a change comes after a while."""

        now = 0.0

        def wait(self, timeout: float | None = None) -> bool:
            Waiting.now += (timeout or 0.0) if self is stop else change_after_s
            return self is not stop

    stop, wake = Waiting(), Waiting()
    rhythm = Rhythm(wake, lambda: Waiting.now, 0.005, lambda: None)
    rhythm.wait(stop, 1.0, None, lambda: True)
    assert Waiting.now == pytest.approx(begins_after_s)
