"""The objects of a job: which pods are due, how a pod and a PodGroup look."""

from typing import Any

import pytest

from pumice.controllers.job.objects import expand, min_task_member, pending_event, removal
from pumice.controllers.job.state import JobState
from pumice.errors import ManifestError
from tests.unit.controllers.fakes import FakeView
from tests.unit.controllers.job.stage import job, task


def stored(*tasks: Any, status: Any = None, **spec: Any) -> Any:
    manifest = job(*tasks, **spec)
    manifest["metadata"] |= {"namespace": "ns", "uid": "u"}
    return manifest | ({"status": status} if status else {})


def pod(name: str, of: str, phase: str = "Running", *, ready: Any = (), **marks: str) -> Any:
    statuses = [{"ready": one} for one in ready]
    owner = {"kind": "Job", "name": "j", "uid": "u", "controller": True}
    metadata = {
        "name": name,
        "namespace": "ns",
        "annotations": {"volcano.sh/task-spec": of, **marks},
        "ownerReferences": [owner],
    }
    status = {"phase": phase, "containerStatuses": statuses}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}


def test_pods_that_are_missing_are_made_and_names_in_use_are_left() -> None:
    other = pod("j-w-1", "w")
    other["metadata"]["ownerReferences"] = []
    expansion = expand(stored(task("w", 4)), FakeView(pod("j-w-0", "w"), other))
    (one,) = expansion.tasks
    assert [each["metadata"]["name"] for each in expansion.new_pods(one)] == ["j-w-2", "j-w-3"]


def test_a_job_that_the_controller_cannot_use_is_refused() -> None:
    empty = stored()
    empty["spec"]["tasks"] = []
    with pytest.raises(ManifestError, match="at least one task"):
        expand(empty, FakeView(), source="file")
    with pytest.raises(ManifestError, match=r"spec\.plugins: expected one of env, hcclrank.*'zzz'"):
        expand(stored(plugins={"zzz": []}), FakeView())


def made(manifest: Any, index: int = 0) -> Any:
    expansion = expand(manifest, FakeView())
    return expansion.pod(expansion.tasks[0], index)


@pytest.mark.parametrize("field", ["schedulerName", "priorityClassName"])
@pytest.mark.parametrize(
    ("own", "of_job", "found"),
    [(None, None, None), (None, "j", "j"), ("p", "j", "p"), ("p", None, "p")],
)
def test_a_template_outranks_its_job(field: str, own: Any, of_job: Any, found: Any) -> None:
    one = task()
    one["template"]["spec"][field] = own
    assert made(stored(one, **{field: of_job}))["spec"][field] == found


@pytest.mark.parametrize(("mark", "effects"), [("true", 1), ("false", 2), ("", 2)])
def test_a_pod_is_marked_once_before_it_is_removed(mark: str, effects: int) -> None:
    one = pod("p", "w", **{"volcano.sh/controller-out-of-sync": mark})
    one["metadata"]["uid"] = "x"
    assert len(removal(one)) == effects


# PodGroups


@pytest.mark.parametrize(
    ("fields", "least"),
    [
        ({"minAvailable": 0}, 0),
        ({"minAvailable": 1}, 1),
        ({"minAvailable": None}, 4),
        ({"minAvailable": None, "partitionPolicy": {"partitionSize": 2, "minPartitions": 1}}, 2),
        ({"minAvailable": None, "partitionPolicy": {"partitionSize": 2}}, 4),
        ({"minAvailable": None, "partitionPolicy": {"minPartitions": 2}}, 4),
        ({"minAvailable": 3, "partitionPolicy": {"partitionSize": 2, "minPartitions": 1}}, 3),
    ],
)
def test_how_many_pods_of_a_task_a_gang_needs(fields: Any, least: int) -> None:
    assert min_task_member({"replicas": 4, **fields}) == least


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([], None),
        ([("Unschedulable", "False", "1", "m")], None),
        ([("Unschedulable", "True", "1", "m")], "unschedulable, reason: m"),
        ([("Unschedulable", "True", "1", None)], "unschedulable, reason: "),
        ([("Scheduled", "True", "2", ""), ("Unschedulable", "True", "1", "m")], None),
        (
            [("Scheduled", "True", "1", ""), ("Unschedulable", "True", "2", "m")],
            "unschedulable, reason: m",
        ),
        (
            [("Scheduled", "False", "3", ""), ("Unschedulable", "True", "2", "m")],
            "unschedulable, reason: m",
        ),
    ],
)
def test_the_newest_condition_of_the_pod_group_is_reported(
    conditions: Any, message: str | None
) -> None:
    names = ("type", "status", "lastTransitionTime", "message")
    listed = [dict(zip(names, one, strict=True)) for one in conditions]
    metadata = {"name": "j-u", "namespace": "ns"}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    view = FakeView({**group, "metadata": metadata, "status": {"conditions": listed}})
    effects: list[Any] = pending_event(JobState.read(stored(), view))
    wanted = [] if message is None else [f"PodGroup ns:j {message}"]
    assert [each.message for each in effects] == wanted
    assert pending_event(JobState.read(stored(), FakeView())) == []


# States


@pytest.mark.parametrize(
    ("job_version", "pod_version", "phase", "restarting", "retries", "left"),
    [
        (0, 0, "Running", False, 0, False),
        (1, 1, "Running", False, 0, False),
        (1, 0, "Running", False, 0, True),
        (2, 0, "Running", False, 0, True),
        (1, 2, "Running", False, 0, False),
        (1, 0, "Failed", False, 0, False),
        (1, 0, "Failed", True, 0, True),
        (1, 0, "Succeeded", True, 2, True),
        (1, 0, "Succeeded", True, 3, False),
        (2, 0, "Failed", True, 0, False),
        (1, 0, "Running", True, 3, True),
    ],
)
def test_pods_that_an_interrupted_pass_left_over(
    job_version: int, pod_version: int, phase: str, restarting: bool, retries: int, left: bool
) -> None:
    state = {"phase": "Restarting" if restarting else "Running"}
    status = {"version": job_version, "retryCount": retries, "state": state}
    one = pod("j-w-0", "w", phase, **{"volcano.sh/job-version": str(pod_version)})
    found = JobState.read(stored(status=status), FakeView(one))
    assert found.left_over(one) == left
    one["metadata"]["annotations"]["volcano.sh/controller-out-of-sync"] = "true"
    assert found.left_over(one)
    one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not found.left_over(one)
