"""CronJob: times, concurrency, history."""

from typing import Any

import pytest

from pumice.api.times import rfc3339
from pumice.controllers.base import Create, Patch, Record
from pumice.controllers.cronjob import CronJobController
from tests.unit.controllers.fakes import NOON, FakeView

JOB = "Job.batch.volcano.sh"
CRONJOB = "CronJob.batch.volcano.sh"
TICK = int(NOON) // 60
SCHEDULED_AT = "volcano.sh/cronjob-scheduled-timestamp"


def cron(
    schedule: str = "* * * * *", *, status: Any = None, metadata: Any = None, **spec: Any
) -> Any:
    template = {"metadata": {"labels": {"l": "m"}, "annotations": {"a": "b"}}, "spec": {"x": 1}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": "c", "namespace": "ns", **(metadata or {})},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
        "status": status or {},
    }


def begun(*args: Any, **kwargs: Any) -> Any:
    view = FakeView(now=NOON)
    view.add(cron(*args, **kwargs))
    look(view)
    return view


def look(view: Any, at: Any = None) -> Any:
    if at is not None:
        view.now = NOON + at
    return view.settle(CronJobController(), view.get(CRONJOB, "ns", "c"))


def names(view: Any) -> Any:
    return [job["metadata"]["name"] for job in view.list(JOB)]


def status(view: Any) -> Any:
    return view.get(CRONJOB, "ns", "c")["status"]


def active(view: Any) -> Any:
    return [reference["name"] for reference in status(view).get("active", [])]


def end(view: Any, tick: Any, phase: str = "Completed") -> None:
    job = view.get(JOB, "ns", f"c-{tick}")
    job["status"] = {"state": {"phase": phase, "lastTransitionTime": rfc3339(view.now)}}
    look(view)


def test_a_job_starts_when_its_time_comes() -> None:
    view = begun(timeZone="Europe/Berlin")
    plan = look(view, 62)
    (job,) = view.list(JOB)
    assert job["metadata"]["name"] == f"c-{TICK + 1}"
    assert job["metadata"]["labels"] == {"l": "m"}
    assert job["metadata"]["annotations"] == {
        "a": "b",
        SCHEDULED_AT: "2026-01-01T13:01:00+01:00",
    }
    assert job["metadata"]["ownerReferences"][0]["uid"] == "uid-of-c"
    assert job["spec"] == {"x": 1}
    assert active(view) == [f"c-{TICK + 1}"]
    assert status(view)["lastScheduleTime"] == rfc3339(NOON + 60)
    assert [record.message for record in view.records] == [
        f"Created job c-{TICK + 1} for CronJob ns/c"
    ]
    assert plan.again_in_s == 58.0


def test_the_active_job_and_its_time_are_written_together() -> None:
    view = begun()
    controller = CronJobController()
    view.now = NOON + 60 * 101 + 1
    (key,) = controller.concerns(CRONJOB, view.get(CRONJOB, "ns", "c"), view)
    first = controller.reconcile(key, view)
    assert [type(effect) for effect in first.effects] == [Record, Create, Record]
    view.apply(first)
    second = controller.reconcile(key, view)
    (write,) = second.effects
    view.apply(second)
    assert isinstance(write, Patch)
    assert set(write.changes["status"]) == {"active", "lastScheduleTime"}
    assert active(view) == [f"c-{TICK + 101}"]
    assert status(view)["lastScheduleTime"] == rfc3339(NOON + 60 * 101)
    assert view.events == ["TooManyMissedTimes", "SuccessfulCreate"]
    assert controller.reconcile(key, view).effects == []


def test_a_job_that_ended_before_it_was_listed_is_not_started_again() -> None:
    view = begun()
    controller = CronJobController()
    view.now = NOON + 60
    (key,) = controller.concerns(CRONJOB, view.get(CRONJOB, "ns", "c"), view)
    view.apply(controller.reconcile(key, view))
    end(view, TICK + 1)
    assert (names(view), view.events) == ([f"c-{TICK + 1}"], ["SuccessfulCreate"])
    assert status(view)["lastScheduleTime"] == rfc3339(NOON + 60)
    assert not active(view)


def test_without_a_zone_times_are_in_utc() -> None:
    view = begun()
    look(view, 60)
    assert view.list(JOB)[0]["metadata"]["annotations"][SCHEDULED_AT] == "2026-01-01T12:01:00Z"


