"""Node locks and cards on a cluster: written before the bind, counted at once, removed."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.times import epoch
from pumice.clock import VirtualClock
from pumice.cluster.base import DirectWriter
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ConflictError, RejectedError, UnavailableError
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
- plugins:
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: %s}
"""
LOCK = "hamivgpu"
IDS = "volcano.sh/vgpu-ids-new"
START = epoch("2026-01-15T10:00:00Z")
LIMITS = {"volcano.sh/vgpu-memory": "600"}


class Delayed:
    """Carries writes out on demand, and their follow-ups at once."""

    def __init__(self, cluster: Any) -> None:
        self._direct = DirectWriter(cluster)
        self.waiting: list[Any] = []

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        self.waiting.append((write, lane, done))

    def flush(self, timeout_s: Any) -> bool:
        return not self.waiting

    def go(self, fail: Any = None, of: str = "bind", *, loses_answer: bool = False) -> list[str]:
        """Do all that waits; writes of a verb, or of a kind, may fail.  Return what was done."""
        done_so_far = []
        while self.waiting:
            write, lane, done = self.waiting.pop(0)
            kind = write.arguments.get("kind", write.verb)
            if kind in ("bind", "Node"):
                done_so_far.append(kind)
            if fail is None or kind != of:
                self._direct.submit(write, lane=lane, done=done)
                continue
            if loses_answer:
                self._direct.submit(write, lane=lane)
            done(fail)
        return done_so_far


def add_card_node(
    cluster: Any, name: str = "n", cards: str = "g0,10,1000,NVIDIA,true,hami-core:"
) -> None:
    amounts = {f"volcano.sh/vgpu-{each}": "9000" for each in ("number", "memory", "cores")}
    add_node(cluster, name, {"cpu": "8", "memory": "8Gi", **amounts})
    marks = {"volcano.sh/node-vgpu-register": cards}
    cluster.patch("Node", "", name, {"metadata": {"annotations": marks}})


def ask(cluster: Any, name: str = "p", **more: Any) -> None:
    cluster.create(pod_group(name, phase=None))
    cluster.create(pod(name, group=name, cpu=1, limits=LIMITS, resources=LIMITS, **more))


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(START))
    make_queues(cluster)
    add_card_node(cluster)
    ask(cluster)
    return cluster


@pytest.fixture
def writer(cluster: Any) -> Any:
    return Delayed(cluster)


def scheduling(cluster: Any, writer: Any, *, locks: bool = True) -> Any:
    scheduler = Scheduler(parse_conf(CONF % str(locks).lower()))
    return LiveScheduler(cluster, scheduler, assume=True, writer=writer, confirm_s=10.0)


@pytest.fixture
def live(cluster: Any, writer: Any) -> Any:
    return scheduling(cluster, writer)


def node_of(cluster: Any, name: str = "p") -> Any:
    return cluster.get("Pod", "default", name)["spec"].get("nodeName")


def lock_of(cluster: Any, name: str = "n") -> Any:
    return cluster.get("Node", "", name)["metadata"]["annotations"].get(LOCK)


def set_lock(cluster: Any, since: Any) -> None:
    cluster.patch("Node", "", "n", {"metadata": {"annotations": {LOCK: since}}})


def finish(cluster: Any, name: str = "p") -> None:
    """Do what the device plugin of the node does when it has handed the devices out."""
    marks = {"volcano.sh/bind-phase": "success"}
    cluster.patch("Pod", "default", name, {"metadata": {"annotations": marks}})
    set_lock(cluster, None)


def turns(live: Any, cluster: Any, writer: Any, seconds: int) -> None:
    for _ in range(seconds):
        cluster.clock.advance(1)
        live.cycle()
        writer.go()


def test_the_node_is_locked_then_the_pod_bound(cluster: Any, writer: Any, live: Any) -> None:
    live.cycle()
    assert writer.go() == ["Node", "bind"]
    assert lock_of(cluster) == "2026-01-15T10:00:00.000000Z"
    bound = cluster.get("Pod", "default", "p")
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["annotations"][IDS] == "g0,NVIDIA,600,0:"


def test_without_the_switch_no_node_is_locked(cluster: Any, writer: Any) -> None:
    scheduling(cluster, writer, locks=False).cycle()
    assert writer.go() == ["bind"]
    assert lock_of(cluster) is None


