"""Binding, eviction, conditions and events of the embedded store."""

from typing import Any

import pytest

from pumice.clock import VirtualClock
from pumice.cluster.embedded.pods import with_condition
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.testing import pod


@pytest.fixture
def cluster() -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    cluster.create(pod("p", annotations={"a": "1"}))
    return cluster


def test_a_condition_changes_its_time_only_with_its_status() -> None:
    first = with_condition((), {"type": "A", "status": "True"}, "t1")
    second = with_condition(first, {"type": "A", "status": "True", "reason": "r"}, "t2")
    third = with_condition(second, {"type": "A", "status": "False"}, "t3")
    assert second == [{"type": "A", "status": "True", "reason": "r", "lastTransitionTime": "t1"}]
    assert third == [{"type": "A", "status": "False", "lastTransitionTime": "t3"}]


def test_an_event_reported_again_is_counted(cluster: Any) -> None:
    about = cluster.get("Pod", "default", "p")
    for reason in ("Failed", "Failed", "Other"):
        cluster.record(about, "Warning", reason, "m", "volcano")
    reported = {e["reason"]: e["count"] for e in cluster.list("Event")[0]}
    assert reported == {"Failed": 2, "Other": 1}
    event = cluster.list("Event")[0][0]
    assert event["involvedObject"]["uid"] == about["metadata"]["uid"]
    assert event["source"] == {"component": "volcano"}


def test_events_are_kept_for_an_hour(cluster: Any) -> None:
    about = cluster.get("Pod", "default", "p")
    cluster.record(about, "Normal", "Old", "m", "s")
    cluster.clock.advance(1800)
    cluster.record(about, "Normal", "Young", "m", "s")
    cluster.clock.advance(1800)
    cluster.record(about, "Normal", "New", "m", "s")
    assert {e["reason"] for e in cluster.list("Event")[0]} == {"Young", "New"}


def test_an_event_that_someone_deleted_is_reported_anew(cluster: Any) -> None:
    about = cluster.get("Pod", "default", "p")
    cluster.record(about, "Normal", "R", "m", "s")
    (event,) = cluster.list("Event")[0]
    cluster.delete("Event", "default", event["metadata"]["name"])
    cluster.record(about, "Normal", "R", "m", "s")
    assert [e["count"] for e in cluster.list("Event")[0]] == [1]


def test_a_cluster_may_keep_no_events() -> None:
    cluster = EmbeddedCluster(record_events=False)
    cluster.record(cluster.create(pod("p")), "Normal", "R", "m", "s")
    assert cluster.list("Event")[0] == []