def test_a_time_past_its_deadline_is_not_served() -> None:
    view = begun("0 * * * *", startingDeadlineSeconds=20)
    look(view, 3630)
    assert names(view) == []
    look(view, 7215)
    assert names(view) == [f"c-{TICK + 120}"]


@pytest.mark.parametrize(
    ("policy", "left", "reported"),
    [
        ("Allow", [1, 2], ["SuccessfulCreate", "SuccessfulCreate"]),
        ("Forbid", [1], ["SuccessfulCreate", "ForbidConcurrent"]),
        (
            "Replace",
            [2],
            ["SuccessfulCreate", "ReplaceConcurrent", "SuccessfulDelete", "SuccessfulCreate"],
        ),
    ],
)
def test_what_happens_while_a_job_is_active(policy: str, left: Any, reported: Any) -> None:
    view = begun(concurrencyPolicy=policy)
    look(view, 60)
    plan = CronJobController()
    view.now = NOON + 120
    (key,) = plan.concerns(CRONJOB, view.get(CRONJOB, "ns", "c"), view)
    view.apply(plan.reconcile(key, view))
    assert names(view) == [f"c-{TICK + n}" for n in left]
    assert view.events == reported


def test_while_a_job_is_replaced_the_list_is_never_empty() -> None:
    view = begun(concurrencyPolicy="Replace")
    look(view, 60)
    controller = CronJobController()
    view.now = NOON + 120
    (key,) = controller.concerns(CRONJOB, view.get(CRONJOB, "ns", "c"), view)
    for listed in (TICK + 1, TICK + 2, TICK + 2):
        view.apply(controller.reconcile(key, view))
        assert active(view) == [f"c-{listed}"]
    assert status(view)["lastScheduleTime"] == rfc3339(NOON + 120)
    assert "StaleReference" not in view.events


def test_a_replaced_job_that_is_leaving_is_not_listed() -> None:
    view = begun(concurrencyPolicy="Replace")
    look(view, 60)
    old = view.get(JOB, "ns", f"c-{TICK + 1}")
    look(view, 120)
    old["metadata"]["deletionTimestamp"] = rfc3339(NOON + 120)
    view.add(old)
    look(view, 121)
    assert active(view) == [f"c-{TICK + 2}"]


def test_a_forbidden_time_is_made_up_for_when_the_job_ends() -> None:
    view = FakeView(now=NOON)
    view.add(cron(concurrencyPolicy="Forbid"))
    controller = CronJobController()
    (key,) = controller.concerns(CRONJOB, view.get(CRONJOB, "ns", "c"), view)
    for after in (60, 61, 120):
        view.now = NOON + after
        view.apply(controller.reconcile(key, view))
    end(view, TICK + 1)
    assert active(view) == [f"c-{TICK + 2}"]


@pytest.mark.parametrize(
    ("phase", "limits", "left"),
    [
        ("Completed", {}, [3, 4, 5]),
        ("Completed", {"successfulJobsHistoryLimit": 0}, []),
        ("Failed", {}, [5]),
        ("Failed", {"failedJobsHistoryLimit": 2}, [4, 5]),
        ("Terminated", {}, [1, 2, 3, 4, 5]),
    ],
)
def test_the_oldest_finished_jobs_go(phase: str, limits: Any, left: Any) -> None:
    view = begun(**limits)
    for minute in range(1, 6):
        look(view, 60 * minute)
        end(view, TICK + minute, phase)
    assert names(view) == [f"c-{TICK + n}" for n in left]


def test_an_active_job_that_was_deleted_is_reported() -> None:
    view = begun()
    look(view, 60)
    del view.objects[JOB, "ns", f"c-{TICK + 1}"]
    look(view)
    assert (active(view), view.events[-1], names(view)) == ([], "StaleReference", [])


def test_an_active_job_stays_listed_though_it_lost_its_annotation() -> None:
    view = begun(concurrencyPolicy="Forbid")
    look(view, 60)
    del view.get(JOB, "ns", f"c-{TICK + 1}")["metadata"]["annotations"]
    look(view, 61)
    assert (active(view), view.events) == ([f"c-{TICK + 1}"], ["SuccessfulCreate"])


