"""What a session leaves: phases, conditions, numbers, and only what changed."""

from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session, close_session
from pumice.plugins.gang import Gang
from pumice.scenarios.objects import advance
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

DELETED = "2026-01-15T09:00:00Z"
READY = "tasks in gang are ready to be scheduled"


def member(name: Any, kind: Any) -> Any:
    """A pod of the group in one of the states that phases depend on."""
    if kind == "pending":
        return pod(name, group="g", cpu=1)
    if kind in ("Succeeded", "Failed"):
        return pod(name, group="g", cpu=1, node="n1", phase=kind)
    made = pod(name, group="g", cpu=1, node="n1", phase="Pending" if kind == "bound" else "Running")
    if kind.startswith("leaving"):
        made["metadata"]["deletionTimestamp"] = DELETED
    if kind == "leaving, node gone":
        made["spec"]["nodeName"] = "gone"
    elif kind == "leaving, never bound":
        del made["spec"]["nodeName"]
    return made


def close(
    *kinds: Any, min_member: Any = 2, phase: str = "Inqueue", plugins: Any = (Gang,), **options: Any
) -> Any:
    group = pod_group("g", min_member=min_member, phase=phase)
    pods = [member(f"p{i}", kind) for i, kind in enumerate(kinds)]
    world = [node("n1"), queue("default"), group, *pods]
    snapshot = Ingest(Snapshot()).load(map(from_manifest, world))
    ssn = Session(snapshot, [[Enabled(plugin(), {}) for plugin in plugins]])
    return close_session(ssn, **options)


def state(*kinds: Any, **options: Any) -> Any:
    return close(*kinds, **options).pod_groups["default/g"]


@pytest.mark.parametrize(
    ("kinds", "phase"),
    [
        (["running", "running"], "Running"),
        (["running", "bound"], "Running"),
        (["running", "Succeeded"], "Running"),
        (["running", "leaving"], "Running"),
        (["leaving", "leaving"], "Running"),
        (["running", "leaving, node gone"], "Running"),
        (["leaving", "leaving, node gone"], "Running"),
        (["running", "leaving, node gone", "pending"], "Unknown"),
        (["running", "leaving, never bound"], "Unknown"),
        (["Succeeded", "Failed"], "Completed"),
        (["running", "pending"], "Unknown"),
        (["pending", "pending"], "Inqueue"),
        ([], "Inqueue"),
    ],
)
def test_the_phase_follows_from_what_tasks_do(kinds: Any, phase: str) -> None:
    assert state(*kinds).phase == phase


def test_numbers_of_tasks_are_reported() -> None:
    found = state("running", "Succeeded", "Failed", "Failed", "pending")
    assert (found.running, found.succeeded, found.failed) == (1, 1, 2)


def test_a_gang_that_is_ready_is_reported_so() -> None:
    (condition,) = state("running", "bound").conditions
    assert (condition.type, condition.status, condition.reason) == ("Scheduled", "True", READY)


def test_a_gang_that_is_not_ready_is_reported_why() -> None:
    (condition,) = state("running", "pending").conditions
    assert (condition.type, condition.reason) == ("Unschedulable", "NotEnoughResources")
    assert condition.message.startswith("1/2 tasks in gang unschedulable: pod group is not ready")


@pytest.mark.parametrize(
    ("kinds", "reported"),
    [
        (["leaving", "leaving"], False),
        (["leaving", "Failed"], False),
        (["leaving"], True),
        (["leaving", "leaving", "pending"], True),
    ],
)
def test_a_gang_on_its_way_out_is_not_blamed(kinds: Any, reported: bool) -> None:
    """No condition is set while enough tasks are leaving or settled and none waits."""
    assert bool(state(*kinds).conditions) is reported


