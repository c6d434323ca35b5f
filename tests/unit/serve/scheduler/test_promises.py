"""Promised starts live with their jobs: written when they change, and read after a restart."""

import json
import re
from typing import Any

import pytest

from pumice.api.annotations import RESERVATION
from pumice.api.conf import parse_conf
from pumice.api.kinds import POD_GROUP
from pumice.api.reservations import Reservation
from pumice.api.times import rfc3339
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.framework.future import promise_changes
from pumice.framework.session_state import ProcessMemory
from pumice.metrics import Metrics
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.cycle_metrics import QueueMetrics
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.testing import pod, pod_group, priority_class

T0 = 1_767_261_600.0  # 10:00


class World:
    """A cluster of three nodes under a scheduler that can be started again."""

    def __init__(self, mode: str, **more: Any) -> None:
        self.mode = mode
        self.clock = VirtualClock(T0)
        self.cluster = EmbeddedCluster(self.clock)
        make_queues(self.cluster)
        self.cluster.create(priority_class("first", value=9))
        for name in ("n1", "n2", "n3"):
            add_node(self.cluster, name, {"cpu": "1", "memory": "8Gi", "pods": "110"})
        arguments = {"reservation.mode": mode, **more}
        text = json.dumps(
            {
                "actions": "enqueue, allocate",
                "tiers": [
                    {
                        "plugins": [
                            {"name": "priority"},
                            {"name": "reservation", "arguments": arguments},
                            {"name": "gang"},
                            {"name": "predicates"},
                        ]
                    }
                ],
            }
        )
        self.conf = parse_conf(text)
        self._told: dict[str, tuple[str, str, str]] = {}
        self.restart()

    def restart(self) -> None:
        process = ProcessMemory(started_at=self.clock.now())
        scheduler = Scheduler(self.conf)
        self.live = LiveScheduler(self.cluster, scheduler, assume=True, process=process)

    def add(self, name: str, pods: int, bound: int, *, first: bool = False) -> None:
        marks = {"pumice.dev/walltime-seconds": str(bound)} if bound else {}
        order = "first" if first else None
        made = pod_group(name, min_member=pods, phase=None, annotations=marks, priority_class=order)
        made["metadata"]["creationTimestamp"] = rfc3339(self.clock.now())
        self.cluster.create(made)
        for i in range(pods):
            self.cluster.create(pod(f"{name}-{i}", group=name, cpu=1, priority_class=order))

    def run(self, seconds: float = 0.0, cycles: int = 3) -> None:
        if seconds:
            self.clock.advance(seconds)
        for _ in range(cycles):
            self.live.cycle()
            for each in self.cluster.list("Event")[0]:  # which are forgotten after an hour
                if "eserv" in each["reason"]:
                    about = each["involvedObject"]["name"], each["reason"], each["message"]
                    self._told.setdefault(each["metadata"]["uid"], about)
            for each in self.cluster.list("Pod")[0]:
                if each["spec"].get("nodeName") and each["status"].get("phase") == "Pending":
                    self.status(each, {"phase": "Running", "startTime": rfc3339(self.clock.now())})

    def status(self, one: Any, status: Any) -> None:
        name, patch = one["metadata"]["name"], {"status": status}
        self.cluster.patch("Pod", "default", name, patch, subresource="status")

    def end(self, job: str) -> None:
        for each in self.cluster.list("Pod")[0]:
            if each["metadata"]["name"].startswith(f"{job}-"):
                self.status(each, {"phase": "Succeeded"})

    def stated(self, job: str) -> Any:
        group = self.cluster.get(POD_GROUP, "default", job)
        text = group["metadata"].get("annotations", {}).get(RESERVATION)
        return None if text is None else json.loads(text)

    def told(self, job: str) -> list[tuple[str, str]]:
        return [(reason, text) for of, reason, text in self._told.values() if of == job]


