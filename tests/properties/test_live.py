"""A scheduler whose cluster answers late, wrongly or not at all: nothing twice, nothing lost."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group, priority_class
from tests.live_tables import tables
from tests.properties.chaos import BadWriter, LateCluster, TornError, tear

GROUP = "PodGroup.scheduling.volcano.sh"
CPUS = 4
NODES = 2
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack}]
"""
PREEMPTING = CONF.replace("backfill", "preempt")
GANGS = st.lists(
    st.tuples(
        st.integers(0, 25),  # arrives
        st.integers(1, 3),  # pods
        st.integers(1, 4),  # cpus of each
        st.integers(2, 9),  # runs
        st.booleans(),  # is important
    ).filter(lambda gang: gang[1] <= NODES * (CPUS // gang[2])),
    min_size=8,
    max_size=16,
)


class Books:
    """Counts what pods hold on nodes, event by event."""

    def __init__(self, cluster: Any) -> None:
        self.held: dict[Any, Any] = {}
        self.nodes: dict[Any, Any] = {}
        cluster.listeners.append(self.hear)

    def hear(self, kind: Any, event: Any) -> None:
        if kind != "Pod":
            return
        manifest = event.object
        uid, spec = manifest["metadata"]["uid"], manifest["spec"]
        node = spec.get("nodeName")
        if node:
            assert self.nodes.setdefault(uid, node) == node, "bound twice"
        over = manifest["status"]["phase"] in ("Succeeded", "Failed")
        if event.type == "DELETED" or over or not node:
            self.held.pop(uid, None)
        else:
            cpus = int(spec["containers"][0]["resources"]["requests"]["cpu"])
            self.held[uid] = node, cpus
        used: Any = defaultdict(int)
        for place, cpus in self.held.values():
            used[place] += cpus
        assert all(cpus <= CPUS for cpus in used.values()), used


class World:
    """A cluster, its kubelet, and a scheduler that may be killed and started again."""

    def __init__(
        self,
        gangs: Any,
        random: Any,
        conf: Any,
        *,
        torn: bool = False,
        refuses: Any = lambda write: False,
    ) -> None:
        self.random = random
        self.torn = torn
        self.refuses = refuses
        self.mend: Callable[[], object] = lambda: None
        self.conf = parse_conf(conf)
        self.clock = VirtualClock(0.0)
        self.cluster = EmbeddedCluster(self.clock)
        self.kubelet = Kubelet(self.cluster, grace_s=2)
        self.late = LateCluster(self.cluster, self.random)
        self.books = Books(self.cluster)
        make_queues(self.cluster)
        self.cluster.create(priority_class("high", value=100))
        for number in range(NODES):
            add_node(self.cluster, f"n{number}", {"cpu": str(CPUS), "memory": "64Gi"})
        for number, gang in enumerate(gangs):
            self.clock.call_at(gang[0], partial(self.arrive, f"g{number}", gang))
        self.start()

    def start(self) -> None:
        self.writer = BadWriter(self.cluster, self.random)
        self.writer.calm = self.late.calm
        self.writer.refuses = self.refuses
        scheduler = Scheduler(self.conf)
        self.live = LiveScheduler(
            self.late, scheduler, assume=True, writer=self.writer, confirm_s=5.0
        )
        if self.torn:
            self.mend = tear(self.live, self.random)

    def arrive(self, name: Any, gang: Any) -> None:
        _, size, _, _, important = gang
        rank = "high" if important else ""
        self.cluster.create(
            pod_group(name, min_member=size, phase=None, priority_class=rank or None)
        )
        for index in range(size):
            self.create(f"{name}-{index}", name, gang)

    def create(self, name: Any, group: Any, gang: Any) -> None:
        _, _, cpus, runs, important = gang
        marks = {"pumice.dev/run-seconds": str(runs), "volcano.sh/preemptable": "true"}
        rank = "high" if important else None
        self.cluster.create(
            pod(name, group=group, cpu=cpus, annotations=marks, priority_class=rank)
        )

    def tick(self) -> None:
        self.kubelet.sync()
        self.writer.step()
        self.kubelet.sync()
        with suppress(TornError):
            self.live.cycle()
        self.clock.advance(1.0)

    def recreate(self, gangs: Any) -> None:
        """Delete a pod that has not started, and create one of the same name."""
        waiting = [p for p in self.cluster.list("Pod")[0] if p["status"]["phase"] == "Pending"]
        waiting = [p for p in waiting if not p["spec"].get("nodeName")]
        if waiting:
            name = self.random.choice(waiting)["metadata"]["name"]
            group = name.partition("-")[0]
            self.cluster.delete("Pod", "default", name)
            self.create(name, group, gangs[int(group[1:])])

    def upheaval(self, gangs: Any) -> None:
        for _ in range(35):
            self.tick()
            if self.random.random() < 0.2:
                self.recreate(gangs)
            if self.random.random() < 0.1:
                self.writer.kill()
                self.start()

    def calm_down(self) -> None:
        self.mend()
        self.late.calm = self.writer.calm = True
        for _ in range(200):
            self.tick()
            if self.is_over():
                return

    def is_over(self) -> bool:
        phases = {p["status"]["phase"] for p in self.cluster.list("Pod")[0]}
        return phases <= {"Succeeded", "Failed"}

    def restore_victims(self, gangs: Any) -> None:
        """Create evicted pods again, as their controller would."""
        there = {p["metadata"]["name"] for p in self.cluster.list("Pod")[0]}
        for number, gang in enumerate(gangs):
            if self.cluster.peek(GROUP, "default", f"g{number}") is None:
                continue
            for index in range(gang[1]):
                if f"g{number}-{index}" not in there:
                    self.create(f"g{number}-{index}", f"g{number}", gang)


def fresh(world: Any) -> Any:
    live = LiveScheduler(world.cluster, Scheduler(world.conf))
    live.informer.sync()
    return live


@pytest.mark.parametrize("torn", [False, True])
@settings(max_examples=6)
@given(GANGS, st.randoms(use_true_random=True))
def test_nothing_is_bound_twice_overcommitted_or_lost(torn: bool, gangs: Any, random: Any) -> None:
    """Also if the scheduler breaks off again and again: results and writes stop half-way."""
    world = World(gangs, random, CONF, torn=torn)
    world.upheaval(gangs)
    world.calm_down()
    assert world.is_over()
    assert all(p["status"]["phase"] == "Succeeded" for p in world.cluster.list("Pod")[0])
    for _ in range(10):
        world.tick()
    world.live.catch_up()
    assert world.live.recovery.open == 0
    assert tables(world.live) == tables(fresh(world))


@settings(max_examples=3)
@given(GANGS, st.randoms(use_true_random=True))
def test_a_status_that_is_refused_for_ever_costs_little_and_stops_nothing(
    gangs: Any, random: Any
) -> None:
    about = ("default", "g0"), ("default", "g1-0")

    def refuses(write: Any) -> Any:
        arguments = write.arguments
        if write.verb != "patch":
            return False
        return (arguments["namespace"], arguments["name"]) in about

    world = World(gangs, random, CONF, refuses=refuses)
    world.calm_down()
    assert world.is_over()
    for _ in range(150):
        world.tick()
    for place in about:
        assert world.writer.refused.count(place) < 20


@settings(max_examples=6)
@given(GANGS, st.randoms(use_true_random=True))
def test_victims_go_once_and_the_winners_run(gangs: Any, random: Any) -> None:
    world = World(gangs, random, PREEMPTING)
    world.upheaval(gangs)
    world.late.calm = world.writer.calm = True
    for _ in range(300):
        world.tick()
        world.restore_victims(gangs)
        if world.is_over():
            break
    assert world.is_over()
