"""One cycle at a time on a cluster: writes count, failures are undone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pumice.api.annotations import QUEUE_GATE
from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.base import DirectWriter
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.status import PHASES
from pumice.errors import ConflictError, FencedError, NotFoundError, RejectedError, UnavailableError
from pumice.plugin import Plugin, SimulatorAssumptions
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group, priority_class, queue

GROUP = "PodGroup.scheduling.volcano.sh"
CONF = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
QUEUE = "Queue.scheduling.volcano.sh"
GATED_CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""


class Delayed:
    """Carries writes out on demand; ``answer`` may change what is reported."""

    def __init__(self, cluster: Any) -> None:
        self._direct = DirectWriter(cluster)
        self.waiting: list[Any] = []
        self.done: list[Any] = []

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        self.waiting.append((write, lane, done))

    def flush(self, timeout_s: Any) -> bool:
        return not self.waiting

    def go(self, fail: Any = None, *, loses_answer: bool = False) -> None:
        """Do all that waits; with ``fail`` binds and evictions get that error instead."""
        waiting, self.waiting = self.waiting, []
        for write, lane, done in waiting:
            if fail is None or write.verb not in ("bind", "evict"):
                self._direct.submit(write, lane=lane, done=done)
            else:
                if loses_answer:
                    self._direct.submit(write, lane=lane)
                done(fail)
            self.done.append(write)

    def verbs(self) -> Any:
        return [write.verb for write, _, _ in self.waiting]


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    make_queues(cluster)
    add_node(cluster, "n", {"cpu": "1", "memory": "8Gi"})
    cluster.create(pod_group("g", phase=None))
    cluster.create(pod("p", group="g", cpu=1))
    return cluster


@pytest.fixture
def writer(cluster: Any) -> Any:
    return Delayed(cluster)


@pytest.fixture
def live(cluster: Any, writer: Any) -> Any:
    scheduler = Scheduler(parse_conf(CONF))
    return LiveScheduler(cluster, scheduler, assume=True, writer=writer, confirm_s=10.0)


def rival(cluster: Any) -> None:
    cluster.create(pod_group("h", phase=None))
    cluster.create(pod("r", group="h", cpu=1))


def node_of(cluster: Any, name: str = "p") -> Any:
    return cluster.get("Pod", "default", name)["spec"].get("nodeName")


def test_a_bound_pod_holds_its_room_before_the_cluster_knows(
    cluster: Any, writer: Any, live: Any
) -> None:
    assert live.cycle().decisions.binds == {"default/p": "n"}
    rival(cluster)
    assert live.cycle().decisions.binds == {}
    writer.go()
    assert live.cycle().writes.bound == ["default/p"]
    assert live.recovery.open == 0


def opening(cluster: Any, writer: Any) -> Any:
    """A scheduler that opens queue gates, and a queue with room for one pod."""
    cluster.create(queue("small", capability={"cpu": 1}))
    cluster.patch(QUEUE, "", "small", {"status": {"state": "Open"}}, subresource="status")
    conf = replace(parse_conf(GATED_CONF), queue_gates=True)
    return LiveScheduler(cluster, Scheduler(conf), assume=True, writer=writer)


def gates(cluster: Any, name: str) -> Any:
    return cluster.get("Pod", "default", name)["spec"]["schedulingGates"]


def test_room_behind_an_opened_gate_is_kept_before_the_cluster_knows(
    cluster: Any, writer: Any
) -> None:
    """A more urgent pod comes between the decision and the write: the room is not for it."""
    live = opening(cluster, writer)
    cluster.create(priority_class("high", value=100))
    for name, rank in (("early", None), ("urgent", "high")):
        cluster.create(pod_group(name, queue="small", phase=None, priority_class=rank))
        spec = {"schedulingGates": [{"name": QUEUE_GATE}], "nodeSelector": {"pool": "later"}}
        marks = {QUEUE_GATE: "true"}
        cluster.create(pod(name, group=name, cpu=1, annotations=marks, spec=spec))
        assert live.cycle().decisions.opened_gates == ["default/early"]
    writer.go()
    cycle = live.cycle()
    assert gates(cluster, "early") == []
    assert cycle.decisions.opened_gates == []


def test_a_gate_whose_removal_fails_is_removed_again(cluster: Any, writer: Any) -> None:
    live = opening(cluster, writer)
    cluster.create(pod_group("late", queue="small", phase=None))
    spec = {"schedulingGates": [{"name": QUEUE_GATE}]}
    cluster.create(pod("late", group="late", cpu=1, annotations={QUEUE_GATE: "true"}, spec=spec))
    live.cycle()
    for write, _, done in writer.waiting:
        done(UnavailableError(problem="no answer") if write.verb == "patch" else None)
    writer.waiting.clear()
    live.cycle()
    live.cycle()
    writer.go()
    assert gates(cluster, "late") == []


@pytest.mark.parametrize(
    ("error", "tries", "is_reported"),
    [
        (RejectedError("Pod", problem="no"), [0, 2, 5, 10, 19], True),
        (UnavailableError(problem="not sent", sent=False), [0, 2, 5, 10, 19, 28], False),
    ],
)
def test_a_bind_that_fails_frees_the_room_and_is_tried_ever_more_rarely(
    cluster: Any, writer: Any, live: Any, error: Any, tries: list[int], is_reported: bool
) -> None:
    tried = []
    for second in range(32):
        if live.cycle().decisions.binds:
            tried.append(second)
        writer.go(error)
        cluster.clock.advance(1)
    assert tried == tries
    reasons = {event["reason"] for event in cluster.list("Event")[0]}
    assert ("FailedScheduling" in reasons) == is_reported
    rival(cluster)
    assert live.cycle().decisions.binds == {"default/r": "n"}


def test_a_bind_without_an_answer_keeps_its_room_and_is_sent_again(
    cluster: Any, writer: Any, live: Any
) -> None:
    live.cycle()
    rival(cluster)
    writer.go(UnavailableError(problem="timeout"))
    assert live.cycle().decisions.binds == {}
    assert "bind" in writer.verbs()
    writer.go()
    live.cycle()
    assert node_of(cluster) == "n"
    assert node_of(cluster, "r") is None


def test_a_bind_that_was_done_but_reported_lost_is_found_out(
    cluster: Any, writer: Any, live: Any
) -> None:
    live.cycle()
    rival(cluster)
    writer.go(ConflictError("Pod", problem="has a node"), loses_answer=True)
    assert live.cycle().decisions.binds == {}
    assert live.recovery.open == 0
    assert node_of(cluster) == "n"


def test_after_many_lost_answers_the_cluster_is_asked(cluster: Any, writer: Any, live: Any) -> None:
    live.cycle()
    for _ in range(20):
        writer.go(UnavailableError(problem="timeout"))
        live.catch_up()
        cluster.clock.advance(1)
    assert sum(write.verb == "bind" for write in writer.done) == 4
    assert live.recovery.undone == 1


def test_a_refusal_after_a_lost_answer_proves_nothing(cluster: Any, writer: Any, live: Any) -> None:
    live.cycle()
    rival(cluster)
    live.informer._cluster = Deaf(cluster)
    writer.go(UnavailableError(problem="timeout"), loses_answer=True)
    live.cycle()
    writer.go(RejectedError("Pod", problem="no"))
    for _ in range(8):
        assert live.cycle().decisions.binds == {}
        cluster.clock.advance(1)
    assert live.recovery.undone == 0


def test_a_pod_that_is_gone_is_not_placed_again(cluster: Any, writer: Any, live: Any) -> None:
    live.cycle()
    writer.go(NotFoundError("Pod", "default", "p"))
    assert live.cycle().decisions.binds == {}
    cluster.delete("Pod", "default", "p", grace_s=0)
    cluster.create(pod("p", group="g", cpu=1))
    assert live.cycle().decisions.binds == {"default/p": "n"}


def test_a_bind_whose_report_is_lost_is_looked_up_in_the_end(
    cluster: Any, writer: Any, live: Any
) -> None:
    live.cycle()
    writer.waiting = []
    for seconds in (1, 500):
        cluster.clock.advance(seconds)
        assert live.cycle().decisions.binds == {}
    cluster.clock.advance(100)
    live.cycle()
    assert live.recovery.undone == 1
    cluster.clock.advance(2)
    assert live.cycle().decisions.binds == {"default/p": "n"}


def test_what_others_bound_elsewhere_is_counted_there(cluster: Any, writer: Any, live: Any) -> None:
    add_node(cluster, "m", {"cpu": "1", "memory": "8Gi"})
    (node,) = live.cycle().decisions.binds.values()
    other = "m" if node == "n" else "n"
    cluster.bind("default", "p", other, {})
    live.informer._cluster = Deaf(cluster)
    writer.go(ConflictError("Pod", problem="has a node"))
    rival(cluster)
    assert live.cycle().decisions.binds == {}
    tasks, names = live.informer.snapshot.tasks, live.informer.snapshot.nodes.names
    assert names[tasks.node[tasks.row_of["default/p"]]] == other


class Deaf:
    """A cluster whose watches are silent."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def __getattr__(self, name: Any) -> Any:
        return getattr(self._cluster, name)

    def watch(self, kind: Any, namespace: str = "", since: str = "") -> Any:
        return iter(())


