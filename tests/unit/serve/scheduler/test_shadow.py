"""A scheduler in the shadow: it writes nothing, and finds where another one did otherwise."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.errors import InputError
from pumice.metrics import Metrics
from pumice.scheduler import Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.options import SchedulerOptions, read_options
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.loop import SchedulerLoop
from pumice.serve.scheduler.shadow import PATIENCE_S
from pumice.testing import pod, pod_group, priority_class
from tests.unit.serve.scheduler.test_loop import Cluster

GROUP = "PodGroup.scheduling.volcano.sh"
PREEMPTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: predicates
"""
EVICTED = {"type": "Ready", "status": "False", "reason": "Evict"}
DISRUPTED = {"type": "DisruptionTarget", "status": "True"}


class ReadOnly(Cluster):
    """A cluster that counts what the shadow tries to write."""

    def __init__(self) -> None:
        super().__init__()
        self.submitted: list[Any] = []

    def submit(self, write: Any, *, lane: Any, done: Any = None) -> None:
        self.submitted.append(write)


class Scene:
    """A cluster, a shadow, and another scheduler that is turned by hand."""

    def __init__(self, report: Path) -> None:
        self.cluster = ReadOnly()
        self.report_path = report
        self.metrics = Metrics()
        options = SchedulerOptions(shadow=True, shadow_report=str(report), schedule_period_s=1.0)
        scheduler = Scheduler(parse_conf(DEFAULT_CONF))
        cluster: Any = self.cluster
        self.loop = SchedulerLoop(
            cluster, options, lambda: scheduler, self.metrics, clock=cluster.now
        )
        make_queues(self.cluster, "default")
        add_node(self.cluster, "a", {"cpu": "4", "memory": "8Gi"})

    def submit(self, name: str, cpu: int = 1, **more: Any) -> None:
        self.cluster.create(pod_group(name, phase="Inqueue"))
        self.cluster.create(pod(f"{name}-0", group=name, cpu=cpu, **more))

    def turn(self, seconds: float = 1.0) -> None:
        self.loop._cycle()
        clock = self.cluster.clock
        assert isinstance(clock, VirtualClock)
        clock.advance_to(clock.now() + seconds)

    def bind(self, name: str, node: str) -> None:
        self.cluster.bind("default", name, node, {})

    def report(self) -> Any:
        for _ in range(6):  # a report is written every five seconds
            self.turn()
        return json.loads(self.report_path.read_text())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "shadow.json")


def test_a_shadow_writes_nothing(scene: Scene) -> None:
    before = scene.cluster.list("Pod")[1]
    scene.submit("job")
    scene.submit("large", cpu=9)
    made = scene.cluster.list("Pod")[1]
    assert made != before
    for _ in range(3):
        scene.turn()
    assert scene.cluster.submitted == []
    assert scene.cluster.list("Pod")[1] == made
    assert scene.cluster.get(GROUP, "default", "job")["status"]["phase"] == "Inqueue"


def test_another_node_is_listed_with_both_names(scene: Scene) -> None:
    add_node(scene.cluster, "b", {"cpu": "4", "memory": "8Gi"}, labels={"disk": "fast"})
    scene.submit("job", spec={"nodeSelector": {"disk": "fast"}})
    scene.turn()
    scene.bind("job-0", "a")
    found = scene.report()
    assert found["binds"]["other_node"] == 1
    [one] = found["differences"]
    assert (one["running"], one["shadow"], one["what"]) == ("a", "b", "bind")


def test_a_running_pod_that_is_gone_at_once_is_no_eviction(scene: Scene) -> None:
    scene.submit("job")
    scene.bind("job-0", "a")
    running = scene.cluster.get("Pod", "default", "job-0")
    scene.cluster.update_status({**running, "status": {"phase": "Running"}})
    scene.turn()
    scene.cluster.delete("Pod", "default", "job-0", grace_s=0)
    assert scene.report()["evictions"] == {"same": 0, "only_running": 0}


def test_an_eviction_that_both_decide_is_the_same(scene: Scene) -> None:
    scene.loop._latest_scheduler = lambda: Scheduler(parse_conf(PREEMPTING))
    scene.cluster.create(priority_class("high", value=100))
    scene.cluster.create(pod_group("low", phase="Running", min_member=1))
    for name in ("low-0", "low-1"):
        scene.cluster.create(pod(name, group="low", cpu=2, preemptable=True))
        scene.bind(name, "a")
        running = scene.cluster.get("Pod", "default", name)
        scene.cluster.update_status({**running, "status": {"phase": "Running"}})
    scene.cluster.create(pod_group("urgent", phase="Inqueue", priority_class="high"))
    scene.cluster.create(pod("urgent-0", group="urgent", cpu=2, priority_class="high"))
    scene.turn()
    assert scene.loop._shadow is not None
    [victim] = scene.loop._shadow._evicted
    running = scene.cluster.get("Pod", *victim.split("/"))
    status = {"phase": "Running", "conditions": [EVICTED]}
    scene.cluster.update_status({**running, "status": status})
    scene.cluster.delete("Pod", *victim.split("/"))
    found = scene.report()
    assert found["evictions"] == {"same": 1, "only_running": 0}