@pytest.mark.parametrize(
    ("owners", "whose"),
    [
        ([], "none"),
        ([{"kind": "CronJob", "name": "d", "uid": "x", "controller": True}], "d"),
        ([{"kind": "CronJob", "name": "c", "uid": "uid-of-c"}], "none"),
    ],
)
def test_whose_a_foreign_job_is_is_reported(owners: Any, whose: str) -> None:
    view = begun()
    metadata = {"name": f"c-{TICK + 1}", "namespace": "ns", "ownerReferences": owners}
    view.add({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata})
    message = f"Job c-{TICK + 1} exists but is not owned by this CronJob (current owner: {whose})"
    assert problem(view) == [("Warning", "ForeignJob", message)]


def test_a_replaced_active_job_and_one_of_another_uid_are_reported() -> None:
    view = begun()
    look(view, 60)
    view.get(JOB, "ns", f"c-{TICK + 1}")["metadata"]["uid"] = "other"
    plan = CronJobController()
    (key,) = plan.concerns(CRONJOB, view.get(CRONJOB, "ns", "c"), view)
    view.apply(plan.reconcile(key, view))
    name = f"c-{TICK + 1}"
    assert view.records[-1].message == (
        f'Active job reference "{name}" points to a different UID '
        f"(expected: uid-of-{name}, actual: other)"
    )


def test_an_orphan_is_reported_unless_it_is_over_or_leaving() -> None:
    view = begun("0 0 1 1 *")
    owner = {"kind": "CronJob", "name": "c", "uid": "uid-of-c", "controller": True}
    for name, phase, more in (
        ("a", "Running", {}),
        ("b", "Completed", {}),
        ("d", "Running", {"deletionTimestamp": rfc3339(NOON)}),
    ):
        metadata = {"name": name, "namespace": "ns", "ownerReferences": [owner], **more}
        kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
        state = {"phase": phase, "lastTransitionTime": rfc3339(NOON - 5)}
        view.add({**kind, "metadata": metadata, "status": {"state": state}})
    view.now = NOON
    plan = CronJobController()
    (key,) = plan.concerns(CRONJOB, view.get(CRONJOB, "ns", "c"), view)
    view.apply(plan.reconcile(key, view))
    assert [each.message for each in view.records] == [
        "Detected orphaned job forgotten or not managed by controller: a (UID: uid-of-a)"
    ]
    assert status(view)["lastSuccessfulTime"] == rfc3339(NOON - 5)


def test_the_oldest_go_by_their_time_and_not_by_their_name() -> None:
    view = begun("0 0 1 1 *", successfulJobsHistoryLimit=1)
    owner = {"kind": "CronJob", "name": "c", "uid": "uid-of-c", "controller": True}
    for name, made in (("a", 2), ("b", 1), ("d", 2)):
        view.now = NOON - 100 + made
        metadata = {"name": name, "namespace": "ns", "ownerReferences": [owner]}
        kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
        state = {"phase": "Completed", "lastTransitionTime": rfc3339(NOON - 50 - made)}
        view.add({**kind, "metadata": metadata, "status": {"state": state}})
    look(view, 0)
    assert names(view) == ["d"]
    assert status(view)["lastSuccessfulTime"] == rfc3339(NOON - 51)


def test_a_job_whose_creation_was_not_noted_is_not_made_again() -> None:
    view = begun()
    look(view, 60)
    view.get(CRONJOB, "ns", "c")["status"] = {}
    look(view)
    assert (names(view), active(view)) == ([f"c-{TICK + 1}"], [f"c-{TICK + 1}"])


def problem(view: Any, at: Any = 60) -> Any:
    view.now = NOON + at
    controller = CronJobController()
    (key,) = controller.concerns(CRONJOB, view.get(CRONJOB, "ns", "c"), view)
    plan = controller.reconcile(key, view)
    reported = [effect for effect in plan.effects if isinstance(effect, Record)]
    assert reported == plan.effects
    return [(record.type, record.reason, record.message) for record in reported]


def test_a_zone_in_the_schedule_is_used_and_reported() -> None:
    view = FakeView(cron("TZ=Europe/Berlin 1 13 * * *"))
    view.now = NOON + 60
    controller = CronJobController()
    (key,) = controller.concerns(CRONJOB, view.get(CRONJOB, "ns", "c"), view)
    view.apply(controller.reconcile(key, view))
    assert view.events == ["UnsupportedSchedule", "SuccessfulCreate"]
