"""Figures of documents: rates, demand, events, starts, names."""

from typing import Any

import pytest

from pumice.api.annotations import RESERVATION
from pumice.api.decisions import Decisions
from pumice.api.reservations import Reservation
from pumice.api.times import rfc3339
from pumice.dashboard import documents
from pumice.dashboard.feed import CYCLES, CycleRecord
from pumice.dashboard.questions import Respondent, Starting, Why, pictured
from pumice.dashboard.view import View
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.waiting_jobs import waiting_jobs
from pumice.testing.builders import node, pod, pod_group, queue

NOW = 1_768_500_000.0
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: capacity, enableHierarchy: true}]
"""


def world(*objects: Any) -> ClusterState:
    return ClusterState(objects=objects, now=NOW, conf=CONF)


def cycles(number: int, every_s: float) -> list[CycleRecord]:
    """Return the cycles that are remembered of so many, the last one now."""
    last = min(number, CYCLES)
    return [
        CycleRecord(
            number=i, at=NOW - (last - 1 - i) * every_s, took_s=0.001, actions=(), plugins=(),
            decisions=Decisions(),
        )
        for i in range(last)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "every_s", "rate"),
    [(10_000, 0.05, 1200), (10_000, 1.0, 60), (10_000, 5.0, 12), (5, 2.0, 30), (1, 1.0, None)],
)
def test_cycles_a_minute_are_a_rate(number: int, every_s: float, rate: float | None) -> None:
    view = View(pictured(world(node("n1"))))
    found = documents.overview(view, cycles(number, every_s), [], decides=True)["cycles"][
        "perMinute"
    ]
    assert found == (None if rate is None else pytest.approx(rate, rel=0.02))


def test_jobs_that_have_no_pods_yet_are_demand() -> None:
    group = pod_group(
        "gang", queue="team", min_member=4, min_resources={"cpu": 8, "memory": "16Gi"}
    )
    half = pod_group("half", queue="team", min_member=2, min_resources={"cpu": 6}, phase="Inqueue")
    objects = [queue("root"), queue("org"), queue("team", parent="org", capability={"cpu": 1})]
    given = [*objects, node("n1", cpu=4), group, half, pod("half-0", group="half", cpu=3)]
    view = View(pictured(world(*given)))
    reported = documents.queues(view)
    cpu = [each["name"] for each in reported["resources"]].index("cpu")
    asked = {each["name"]: each["request"][cpu] for each in reported["queues"]}
    assert asked["team"] == asked["org"] == asked["root"] == 8 + 6
    found = documents.overview(view, [], [], decides=True)
    assert found["pods"]["waiting"] == 4 + 2
    row = view.job_named("default/gang")
    assert row is not None
    assert documents.job(view, row, [], [])["pending"][cpu] == 8


def events(number: int, reason: str, **more: Any) -> list[Any]:
    return [
        {
            "type": "Warning",
            "reason": reason,
            "message": f"default/wide-{i} does not fit: 3 nodes lack cpu",
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": f"wide-{i}"},
            "lastTimestamp": f"2026-01-15T10:{i // 60:02}:{i % 60:02}Z",
            **more,
        }
        for i in range(number)
    ]


def test_equal_events_about_many_pods_are_one_row() -> None:
    pods = [pod(f"wide-{i}", group="wide", cpu=9) for i in range(150)]
    view = View(pictured(world(queue("default"), node("n1"), pod_group("wide"), *pods)))
    row = view.job_named("default/wide")
    assert row is not None
    happened = [*events(150, "FailedScheduling"), *events(3, "Other", count=2)]
    first, second = documents.job(view, row, [], happened)["events"]
    assert (first["reason"], first["count"], first["names"]) == ("FailedScheduling", 150, 150)
    assert first["name"] == "wide-149"
    assert first["message"] == "default/wide-149 does not fit: 3 nodes lack cpu"
    assert (second["reason"], second["count"], second["names"]) == ("Other", 6, 3)


def owned(name: str, kind: str, owner: str, **more: Any) -> Any:
    group = pod_group(name, **more)
    group["metadata"]["ownerReferences"] = [{"kind": kind, "name": owner, "apiVersion": "apps/v1"}]
    return group


def test_names_are_those_of_owners_everywhere() -> None:
    uid = "podgroup-0d7c2f6e-1111-4222-8333-123456789abc"
    old, new = "2026-01-15T09:00:00Z", "2026-01-15T09:30:00Z"
    groups = [
        owned(uid, "ReplicaSet", "web-6f7d", created=old, phase="Inqueue"),
        owned("train-1234", "Job", "train", created=new, phase="Inqueue"),
    ]
    pods = [pod("web-0", group=uid, cpu=9), pod("train-0", group="train-1234", cpu=9)]
    found = world(queue("default"), node("n1"), *groups, *pods)
    conf = CONF.replace("{name: gang}", "{name: gang}, {name: priority}")
    reported = Why("default/train-1234").answer(
        Respondent(ClusterState(objects=found.objects, now=NOW, conf=conf))
    )
    assert [each["job"] for each in reported["position"]["behind"]] == ["default/web-6f7d"]
    view = View(pictured(found))
    assert sorted(documents.jobs(view)["job"]) == ["default/train", "default/web-6f7d"]
    row = view.job_named("default/web-6f7d")
    assert row is not None
    happened = events(1, "Unschedulable", involvedObject={
        "kind": "PodGroup", "namespace": "default", "name": uid,
    })  # fmt: skip
    (event,) = documents.job(view, row, [], happened)["events"]
    assert event["name"] == "web-6f7d"


def test_waiting_jobs_have_the_start_that_is_forecast() -> None:
    runs = pod("busy-0", group="busy", cpu=4, node="n1", phase="Running")
    runs["metadata"]["annotations"]["pumice.dev/run-seconds"] = "100"
    given = world(
        queue("default"),
        node("n1", cpu=4),
        *(pod_group("busy", phase="Running"), runs),
        *(pod_group("next", phase="Inqueue"), pod("next-0", group="next", cpu=3)),
        *(pod_group("huge", phase="Inqueue"), pod("huge-0", group="huge", cpu=64)),
    )
    starts = Starting().answer(Respondent(given))
    told = {each.job: each.forecast for each in waiting_jobs(given)}
    assert {*starts} == {"default/next", "default/huge"}
    assert starts["default/huge"]["at"] is None
    for job, one in starts.items():
        forecast: Any = told[job]
        assert one["text"] == forecast["text"]
        assert one["at"] == (None if forecast["in_s"] is None else NOW + forecast["in_s"])
    table = documents.jobs(View(pictured(given), starts=starts))
    by_name = dict(
        zip(table["job"], zip(table["start"], table["startText"], strict=True), strict=True)
    )
    assert by_name["default/next"] == (starts["default/next"]["at"], starts["default/next"]["text"])
    assert by_name["default/busy"] == (None, "")


def test_promised_starts_are_ahead_of_now_behind_the_ends_of_running_jobs() -> None:
    runs = pod("busy-0", group="busy", cpu=4, node="n1", phase="Running")
    runs["status"]["startTime"] = rfc3339(NOW - 40)
    promise = Reservation.at(NOW + 60, ("n1",)).to_text()
    bound = {"pumice.dev/walltime-seconds": "100"}
    busy = pod_group("busy", phase="Running", annotations=bound)
    following = pod_group("next", phase="Inqueue", annotations={RESERVATION: promise, **bound})
    last = pod_group("last", phase="Inqueue", annotations={RESERVATION: promise})
    given = (queue("default"), node("n1", cpu=4), busy, runs)
    assert documents.jobs(View(pictured(world(*given))))["ahead"] == []
    table = documents.jobs(View(pictured(world(*given, following, last))))
    assert table["reserved"] == [False, True, True]
    assert table["start"] == [None, NOW + 60, NOW + 60]
    lines = [(line["job"], line["from"], line["until"]) for line in table["ahead"]]
    assert lines == [
        ("default/busy", None, NOW + 60),
        ("default/next", NOW + 60, NOW + 160),
        ("default/last", NOW + 60, None),
    ]
