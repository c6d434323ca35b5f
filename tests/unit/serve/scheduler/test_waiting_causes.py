"""Why jobs wait, reported on a cluster: on the pod group, as an event, and counted by code."""

from itertools import pairwise
from typing import Any

import pytest

from pumice.api.annotations import WAITING_CAUSE, WAITING_WHY
from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.node_operations import add_node
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.examine.causes import Examiner
from pumice.metrics import Metrics
from pumice.scheduler import Observer, Scheduler
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.serve.scheduler import waiting_causes
from pumice.serve.scheduler.waiting_causes import MOST_EACH_SECOND, WaitingCauses
from pumice.testing import pod, pod_group, priority_class

GROUP = "PodGroup.scheduling.volcano.sh"


@pytest.fixture
def plane() -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    add_node(cluster, "n", {"cpu": "4", "memory": "8Gi"})
    return EmbeddedControlPlane(cluster=cluster, controllers=[], write_causes=True)


def submit(plane: Any, name: str, cpu: int, **more: Any) -> None:
    plane.cluster.create(pod_group(name, phase=None))
    plane.cluster.create(pod(f"{name}-0", group=name, cpu=cpu, **more))


def marks(plane: Any, name: str) -> Any:
    return plane.cluster.get(GROUP, "default", name)["metadata"].get("annotations") or {}


def events(plane: Any, code: str) -> list[Any]:
    found = plane.cluster.list("Event")[0]
    return [each for each in found if each["reason"] == code]


def run(plane: Any, cycles: int = 4) -> None:
    for _ in range(cycles):
        plane.step()
        plane.clock.advance_to(plane.clock.now() + 1)


def test_a_waiting_job_has_the_code_and_the_sentence_on_its_pod_group(plane: Any) -> None:
    submit(plane, "large", 9)
    run(plane)
    found = marks(plane, "large")
    assert found[WAITING_CAUSE] == "InsufficientResource"
    assert "no node is large enough for large-0" in found[WAITING_WHY]


def test_the_marks_go_once_the_job_starts(plane: Any) -> None:
    submit(plane, "picky", 1, spec={"nodeSelector": {"disk": "ssd"}})
    run(plane)
    assert marks(plane, "picky")[WAITING_CAUSE] == "NodeSelector"
    plane.cluster.patch("Node", "", "n", {"metadata": {"labels": {"disk": "ssd"}}})
    run(plane)
    assert plane.cluster.get("Pod", "default", "picky-0")["spec"]["nodeName"] == "n"
    assert WAITING_CAUSE not in marks(plane, "picky")


def test_waiting_jobs_are_counted_by_code_and_examined_a_few_at_a_time(plane: Any) -> None:
    metrics = Metrics()
    causes = WaitingCauses(metrics)
    for number in range(MOST_EACH_SECOND + 3):
        submit(plane, f"j{number}", 9)
    plane.scheduler.scheduler = Scheduler(parse_conf(DEFAULT_CONF))
    counts = []
    for _ in range(30):  # a tenth of a second apart
        plane.scheduler.cycle(causes)
        plane.clock.advance(0.1)
        line = 'pumice_waiting_jobs{code="InsufficientResource"}'
        found = [each for each in metrics.text().splitlines() if each.startswith(line)]
        counts.append(float(found[0].split()[1]) if found else 0.0)
    few = MOST_EACH_SECOND
    assert counts[:5] == [0] * 5  # none before it has waited for a moment
    assert max(after - before for before, after in pairwise(counts[5:])) == 1
    assert (counts[5], counts[-1]) == (few, few + 3)


def test_while_some_are_examined_the_others_are_not_tried_again(plane: Any) -> None:
    tried = []

    class Tried(Observer):
        def decided(self, ssn: Any, decisions: Any) -> None:
            tried.append(int((ssn.snapshot.jobs.listed & ~ssn.left_out).sum()))

    metrics = Metrics()
    causes = WaitingCauses(metrics, Tried())
    for number in range(3 * MOST_EACH_SECOND):
        submit(plane, f"j{number}", 9)
    plane.scheduler.scheduler = Scheduler(parse_conf(DEFAULT_CONF))
    for number in range(30):  # a tenth of a second apart
        submit(plane, f"small{number}", 0)
        plane.scheduler.cycle(causes)
        plane.clock.advance(0.1)
    assert 'pumice_waiting_jobs{code="InsufficientResource"} 3' in metrics.text()
    assert tried[0] == 3 * MOST_EACH_SECOND + 1
    assert max(tried[3:]) <= len(tried) + 2