def test_cards_are_taken_before_the_cluster_knows(cluster: Any, writer: Any) -> None:
    live = scheduling(cluster, writer, locks=False)
    assert live.cycle().decisions.binds == {"default/p": "n"}
    ask(cluster, "q")
    assert live.cycle().decisions.binds == {}  # 600 of 1000 are taken
    writer.go()
    assert live.cycle().decisions.binds == {}


def test_the_next_pod_waits_for_the_device_plugin(cluster: Any, writer: Any, live: Any) -> None:
    add_card = "g0,10,9000,NVIDIA,true,hami-core:"
    marks = {"volcano.sh/node-vgpu-register": add_card}
    cluster.patch("Node", "", "n", {"metadata": {"annotations": marks}})
    live.cycle()
    ask(cluster, "q")
    assert live.cycle().decisions.binds == {}  # nothing is written yet
    writer.go()
    turns(live, cluster, writer, 3)
    assert node_of(cluster, "q") is None
    finish(cluster)
    turns(live, cluster, writer, 1)
    assert node_of(cluster, "q") == "n"


def test_a_lock_that_was_forgotten_ends_after_five_minutes(
    cluster: Any, writer: Any, live: Any
) -> None:
    set_lock(cluster, "2026-01-15T09:59:00Z")
    turns(live, cluster, writer, 200)
    assert node_of(cluster) is None
    turns(live, cluster, writer, 60)
    assert node_of(cluster) == "n"
    assert lock_of(cluster) == "2026-01-15T10:04:01.000000Z"


@pytest.mark.parametrize("reported_of", [True, False], ids=["known by then", "not known yet"])
def test_a_lock_that_another_scheduler_takes_first_keeps_the_pod_waiting(
    cluster: Any, writer: Any, live: Any, reported_of: bool
) -> None:
    live.cycle()
    set_lock(cluster, "2026-01-15T10:00:00Z" if not reported_of else "2026-01-15T09:59:59Z")
    if reported_of:
        live.informer.sync()
    assert "bind" not in writer.go()
    turns(live, cluster, writer, 8)
    assert node_of(cluster) is None
    assert lock_of(cluster) in ("2026-01-15T10:00:00Z", "2026-01-15T09:59:59Z")
    set_lock(cluster, None)
    turns(live, cluster, writer, 30)
    assert node_of(cluster) == "n"


def test_a_refused_bind_takes_the_lock_back(cluster: Any, writer: Any, live: Any) -> None:
    live.cycle()
    writer.go(RejectedError("Pod", problem="no"))
    assert lock_of(cluster) == "2026-01-15T10:00:00.000000Z"
    live.catch_up()
    writer.go()
    assert lock_of(cluster) is None
    turns(live, cluster, writer, 3)
    assert node_of(cluster) == "n"


def test_a_lock_that_is_another_ones_by_now_is_not_taken_back(
    cluster: Any, writer: Any, live: Any
) -> None:
    live.cycle()
    writer.go(RejectedError("Pod", problem="no"))
    set_lock(cluster, "2026-01-15T10:00:07Z")
    live.catch_up()
    writer.go()
    assert lock_of(cluster) == "2026-01-15T10:00:07Z"


@pytest.mark.parametrize(
    "error", [RejectedError("Node", problem="no"), ConflictError("Node", "", "n", "changed")]
)
def test_without_the_lock_a_pod_is_not_bound(
    cluster: Any, writer: Any, live: Any, error: Any
) -> None:
    live.cycle()
    assert writer.go(error, of="Node") == ["Node"]
    assert node_of(cluster) is None
    turns(live, cluster, writer, 8)
    assert node_of(cluster) == "n"


@pytest.mark.parametrize("of", ["Node", "bind"])
@pytest.mark.parametrize("loses_answer", [True, False])
def test_writes_without_an_answer_end_well(
    cluster: Any, writer: Any, live: Any, of: str, loses_answer: bool
) -> None:
    live.cycle()
    writer.go(UnavailableError(problem="timeout"), of=of, loses_answer=loses_answer)
    turns(live, cluster, writer, 30)
    assert node_of(cluster) == "n"
    assert lock_of(cluster) is not None
    finish(cluster)
    turns(live, cluster, writer, 2)
    assert lock_of(cluster) is None


def test_a_node_that_goes_meanwhile_hurts_nobody_else(cluster: Any, writer: Any, live: Any) -> None:
    live.cycle()
    cluster.delete("Node", "", "n")
    writer.go()
    add_card_node(cluster, "other")
    turns(live, cluster, writer, 8)
    assert node_of(cluster) == "other"