def test_a_bind_never_reported_is_looked_up_and_kept_if_true(
    cluster: Any, writer: Any, live: Any
) -> None:
    live.cycle()
    live.informer._cluster = Deaf(cluster)
    writer.go()
    for _ in range(3):
        cluster.clock.advance(11)
        assert live.cycle().decisions.binds == {}
    assert live.recovery.open == 1
    assert live.recovery.undone == 0


def test_a_bind_never_reported_is_taken_back_if_it_is_not_there(
    cluster: Any, writer: Any, live: Any
) -> None:
    live.cycle()
    write, _, done = writer.waiting.pop(0)
    assert write.verb == "bind"
    done(None)  # the answer of a server that forgot
    live.cycle()
    assert live.recovery.open == 1
    cluster.clock.advance(11)
    live.catch_up()
    assert live.recovery.undone == 1


def test_while_the_cluster_does_not_answer_what_is_in_doubt_stays(
    cluster: Any, writer: Any, live: Any
) -> None:
    live.cycle()
    writer.go(ConflictError("Pod", problem="?"))
    read = live.recovery._read

    def down(*_: Any) -> None:
        raise UnavailableError(problem="down")

    live.recovery._read = down
    rival(cluster)
    assert live.cycle().decisions.binds == {}
    live.recovery._read = read
    assert live.cycle().decisions.binds == {"default/r": "n"}