@pytest.fixture(params=["easy", "conservative"])
def world(request: pytest.FixtureRequest) -> World:
    made = World(request.param)
    made.add("old", 1, 3600)
    made.add("side", 1, 7200)
    made.run(1)
    made.add("wide", 2, 600)
    made.run(59)
    return made


def node_of(world: World, pod: str) -> str:
    return str(world.cluster.get("Pod", "default", pod)["spec"]["nodeName"])


def test_a_promise_is_written_once_kept_over_a_restart_and_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated, writes = world.stated("wide"), []
    assert stated["start"] == "2026-01-01T11:00:01.000000Z"
    assert node_of(world, "old-0") in stated["nodes"]
    assert len(stated["nodes"]) == 2
    real = world.cluster.patch

    def spy(kind: str, namespace: str, name: str, patch: Any, **more: Any) -> Any:
        if RESERVATION in patch.get("metadata", {}).get("annotations", {}):
            writes.append(name)
        return real(kind, namespace, name, patch, **more)

    monkeypatch.setattr(world.cluster, "patch", spy)
    world.run(60)
    world.restart()
    world.run(60)
    assert (world.stated("wide"), writes) == (stated, [])
    world.end("old")
    world.run(59)
    assert (world.stated("wide"), writes) == (None, ["wide"])
    assert world.told("wide") == [
        ("Reserved", "reserved: 2 nodes from 2026-01-01T11:00:01Z"),
        ("ReservationKept", "started as reserved from 2026-01-01T11:00:01Z, 56 min 2 s early"),
    ]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_run_that_outlives_its_bound_moves_a_start_and_few_writes_say_so(
    world: World, *, restarts: bool
) -> None:
    for _ in range(4):
        if restarts:
            world.restart()
        world.run(900)
    for _ in range(90):
        world.run(1, cycles=1)
    assert world.stated("wide")["moved"] == promise_changes.OVERDUE
    reasons = [reason for reason, _ in world.told("wide")]
    assert reasons == ["Reserved", "ReservationMoved", "ReservationMoved"]
    for _, text in world.told("wide")[1:]:
        assert re.match("moved 1 min.* later, as default/old outlived its bound: 2 nodes", text)


def test_a_node_that_goes_is_named(world: World) -> None:
    free = next(each for each in world.stated("wide")["nodes"] if each != node_of(world, "old-0"))
    world.cluster.patch("Node", "", free, {"spec": {"unschedulable": True}})
    world.run(60)
    assert world.stated("wide")["moved"] == promise_changes.NODE_GONE
    assert world.told("wide")[-1] == (
        "ReservationMoved",
        f"moved 1 h later, as node {free} went: 2 nodes from 2026-01-01T12:00:01Z",
    )


def test_a_job_of_higher_order_is_named_and_one_that_takes_the_lead(world: World) -> None:
    world.add("first", 1, 5400, first=True)
    world.run(59)
    if world.mode == "conservative":  # it keeps its start
        assert world.stated("wide")["start"] == "2026-01-01T11:00:01.000000Z"
        return
    assert world.told("wide")[-1][1] == (
        "moved 31 min 58 s later, as default/first of higher order came: "
        "2 nodes from 2026-01-01T11:31:59Z"
    )
    world.add("lead", 3, 60, first=True)
    world.run(1)
    assert world.told("lead")[-1][0] == "Reserved"
    why = "no longer reserved: default/lead goes first now"
    assert world.told("wide")[-1] == ("ReservationDropped", why)
    assert world.stated("wide") is None


def test_metrics_show_what_is_promised_and_what_is_idle_meanwhile(world: World) -> None:
    metrics = Metrics()
    shown = QueueMetrics(metrics, every_s=0)
    for amount, idle in ((2, 1), (0, 0)):
        world.live.cycle(shown)
        text = metrics.text()
        assert f"pumice_reserved_jobs {amount // 2}\n" in text
        assert f'pumice_reserved_amount{{resource="cpu"}} {amount}\n' in text
        assert f'pumice_reserved_idle_amount{{resource="cpu"}} {idle}\n' in text
        world.end("old")


