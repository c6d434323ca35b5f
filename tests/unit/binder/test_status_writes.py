"""What is written of a status, and when it may be written again."""

from typing import Any

import pytest

from pumice.api.decisions import Condition, PodGroupState
from pumice.api.objects import from_manifest
from pumice.binder.status_writes import (
    StatusWrites,
    group_annotations,
    group_patch,
    group_status,
    queue_patch,
    waiting_patch,
)
from pumice.binder.write_results import WriteResult
from pumice.errors import ConflictError, RejectedError
from pumice.testing import pod, pod_group, queue

THEN, NOW, LATER = (f"2026-01-01T00:00:0{second}Z" for second in range(3))
WAITS = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}


def known(manifest: Any, version: str = "1", uid: str = "u", **status: Any) -> Any:
    manifest["metadata"] |= {"uid": uid, "resourceVersion": version}
    return from_manifest({**manifest, "status": {**manifest.get("status", {}), **status}})


def patched(thing: Any, message: str = "m", nominated: str | None = None) -> Any:
    patch = waiting_patch(
        thing, reason="Unschedulable", message=message, nominated=nominated, time=NOW
    )
    if patch is None:
        return None
    assert patch["metadata"] == {"uid": "u", "resourceVersion": "1"}
    return patch["status"]


@pytest.mark.parametrize(
    ("conditions", "since"),
    [
        ([], NOW),
        ([{**WAITS, "lastTransitionTime": THEN}], None),
        ([{**WAITS, "message": "other", "lastTransitionTime": THEN}], THEN),
        ([{**WAITS, "reason": "Other", "lastTransitionTime": THEN}], THEN),
        ([{**WAITS, "message": "other"}], NOW),
        ([{**WAITS, "status": "True", "lastTransitionTime": THEN}], NOW),
        ([{**WAITS, "type": "Ready", "lastTransitionTime": THEN}], NOW),
    ],
)
def test_the_time_of_a_condition_moves_with_its_status_only(
    conditions: Any, since: str | None
) -> None:
    wanted = {"conditions": [{**WAITS, "lastTransitionTime": since}]} if since else None
    assert patched(known(pod("p"), conditions=conditions)) == wanted


@pytest.mark.parametrize(
    ("before", "nominated", "status"),
    [
        ("", None, None),
        ("", "", None),
        ("", "n", {"nominatedNodeName": "n"}),
        ("n", None, None),
        ("n", "n", None),
        ("n", "m", {"nominatedNodeName": "m"}),
        ("n", "", {"nominatedNodeName": None}),
    ],
)
def test_a_nomination_is_written_if_it_changes(
    before: str, nominated: str | None, status: Any
) -> None:
    thing = known(pod("p"), nominatedNodeName=before)
    assert patched(thing, message="", nominated=nominated) == status


def test_a_group_that_has_its_status_is_left_alone() -> None:
    state = PodGroupState("Running", [Condition("Scheduled", "True", "r")], running=1)
    group = known(pod_group("g"))
    status = group_status(group, state, cycle="7", time=NOW)
    assert status is not None
    patch = group_patch(group, status, {})
    assert patch["metadata"] == {"uid": "u"}
    condition = {"type": "Scheduled", "status": "True", "reason": "r"}
    assert patch["status"]["conditions"] == [
        {**condition, "transitionID": "7", "lastTransitionTime": NOW}
    ]
    after = known(pod_group("g"), **patch["status"])
    assert group_status(after, state, cycle="8", time=LATER) is None
    for more in ("running", "succeeded", "failed"):
        counts: Any = {"running": 1, more: 2}
        other = PodGroupState("Running", state.conditions, **counts)
        changed = group_status(after, other, cycle="8", time=LATER)
        assert changed is not None
        assert changed.conditions == status.conditions
    assert group_annotations(after, PodGroupState("Running")) == {}


def test_amounts_that_a_queue_no_longer_has_are_removed() -> None:
    before = known(queue("q"), allocated={"cpu": "1", "memory": "2Gi"})
    assert queue_patch(before, {"cpu": "1", "memory": "2Gi"}) is None
    patch = {"status": {"allocated": {"cpu": "2", "memory": None}, "reservation": {}}}
    assert queue_patch(before, {"cpu": "2"}) == patch