def test_a_pod_that_went_meanwhile_is_forgotten(cluster: Any, writer: Any, live: Any) -> None:
    live.cycle()
    cluster.delete("Pod", "default", "p")
    cluster.create(pod("p", group="g", cpu=1))
    live.informer.sync()
    writer.go()
    assert node_of(cluster) is None
    assert live.cycle().decisions.binds == {"default/p": "n"}
    writer.go()
    assert node_of(cluster) == "n"


def preempting(cluster: Any, writer: Any, live: Any) -> None:
    """Have a pod evicted for a more important one; the eviction waits to be sent."""
    live.cycle()
    writer.go()
    cluster.create(priority_class("high", value=9))
    group = cluster.get(GROUP, "default", "g")
    cluster.update({**group, "spec": {**group["spec"], "minMember": 0}})
    cluster.create(pod_group("h", phase=None, priority_class="high"))
    cluster.create(pod("r", group="h", cpu=1, priority_class="high"))
    decided = live.cycle().decisions
    assert decided.evictions == ["default/p"]
    assert decided.evicted_by == {"default/p": "preempt"}


def victims(writer: Any, live: Any) -> Any:
    """Return the evictions of the next cycles: in the first, a useless nomination is removed."""
    found = live.cycle().decisions.evictions
    writer.go()
    return found + live.cycle().decisions.evictions


def test_a_victim_is_evicted_once(cluster: Any, writer: Any, live: Any) -> None:
    preempting(cluster, writer, live)
    assert live.cycle().decisions.evictions == []
    writer.go()
    assert live.cycle().writes.evicted == ["default/p"]
    assert live.recovery.open == 0


@pytest.mark.parametrize(
    "error", [RejectedError("Pod", problem="no"), FencedError(), UnavailableError(sent=False)]
)
def test_a_victim_that_was_not_evicted_is_seen_again(
    cluster: Any, writer: Any, live: Any, error: Any
) -> None:
    preempting(cluster, writer, live)
    writer.go(error)
    assert victims(writer, live) == ["default/p"]


def test_an_eviction_in_doubt_is_looked_up(cluster: Any, writer: Any, live: Any) -> None:
    preempting(cluster, writer, live)
    writer.go(UnavailableError(problem="timeout"), loses_answer=True)
    for _ in range(2):
        assert live.cycle().decisions.evictions == []
        cluster.clock.advance(6)
    assert live.recovery.undone == 0


def test_an_eviction_that_was_lost_is_decided_again(cluster: Any, writer: Any, live: Any) -> None:
    preempting(cluster, writer, live)
    writer.go(UnavailableError(problem="timeout"))
    assert victims(writer, live) == []
    cluster.clock.advance(6)
    assert victims(writer, live) == ["default/p"]
    assert live.recovery.undone == 1


def phase(live: Any) -> Any:
    jobs = live.informer.snapshot.jobs
    return PHASES[jobs.phase[jobs.row_of["default/g"]]]


def answer_patches(writer: Any, error: Any = None) -> None:
    """Report patches without doing them."""
    for write, _, done in writer.waiting:
        if write.verb == "patch":
            done(error)
    writer.waiting = [each for each in writer.waiting if each[0].verb != "patch"]