def test_one_cycle_writes_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promise_changes, "MOST_WRITTEN", 3)
    world = World("conservative")
    world.add("old", 3, 3600)
    world.run(1)
    names = [f"wide{i}" for i in range(8)]
    for name in names:
        world.add(name, 2, 600)
    counts = []
    for _ in range(5):
        world.run(1, cycles=1)
        counts.append(sum(world.stated(name) is not None for name in names))
    assert counts == [3, 6, 8, 8, 8]


@pytest.mark.parametrize("text", ["", "[]", '{"start": "soon"}', '{"start": 3}', "\ud800"])
def test_a_text_that_nobody_can_read_is_no_promise(text: str) -> None:
    assert Reservation.of({RESERVATION: text}) is None


def test_run_times_are_learned_from_equal_jobs_and_remembered() -> None:
    world = World("easy", **{"reservation.learn": True})
    for i in range(6):
        world.add(f"train-{i}", 2, 0)
        world.run(1)
        world.end(f"train-{i}")
        world.run(100 + i)
    world.run(300)  # until it may be written again
    world.restart()
    world.add("train-6", 2, 0)
    world.add("other", 1, 0)
    world.run(1)
    began = world.clock.now()
    world.add("wide", 2, 600)
    world.run(1)
    assert Reservation(**world.stated("wide")).seconds == began + 105
    metrics = Metrics()
    world.live.cycle(QueueMetrics(metrics, every_s=0))
    for outcome, count in (("ended", 6), ("late", 1)):
        assert f'pumice_learned_runs{{outcome="{outcome}"}} {count}\n' in metrics.text()
    state = world.cluster.get("ConfigMap", "volcano-system", "pumice-run-times")["data"]["state"]
    (kind,) = json.loads(state)
    assert kind == "default|default|train-#|2xcpu=1000,pods=1"
    assert json.loads(state)[kind] == {
        "last": [100.0, 101.0, 102.0, 103.0, 104.0, 105.0],
        "n": 6,
        "late": 1,
    }


@pytest.mark.parametrize("order", [("old-0", "short-0"), ("short-0", "old-0")])
@pytest.mark.parametrize("mode", ["easy", "conservative"])
def test_a_terminating_pod_leaves_its_room_to_the_promised_gang(
    mode: str, order: tuple[str, str]
) -> None:
    world = World(mode)
    world.cluster.delete("Node", "", "n3")
    for name, pods, bound in (("old", 1, 3600), ("wide", 2, 600), ("long", 1, 9000)):
        world.add(name, pods, bound)
        world.run(1)
    world.add("short", 1, 300)
    world.run(5)
    for name in order:
        for grace_s in (30, 0):  # deleted, then gone
            world.cluster.delete("Pod", "default", name, grace_s=grace_s)
            world.run(0.1)
    placed = {
        each["metadata"]["name"]
        for each in world.cluster.list("Pod")[0]
        if each["spec"].get("nodeName")
    }
    assert placed == {"wide-0", "wide-1"}


def test_what_is_said_of_promised_jobs_does_not_change_to_and_fro(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when room for few appears, after which all of them are looked at again."""
    world, said = World("conservative"), []
    for at in range(9):
        add_node(world.cluster, f"m{at}", {"cpu": "1", "memory": "8Gi", "pods": "110"})
        world.add(f"side{at}", 1, 7200)
    world.run(1)
    for i in range(4):
        world.add(f"wide-{i}", 9 + i % 2, 600)
    world.run(1, cycles=1)
    real = world.cluster.patch

    def spy(kind: str, namespace: str, name: str, patch: Any, **more: Any) -> Any:
        if kind == "Pod" and name.startswith("wide") and "conditions" in patch.get("status", {}):
            said.append(name)
        return real(kind, namespace, name, patch, **more)

    monkeypatch.setattr(world.cluster, "patch", spy)
    counts = []
    for at in range(4):
        world.end(f"side{at}")
        world.run(5, cycles=2)
        counts.append(len(said))
    assert counts[1:] == [counts[0]] * 3
