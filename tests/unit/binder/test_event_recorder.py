"""What is reported once, and when it is reported again."""

from typing import Any

import pytest

from pumice.api.decisions import Condition, Decisions, JobRecord, PodGroupState
from pumice.api.objects import from_manifest, in_namespace
from pumice.binder import Binder, event_recorder
from pumice.binder import binder as binder_module
from pumice.binder.event_recorder import EventRecorder
from pumice.cluster.base import Lane
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.testing import pod, pod_group


def test_a_group_that_is_made_again_is_reported_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binder_module, "_PRUNED_EACH", 1)
    cluster = EmbeddedCluster()
    cluster.create(pod_group("g"))
    binder, line = Binder(cluster), "plugin numbers failed in filter_shape: no number"
    binder.apply(Decisions(failed_for={"default/g": [line]}))
    cluster.delete("PodGroup.scheduling.volcano.sh", "default", "g")
    binder.apply(Decisions())
    cluster.create(pod_group("g"))
    binder.apply(Decisions(failed_for={"default/g": [line]}))
    assert sum(event.get("count", 1) for event in cluster.list("Event")[0]) == 2


class Recorder(EventRecorder):
    """Records to a list."""

    def __init__(self) -> None:
        super().__init__(self._take, "me")
        self.events: list[tuple[str, ...]] = []

    def _take(self, verb: str, arguments: Any, lane: Lane, result: Any) -> None:
        assert (verb, lane, result.what) == ("record", Lane.EVENT, "event")
        about = arguments["about"]
        names = ("event_type", "reason", "message", "source")
        self.events.append((about["kind"], *(arguments[name] for name in names)))

    def take(self) -> list[tuple[str, ...]]:
        events, self.events = self.events, []
        return events


POD: Any = from_manifest(in_namespace(pod("p")))
GROUP: Any = from_manifest(in_namespace(pod_group("g")))


def test_events_about_pods() -> None:
    recorder = Recorder()
    recorder.scheduled(POD, "n")
    recorder.failed_scheduling(POD, "no room")
    recorder.evicted(POD, GROUP, "preempt")
    recorder.evicted(POD, None, "reclaim")
    recorder.waits(GROUP, "Code", "text")
    assert recorder.take() == [
        ("Pod", "Normal", "Scheduled", "Successfully assigned default/p to n", "me"),
        ("Pod", "Warning", "FailedScheduling", "no room", "me"),
        ("Pod", "Warning", "Evict", "Pod is evicted, because of preempt", "me"),
        ("PodGroup", "Normal", "Evict", "preempt", "me"),
        ("Pod", "Warning", "Evict", "Pod is evicted, because of reclaim", "me"),
        ("PodGroup", "Normal", "Code", "text", "me"),
    ]


@pytest.mark.parametrize(
    ("phase", "conditions", "why", "reason"),
    [
        ("Pending", [], "why", "Unschedulable"),
        ("Inqueue", [], "why", "Unschedulable"),
        ("Unknown", [], "why", "Unschedulable"),
        ("Pending", [], None, None),
        ("Pending", ["Scheduled"], None, None),
        ("Running", ["Scheduled"], "why", "Scheduled"),
        ("Running", ["Unschedulable"], "why", None),
        ("Running", [], None, None),
    ],
)
def test_whether_a_group_can_start(
    phase: str, conditions: Any, why: str | None, reason: str | None
) -> None:
    recorder = Recorder()
    state = PodGroupState(phase, [Condition(each, "True", "r") for each in conditions])
    for _ in range(2):
        recorder.group(GROUP, state, {"Pending": 2, "Bound": 3}, why)
    found = recorder.take()
    assert [event[2] for event in found] == ([reason] if reason else [])
    if reason == "Unschedulable":
        assert found[0][3] == "2/5 tasks in gang unschedulable: why"


def test_a_topic_does_not_silence_another() -> None:
    recorder = Recorder()
    refused = JobRecord("enqueue", "over quota", {"resource": "cpu", "at": "q"})
    waits = PodGroupState("Pending")
    for _ in range(2):
        recorder.group(GROUP, waits, {}, "why")
        recorder.refused(GROUP, refused)
        recorder.plugin_failed(GROUP, ["a", "b"])
    assert [event[3] for event in recorder.take()] == [
        "0/0 tasks in gang unschedulable: why",
        "queue resource quota insufficient: insufficient cpu",
        "a; b",
    ]
    recorder.group(GROUP, waits, {}, "other")
    recorder.group(GROUP, waits, {}, "why")
    assert len(recorder.take()) == 2


@pytest.mark.parametrize(
    "record", [None, JobRecord("enqueue", "other"), JobRecord("nodes", "over quota")]
)
def test_only_what_was_not_admitted_is_a_refusal(record: Any) -> None:
    recorder = Recorder()
    recorder.refused(GROUP, record)
    assert recorder.take() == []


def test_events_in_flight_are_counted_and_no_more_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_recorder, "_MOST", 3)
    recorder = Recorder()
    for _ in range(4):
        recorder.scheduled(POD, "n")
    assert (len(recorder.take()), recorder.lost) == (3, 1)
    recorder.finished()
    recorder.finished(failed=True)
    assert recorder.lost == 2
    for _ in range(3):
        recorder.scheduled(POD, "n")
    assert (len(recorder.take()), recorder.lost) == (2, 3)