def test_a_group_whose_status_was_not_written_is_as_the_cluster_has_it(
    cluster: Any, writer: Any, live: Any
) -> None:
    live.cycle()
    cluster.clock.advance(1)  # a status of a job that starts is held
    live.cycle()
    answer_patches(writer, UnavailableError(problem="down"))
    live.catch_up()
    assert phase(live) == ""


def test_a_group_never_reported_is_taken_as_the_cluster_has_it(
    cluster: Any, writer: Any, live: Any
) -> None:
    live.cycle()
    cluster.clock.advance(1)
    live.cycle()
    answer_patches(writer)
    live.catch_up()
    assert phase(live) == "Running"
    cluster.clock.advance(11)
    live.catch_up()
    assert phase(live) == ""


def test_only_nodes_with_one_of_the_labels_count(cluster: Any, writer: Any) -> None:
    cluster.patch("Node", "", "n", {"metadata": {"labels": {"pool": "batch"}}})
    for selector, bound in (
        (("pool: web", "bad"), {}),
        (("pool:batch", "x:y"), {"default/p": "n"}),
    ):
        live = LiveScheduler(
            cluster, Scheduler(parse_conf(CONF)), writer=writer, node_selector=selector
        )
        assert live.cycle().decisions.binds == bound


def test_a_scheduler_of_several_names_signs_as_volcano(cluster: Any) -> None:
    live = LiveScheduler(cluster, Scheduler(parse_conf(CONF)), names=("volcano", "other"))
    live.cycle()
    (event, *_) = cluster.list("Event")[0]
    assert event["source"]["component"] == "volcano"


def test_gated_pods_are_not_reported_that_they_wait(cluster: Any, live: Any, writer: Any) -> None:
    cluster.create(pod_group("gated", min_member=2, phase="Inqueue"))
    cluster.create(pod("a", group="gated", cpu=1, spec={"schedulingGates": [{"name": "x"}]}))
    cluster.create(pod("b", group="gated", cpu=1))
    live.cycle()
    writer.go()
    said = cluster.get("Pod", "default", "a")["status"]["conditions"]
    assert [one["reason"] for one in said] == ["SchedulingGated"]
    assert cluster.get("Pod", "default", "b")["status"]["conditions"]


class Cool(Plugin, name="cool"):
    """Keep pods off nodes that are measured to be busy."""

    simulator = SimulatorAssumptions()

    def on_open(self, ssn: Any) -> None:
        self._usage = ssn.node_usage

    def filter_shape(self, shape: Any, facts: Any) -> Any:
        return np.array([self._usage[name]["cpu"] < 50 for name in facts.names])


def test_jobs_start_as_soon_as_their_node_is_measured_to_be_less_busy() -> None:
    """Nothing has changed in the cluster then."""
    cluster = EmbeddedCluster(VirtualClock(1000.0))
    make_queues(cluster)
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    for name in ("g", "h"):
        cluster.create(pod_group(name, phase=None))
        cluster.create(pod(f"{name}-0", group=name, cpu=1))
    load = {"cpu": 90.0, "memory": 0.0}
    conf = parse_conf(
        "actions: enqueue, allocate\n"
        "tiers: [{plugins: [{name: gang}, {name: predicates}, {name: cool}]}]"
    )
    scheduler = Scheduler(conf, plugins={"cool": Cool})
    live = LiveScheduler(cluster, scheduler, usage=lambda _: {"n": {**load}})
    for _ in range(5):
        live.cycle()
    assert "nodeName" not in cluster.get("Pod", "default", "g-0")["spec"]
    load["cpu"] = 5.0
    live.cycle()
    assert cluster.get("Pod", "default", "g-0")["spec"]["nodeName"] == "n"


def test_one_answer_that_cannot_be_taken_in_does_not_cost_the_others(
    cluster: Any, writer: Any, live: Any
) -> None:
    add_node(cluster, "m", {"cpu": "1", "memory": "8Gi"})
    rival(cluster)
    assert len(live.cycle().decisions.binds) == 2
    learn = live.recovery._learn_bind

    def fails(outcome: Any, now: Any) -> None:
        if outcome.key == "default/p":
            raise RuntimeError("no")
        learn(outcome, now)

    live.recovery._learn_bind = fails
    writer.go(RejectedError("Pod", problem="no"))
    with pytest.raises(RuntimeError):
        live.cycle()
    assert list(live.recovery._binds) == ["default/p"]
    live.recovery._learn_bind = learn
    for _ in range(3):
        cluster.clock.advance(6)
        live.cycle()
        writer.go()
    assert node_of(cluster)
    assert node_of(cluster, "r")