def test_a_report_that_cannot_be_written_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(tmp_path / "missing" / "shadow.json")
    scene.turn()
    scene.turn()
    assert "cannot write the report" in caplog.text


def test_a_shadow_takes_part_in_no_election() -> None:
    options = read_options("scheduler", ["--shadow"])
    assert options.scheduler is not None
    assert not options.scheduler.leader_elect
    with pytest.raises(InputError, match="--shadow: expected a scheduler alone"):
        read_options("all", ["--shadow"])


def test_two_pumices_agree(scene: Scene) -> None:
    """The running scheduler is Pumice itself: every bind is the same."""
    running = EmbeddedControlPlane(cluster=scene.cluster, controllers=[])
    for number in range(4):
        scene.submit(f"job-{number}")
        scene.turn()
        running.step()
    found = scene.report()
    assert found["binds"] == {"same": 4, "other_node": 0, "only_running": 0}
    assert (found["agreement"], found["differences"]) == (1, [])
    assert 'pumice_shadow_binds_total{outcome="same"} 4' in scene.metrics.text()


def test_a_report_shows_its_time_and_its_cycles(scene: Scene) -> None:
    scene.turn(0.0)
    first = json.loads(scene.report_path.read_text())
    assert first == {
        "since": "1970-01-01T00:00:00Z",
        "until": "1970-01-01T00:00:00Z",
        "cycles": 1,
        "agreement": None,
        "binds": {"same": 0, "other_node": 0, "only_running": 0},
        "evictions": {"same": 0, "only_running": 0},
        "wouldPlace": [],
        "differences": [],
    }
    scene.turn(4.9)
    scene.turn(0.1)
    assert json.loads(scene.report_path.read_text()) == first
    scene.turn()
    later = json.loads(scene.report_path.read_text())
    assert (later["since"], later["until"]) == (first["since"], "1970-01-01T00:00:05Z")
    assert later["cycles"] == 4
    assert scene.report_path.read_text().endswith("}\n")
    assert not scene.report_path.with_name("shadow.json.part").exists()


def test_a_pod_counts_as_left_waiting_after_ten_seconds(scene: Scene) -> None:
    scene.submit("job")
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    scene.cluster.merge_status("Pod", "default", "job-0", {"conditions": [waits]})
    for now in range(11):
        scene.turn()
        assert f"pumice_shadow_would_place {int(now >= PATIENCE_S)}" in scene.metrics.text()
    found = json.loads(scene.report_path.read_text())
    assert found["wouldPlace"] == [
        {
            "pod": "default/job-0",
            "job": "default/job",
            "node": "a",
            "since": "1970-01-01T00:00:00Z",
            "running_says": "Unschedulable",
        }
    ]
    scene.bind("job-0", "a")
    assert scene.report()["wouldPlace"] == []


def test_a_pod_that_was_made_again_is_another(scene: Scene) -> None:
    scene.submit("job")
    scene.turn()
    scene.cluster.delete("Pod", "default", "job-0")
    scene.cluster.create(pod("job-0", group="job", cpu=1))
    scene.bind("job-0", "a")
    found = scene.report()
    assert found["binds"] == {"same": 0, "other_node": 0, "only_running": 0}


def test_a_difference_is_described_and_the_agreement_is_a_share(scene: Scene) -> None:
    for name in ("one", "two"):
        scene.submit(name)
    scene.submit("large", cpu=9)
    scene.turn()
    for name in ("one-0", "two-0", "large-0"):
        scene.bind(name, "a")
    found = scene.report()
    assert found["agreement"] == 0.6667
    (one,) = found["differences"]
    assert (one["at"], one["pod"], one["job"]) == (
        "1970-01-01T00:00:01Z", "default/large-0", "default/large",
    )  # fmt: skip
    assert (one["what"], one["running"]) == ("bind", "a")
    assert "needs 9 CPU" in one["shadow"]


@pytest.mark.parametrize(("said", "counted"), [([EVICTED], 1), ([DISRUPTED], 1), ([], 0)])
def test_only_what_a_scheduler_evicted_counts(scene: Scene, said: Any, counted: int) -> None:
    scene.submit("job", spec={"terminationGracePeriodSeconds": 300})
    scene.bind("job-0", "a")
    status = {"phase": "Running", "conditions": said}
    scene.cluster.merge_status("Pod", "default", "job-0", status)
    scene.turn()
    scene.cluster.delete("Pod", "default", "job-0")
    found = scene.report()
    assert found["evictions"] == {"same": 0, "only_running": counted}
    described = [(one["what"], one["running"], one["shadow"]) for one in found["differences"]]
    assert described == [("evict", "evicted", "not evicted")] * counted
    metric = f'pumice_shadow_evictions_total{{outcome="only_running"}} {counted}'
    assert (metric in scene.metrics.text()) == bool(counted)