@pytest.mark.parametrize(
    ("freed", "again", "wanted"),
    [(True, None, {"default/p1": "n1"}), (True, False, {}), (False, True, {"default/p1": "n1"})],
)
def test_a_task_is_nominated_if_its_last_promise_was_freed_for_it(
    freed: bool, again: bool | None, wanted: Any
) -> None:
    world = [node("n1"), queue("default"), pod_group("g"), member("p0", "running")]
    snapshot = Ingest(Snapshot()).load(map(from_manifest, [*world, member("p1", "pending")]))
    ssn = Session(snapshot, [[Enabled(Gang(), {})]])
    stmt, task = ssn.statement(), snapshot.tasks.row_of["default/p1"]
    stmt.pipeline(task, 0, freed=freed)
    if again is not None:
        stmt.unpipeline(task)
        stmt.pipeline(task, 0, freed=again)
    found = close_session(ssn)
    assert (found.nominated, found.pipelined) == (wanted, {"default/p1": "n1"})


# Only what changed

CONF = parse_conf('actions: "backfill"\ntiers:\n- plugins:\n  - name: gang\n')


def settled(*kinds: Any) -> Any:
    """A world whose statuses are what the last cycle wrote."""
    group = pod_group("g", min_member=len(kinds), phase="Inqueue")
    pods = [member(f"p{i}", kind) for i, kind in enumerate(kinds)]
    world = [node("n1", cpu=1), queue("default"), group, *pods]
    return advance(world, Scheduler(CONF).cycle(world, 0.0))


def changes(world: Any) -> Any:
    snapshot = Ingest(Snapshot()).load(map(from_manifest, world))
    ssn = Session(snapshot, [[Enabled(Gang(), {})]])
    return close_session(ssn, only_changes=True)


@pytest.mark.parametrize("kinds", [["running", "bound"], ["running", "pending"], ["Succeeded"]])
def test_a_group_whose_status_stays_is_left_out(kinds: Any) -> None:
    world = settled(*kinds)
    assert changes(world).pod_groups == {}


def test_a_group_whose_numbers_changed_is_reported() -> None:
    world = settled("running", "bound")
    world[-1] = member("p1", "running")
    assert changes(world).pod_groups["default/g"].running == 2


def test_a_group_with_another_message_is_reported() -> None:
    world = [*settled("running", "pending"), member("p9", "pending")]
    (condition,) = changes(world).pod_groups["default/g"].conditions
    assert "2 Pending" in condition.message


def test_a_group_that_lost_its_gang_is_reported() -> None:
    world = settled("running", "bound")
    del world[-1]
    found = changes(world).pod_groups["default/g"]
    assert found.phase == "Unknown"
    assert {condition.type for condition in found.conditions} == {"Scheduled", "Unschedulable"}


# Queues


def test_a_queue_is_reported_what_its_jobs_hold() -> None:
    queues = close("running", "bound", "pending", "leaving").queues
    assert queues == {"default": {"cpu": "2", "pods": "2"}}


def test_queues_above_are_reported_too_if_there_is_a_root() -> None:
    world = [node("n1"), queue("root"), queue("dep"), queue("team", parent="dep")]
    world += [pod_group("g", queue="team", phase="Running"), member("p", "running")]
    snapshot = Ingest(Snapshot()).load(map(from_manifest, world))
    queues = close_session(Session(snapshot, [])).queues
    assert {name: held.get("cpu") for name, held in queues.items()} == {
        "root": "1",
        "dep": "1",
        "team": "1",
    }


def test_groups_of_equal_numbers_share_a_report_and_others_keep_theirs() -> None:
    world = [node("n1", cpu=9), queue("default")]
    for name in ("a", "b", "c", "reported"):
        world += [pod_group(name, min_member=1, phase="Running")]
        world += [
            pod(f"{name}-{i}", group=name, cpu=1, node="n1") for i in range(1 + (name == "c"))
        ]
    said = {"type": "Ours", "status": "True", "reason": "kept", "message": ""}
    world[-2]["status"]["conditions"] = [said]
    ssn = Session(Ingest(Snapshot()).load(map(from_manifest, world)), [[Enabled(Gang(), {})]])
    decisions = close_session(ssn)
    a, b, c, reported = (
        decisions.pod_groups[f"default/{name}"] for name in ("a", "b", "c", "reported")
    )
    assert a is b
    assert (a.running, c.running) == (1, 2)
    assert [each.type for each in reported.conditions] == ["Ours", "Scheduled"]
    assert [each.type for each in a.conditions] == ["Scheduled"]
    assert decisions.task_statuses["default/c"] == {"Running": 2}