def test_nothing_is_tried_where_a_service_outside_would_be_told(
    plane: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cause is what the cycle itself recorded."""
    asked = []
    opened = Examiner.opened

    def watched(self: Examiner, ssn: Any) -> None:
        asked.append(self.asks)
        opened(self, ssn)

    monkeypatch.setattr(Examiner, "opened", watched)
    monkeypatch.setattr(waiting_causes, "_OUTSIDE", "gang")  # a plugin that is there
    submit(plane, "large", 9)
    run(plane)
    assert marks(plane, "large")[WAITING_CAUSE]
    assert asked
    assert not any(asked)


def test_a_cause_that_no_longer_holds_is_taken_back_where_none_can_be_examined(
    plane: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting_causes, "_OUTSIDE", "gang")
    submit(plane, "large", 9)
    run(plane)
    assert marks(plane, "large")[WAITING_CAUSE]
    plane.cluster.delete("Pod", "default", "large-0", grace_s=0)
    gated = {"schedulingGates": [{"name": "hold"}]}
    plane.cluster.create(pod("large-1", group="large", cpu=9, spec=gated))
    run(plane)
    assert WAITING_CAUSE not in marks(plane, "large")


def test_a_job_that_a_gate_holds_back_says_so(plane: Any) -> None:
    submit(plane, "held", 1, spec={"schedulingGates": [{"name": "hold"}]})
    run(plane)
    assert marks(plane, "held")[WAITING_CAUSE] == "Gated"


def test_jobs_ahead_are_not_blamed_once_a_cycle_places_none(plane: Any) -> None:
    """A node becomes free, and is taken by another job in the cycle that examines the first."""
    submit(plane, "old", 4)
    run(plane, 2)
    submit(plane, "late", 3)
    run(plane, 1)
    plane.cluster.delete("Pod", "default", "old-0", grace_s=0)
    plane.cluster.create(priority_class("high", value=10))
    plane.cluster.create(pod_group("first", phase=None, priority_class="high"))
    plane.cluster.create(pod("first-0", group="first", cpu=4, priority_class="high"))
    run(plane, 1)
    assert marks(plane, "late")[WAITING_CAUSE] == "JobAhead"
    run(plane, 3)
    assert marks(plane, "late")[WAITING_CAUSE] == "InsufficientResource"


def test_a_gang_that_lost_a_pod_and_has_none_to_place_does_not_wait(plane: Any) -> None:
    plane.cluster.create(pod_group("g", phase=None, min_member=2))
    for i in range(2):
        plane.cluster.create(pod(f"g-{i}", group="g", cpu=1))
    run(plane)
    plane.cluster.delete("Pod", "default", "g-1")
    run(plane, 40)
    assert WAITING_CAUSE not in marks(plane, "g")


def test_amounts_are_written_again_without_another_event(plane: Any) -> None:
    metadata = {"name": "team", "namespace": "default"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    plane.cluster.create({**quota, "spec": {"hard": {"requests.cpu": "3"}}})
    group = pod_group("g", min_member=2, phase="Inqueue", min_resources={"requests.cpu": "2"})
    plane.cluster.create(group)
    plane.cluster.create(pod("g-0", group="g", cpu=1))
    plane.cluster.create(pod("other", cpu=2, spec={"schedulerName": "other"}))
    run(plane)
    assert marks(plane, "g")[WAITING_CAUSE] == "QuotaExceeded"
    assert "none of 3 left" in marks(plane, "g")[WAITING_WHY]
    plane.cluster.create(pod("more", cpu=1, spec={"schedulerName": "other"}))
    run(plane, int(waiting_causes.LONGEST_S) + 5)
    assert "none of 3 left (4 in use or reserved)" in marks(plane, "g")[WAITING_WHY]
    assert [each.get("count", 1) for each in events(plane, "QuotaExceeded")] == [1]