class Statuses:
    """Statuses of one group by a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.writes = StatusWrites(lambda: self.now)

    def begins(self, content: str = "a", version: str = "1", uid: str = "u") -> bool:
        group = known(pod_group("g"), version, uid)
        return self.writes.begin("group", "default/g", group, content)

    def ends(self, error: Any = None, uid: str = "u") -> Any:
        return self.writes.finish(WriteResult("group", "default/g", uid, error))

    def is_underway(self) -> bool:
        return self.writes.is_underway("group", "default/g")


@pytest.fixture
def statuses() -> Statuses:
    return Statuses()


def test_one_status_is_in_flight_at_a_time(statuses: Statuses) -> None:
    assert not statuses.is_underway()
    assert statuses.begins()
    assert statuses.is_underway()
    assert not statuses.begins("b", "2")
    assert statuses.ends() is None
    assert not statuses.is_underway()
    assert statuses.ends() is None


def test_a_status_without_an_answer_counts_as_lost_in_the_end(statuses: Statuses) -> None:
    statuses.now = 100.0
    statuses.begins()
    for now, is_underway in ((699.9, True), (700.0, False)):
        statuses.now = now
        assert statuses.is_underway() == is_underway
        assert statuses.begins() != is_underway


@pytest.mark.parametrize(
    ("content", "version", "again"),
    [("a", "1", False), ("b", "1", True), ("a", "2", True), ("b", "2", True)],
)
def test_what_was_written_is_written_again_when_either_side_changes(
    statuses: Statuses, content: str, version: str, again: bool
) -> None:
    statuses.begins()
    statuses.ends()
    assert statuses.begins(content, version) == again


def test_a_status_that_failed_may_be_written_at_once(statuses: Statuses) -> None:
    statuses.begins()
    assert statuses.ends(ConflictError()) == "a"
    assert len(statuses.writes) == 0
    assert statuses.begins()


@pytest.mark.parametrize("error", [None, ConflictError(), RejectedError()])
def test_an_answer_that_nobody_waits_for_any_more_changes_nothing(
    statuses: Statuses, error: Any
) -> None:
    assert statuses.ends(error) is None
    assert statuses.begins()
    statuses.ends(ConflictError())
    assert statuses.ends(error) is None
    assert statuses.begins()


def test_delays_double_up_to_a_minute_and_start_afresh_after_a_success(
    statuses: Statuses,
) -> None:
    def refused_for(delay: float) -> None:
        assert statuses.begins()
        assert statuses.ends(RejectedError()) == "a"
        statuses.now += delay - 0.5
        assert not statuses.begins()
        statuses.now += 0.5

    for delay in (1, 2, 4, 8, 16, 32, 60, 60):
        refused_for(delay)
    assert statuses.begins()
    statuses.ends()
    assert statuses.begins("b")
    statuses.ends(ConflictError())
    refused_for(1)
    refused_for(2)


def test_another_object_of_the_name_is_not_held_back(statuses: Statuses) -> None:
    for _ in range(2):
        statuses.begins()
        statuses.ends(RejectedError())
        statuses.now += 1.0
    assert not statuses.begins()
    assert statuses.begins(uid="v")
    statuses.ends(RejectedError(), uid="v")
    statuses.now += 1.0
    assert statuses.begins(uid="v")


def test_another_object_starts_with_the_shortest_delay(statuses: Statuses) -> None:
    statuses.begins()
    statuses.ends(RejectedError())
    statuses.now += 1.0
    statuses.begins()
    statuses.ends(RejectedError(), uid="v")  # the answer about its successor
    statuses.now += 1.0
    assert statuses.begins(uid="v")


def test_only_what_is_over_is_pruned(statuses: Statuses) -> None:
    here = {"default/g": known(pod_group("g"))}

    def prune() -> int:
        statuses.writes.prune(lambda _, key: here.get(key))
        return len(statuses.writes)

    statuses.begins()
    here["default/g"] = known(pod_group("g"), "2")
    assert prune() == 1  # in flight
    statuses.ends()
    assert prune() == 0  # changed since
    statuses.begins(version="2")
    statuses.ends()
    assert prune() == 1  # as it was written
    here.clear()
    assert prune() == 0  # gone
    here["default/g"] = known(pod_group("g"))
    statuses.begins()
    statuses.ends(RejectedError())
    assert prune() == 1
    here.clear()
    assert prune() == 0
