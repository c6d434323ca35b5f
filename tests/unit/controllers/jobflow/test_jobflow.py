"""JobFlow and JobTemplate: order, status, retention."""

from typing import Any

import pytest

from pumice.api.times import rfc3339
from pumice.controllers.jobflow import JobFlowController, JobTemplateController
from tests.unit.controllers.fakes import NOON, FakeView

JOB = "Job.batch.volcano.sh"
FLOW = "JobFlow.flow.volcano.sh"
TEMPLATE = "JobTemplate.flow.volcano.sh"
API = "flow.volcano.sh/v1alpha1"


def template(name: Any) -> Any:
    metadata = {"name": name, "namespace": "ns"}
    spec = {"minAvailable": 1, "tasks": [{"name": "w"}]}
    return {"apiVersion": API, "kind": "JobTemplate", "metadata": metadata, "spec": spec}


def flow(*steps: Any, retain: str = "retain") -> Any:
    """Make a flow; a step is ``name`` or ``name<target<target``."""
    flows = []
    for step in steps:
        name, *targets = step.split("<")
        flows.append({"name": name, **({"dependsOn": {"targets": targets}} if targets else {})})
    return {
        "apiVersion": API,
        "kind": "JobFlow",
        "metadata": {"name": "f", "namespace": "ns"},
        "spec": {"jobRetainPolicy": retain, "flows": flows},
    }


def started(*steps: Any, retain: str = "retain") -> Any:
    names = {part for step in steps for part in step.split("<")}
    view = FakeView(*(template(name) for name in names))
    view.settle(JobFlowController(), view.add(flow(*steps, retain=retain)))
    return view


def move(view: Any, step: Any, *phases: Any, **status: Any) -> None:
    """Move the job of a step through phases, then reconcile the flow."""
    job = view.get(JOB, "ns", f"f-{step}")
    before = (job.get("status") or {}).get("conditions") or []
    passed = [{"status": phase, "lastTransitionTime": rfc3339(view.now)} for phase in phases]
    state = {"phase": phases[-1], "lastTransitionTime": rfc3339(view.now)}
    job["status"] = {"state": state, "conditions": [*before, *passed], **status}
    view.settle(JobFlowController(), job)


def jobs(view: Any) -> Any:
    return [job["metadata"]["name"] for job in view.list(JOB)]


def status(view: Any) -> Any:
    return view.get(FLOW, "ns", "f")["status"]


def phase(view: Any) -> Any:
    return status(view)["state"]["phase"]


def history(view: Any, step: Any) -> Any:
    (entry,) = [one for one in status(view)["jobStatusList"] if one["name"] == f"f-{step}"]
    return [one["state"] for one in entry["runningHistories"]]


def test_a_job_is_its_template_with_marks_of_flow_and_template() -> None:
    view = started("a")
    (job,) = view.list(JOB)
    marks = {"volcano.sh/createdByJobFlow": "ns.f", "volcano.sh/createdByJobTemplate": "ns.a"}
    assert job["metadata"]["labels"] == job["metadata"]["annotations"] == marks
    assert job["metadata"]["ownerReferences"][0]["uid"] == "uid-of-f"
    assert job["spec"] == template("a")["spec"]
    assert [record.message for record in view.records] == ["create a job named f-a!"]


def test_a_flow_succeeds_although_nobody_saw_its_job_run() -> None:
    view = started("a")
    move(view, "a", "Completed")
    assert phase(view) == "Succeed"


@pytest.mark.parametrize(("ending", "where"), [("Failed", "failed"), ("Terminated", "terminated")])
def test_a_flow_fails_with_one_job_and_says_nothing_more(ending: str, where: str) -> None:
    view = started("a", "b")
    move(view, "b", "Running")
    move(view, "a", "Running", ending)
    assert (phase(view), status(view)[f"{where}Jobs"]) == ("Failed", ["f-a"])
    move(view, "b", "Completed")
    assert (phase(view), status(view)["runningJobs"]) == ("Failed", ["f-b"])


@pytest.mark.parametrize("passing", ["Terminating", "Completing"])
def test_jobs_about_to_end_are_in_no_list(passing: str) -> None:
    view = started("a")
    move(view, "a", "Running", passing)
    assert [name for name in status(view) if name.endswith("Jobs")] == []


def test_a_history_names_phases_that_passed_between_two_looks() -> None:
    view = started("a")
    move(view, "a", "Pending")
    move(view, "a", "Running", "Aborting", "Aborted")
    assert history(view, "a") == ["Pending", "Running", "Aborting", "Aborted"]


def test_a_history_names_the_phase_of_a_job_without_conditions() -> None:
    view = started("a")
    move(view, "a", "Pending", conditions=None)
    move(view, "a", "Running", conditions=None)
    assert history(view, "a") == ["Pending", "Running"]


def test_conditions_and_entries_tell_times_counts_and_retries() -> None:
    view = started("a")
    counts = {"w": {"phase": {"Running": 1}}}
    move(view, "a", "Running", taskStatusCount=counts, retryCount=2, runningDuration="1m30s")
    assert status(view)["conditions"]["f-a"] == {
        "phase": "Running",
        "createTime": rfc3339(NOON),
        "runningDuration": "1m30s",
        "taskStatusCount": counts,
    }
    (entry,) = status(view)["jobStatusList"]
    assert (entry["restartCount"], entry["endTimestamp"]) == (2, rfc3339(NOON + 90))


@pytest.mark.parametrize(("policy", "left"), [("retain", ["f-a"]), ("delete", [])])
def test_jobs_of_a_successful_flow_stay_or_go(policy: str, left: Any) -> None:
    view = started("a", retain=policy)
    move(view, "a", "Running", "Completed")
    assert (jobs(view), phase(view)) == (left, "Succeed")


def test_a_successful_flow_does_not_start_again() -> None:
    view = started("a")
    move(view, "a", "Running", "Completed")
    del view.objects[JOB, "ns", "f-a"]
    view.settle(JobFlowController(), view.get(FLOW, "ns", "f"))
    assert (jobs(view), status(view)["completedJobs"]) == ([], ["f-a"])


def test_a_template_lists_its_jobs_until_another_is_made() -> None:
    view = started("a")
    controller = JobTemplateController()
    view.settle(controller, *view.list(JOB))
    listed = view.get(TEMPLATE, "ns", "a")
    assert listed["status"] == {"jobDependsOnList": ["f-a"]}
    gone = view.objects.pop((JOB, "ns", "f-a"))
    view.settle(controller, gone, listed)
    assert listed["status"] == {"jobDependsOnList": ["f-a"]}


def test_a_template_without_jobs_says_nothing() -> None:
    view = FakeView(template("a"))
    view.settle(JobTemplateController(), *view.list(TEMPLATE))
    assert "status" not in view.get(TEMPLATE, "ns", "a")
