"""The objects of a job: which pods are due, how a pod and a PodGroup look."""

from typing import Any

import pytest

from pumice.controllers.job.objects import (
    Expansion,
    expand,
    may_start,
    min_task_member,
    new_podgroup,
    pending_event,
    removal,
)
from pumice.controllers.job.state import JobState, restarts_of, version_of
from pumice.errors import ManifestError
from tests.unit.controllers.fakes import FakeView
from tests.unit.controllers.job.stage import job, task

PODGROUP = "PodGroup.scheduling.volcano.sh"


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


def queue(**spec: Any) -> Any:
    version = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": version, "kind": "Queue", "metadata": {"name": "default"}, "spec": spec}


A = task("a", 2)
A_RUNS = [pod("j-a-0", "a"), pod("j-a-1", "a")]


@pytest.mark.parametrize(
    ("depends", "first", "pods", "may"),
    [
        (None, A, [], True),
        ({}, A, [], True),
        ({"name": ["a"]}, A, [], False),
        ({"name": ["a"]}, A, A_RUNS[:1], False),
        ({"name": ["a"]}, A, A_RUNS, True),
        ({"name": ["a"]}, A, [A_RUNS[0], pod("j-a-1", "a", "Succeeded")], True),
        ({"name": ["a"]}, A, [A_RUNS[0], pod("j-a-1", "a", "Pending")], False),
        ({"name": ["a"]}, A, [A_RUNS[0], pod("j-a-1", "a", ready=[True, False])], False),
        ({"name": ["a"]}, A, [A_RUNS[0], pod("j-a-1", "a", ready=[True, True])], True),
        ({"name": ["a"]}, A, [A_RUNS[0], pod("j-a-2", "a")], False),  # beyond its replicas
        ({"name": ["a"]}, A, [A_RUNS[0], pod("other", "a")], False),
        ({"name": ["a"]}, {**A, "minAvailable": 1}, A_RUNS[:1], True),
        ({"name": ["a"]}, {**A, "minAvailable": None}, [], True),
        ({"name": ["unknown"]}, A, [], True),
        ({"name": ["a", "c"]}, A, A_RUNS, False),
        ({"name": ["a", "c"], "iteration": "any"}, A, A_RUNS, True),
        ({"name": ["a", "c"], "iteration": "all"}, A, A_RUNS, False),
        ({"name": ["a", "c"], "iteration": "any"}, A, [], False),
        ({"name": ["a"], "iteration": "any"}, A, [], False),
        ({"name": [], "iteration": "any"}, A, [], True),
    ],
)
def test_a_task_waits_for_those_it_depends_on(
    depends: Any, first: Any, pods: Any, may: bool
) -> None:
    second = task("b", 1, dependsOn=depends)
    manifest = stored(first | {"minAvailable": first["minAvailable"] or 0}, second, task("c", 1))
    manifest["spec"]["tasks"][0] = first
    state = JobState.read(manifest, FakeView(*pods))
    assert may_start(state, second) == may
    made = Expansion(state=state, plugins=[], is_forwarded=False).new_pods(second)
    assert len(list(made)) == may


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


@pytest.mark.parametrize("clusters", [None, [], [{"name": "c"}]])
def test_pods_of_a_queue_of_several_clusters_are_marked(clusters: Any) -> None:
    expansion = expand(stored(), FakeView(queue(extendClusters=clusters)))
    assert expansion.is_forwarded == bool(clusters)
    mark = "true" if clusters else None
    made = expansion.pod(expansion.tasks[0], 0)["metadata"]
    assert made["labels"].get("volcano.sh/job-forwarding") == mark
    assert made["annotations"].get("volcano.sh/job-forwarding") == mark
    group = expansion.podgroup()["metadata"].get("annotations", {})
    assert group.get("volcano.sh/job-forwarding") == mark


def made(manifest: Any, index: int = 0) -> Any:
    expansion = expand(manifest, FakeView())
    return expansion.pod(expansion.tasks[0], index)


def test_a_pod_has_the_marks_of_its_job_and_its_template() -> None:
    one = task("w", 2, topologyPolicy="best-effort")
    one["template"]["metadata"] = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    given = {"volcano.sh/preemptable": "true", "other": "x"}
    manifest = stored(one, labels=given, annotations=given, status={"version": 3, "retryCount": 2})
    metadata = made(manifest, 1)["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("j-w-1", "ns")
    assert metadata["labels"] == {
        "a": "b",
        "volcano.sh/task-index": "1",
        "volcano.sh/job-name": "j",
        "volcano.sh/task-spec": "w",
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/queue-name": "default",
        "volcano.sh/preemptable": "true",
    }
    assert metadata["annotations"] == {
        "c": "d",
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "w",
        "scheduling.k8s.io/group-name": "j-u",
        "volcano.sh/job-name": "j",
        "volcano.sh/queue-name": "default",
        "volcano.sh/job-version": "3",
        "volcano.sh/template-uid": "j-w",
        "volcano.sh/job-retry-count": "2",
        "volcano.sh/preemptable": "true",
        "volcano.sh/numa-topology-policy": "best-effort",
    }


@pytest.mark.parametrize("field", ["schedulerName", "priorityClassName"])
@pytest.mark.parametrize(
    ("own", "of_job", "found"),
    [(None, None, None), (None, "j", "j"), ("p", "j", "p"), ("p", None, "p")],
)
def test_a_template_outranks_its_job(field: str, own: Any, of_job: Any, found: Any) -> None:
    one = task()
    one["template"]["spec"][field] = own
    assert made(stored(one, **{field: of_job}))["spec"][field] == found


@pytest.mark.parametrize(
    ("size", "partitions"), [(2, ["0", "0", "1"]), (1, ["0", "1", "2"]), (0, ["0"] * 3)]
)
def test_pods_are_labelled_with_their_partition(size: int, partitions: Any) -> None:
    manifest = stored(task("w", 3, partitionPolicy={"partitionSize": size}))
    labels = [made(manifest, index)["metadata"]["labels"] for index in range(3)]
    assert [each["volcano.sh/partition-id"] for each in labels] == partitions


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
    ("given", "written"),
    [
        (None, None),
        ({}, {"mode": "hard"}),
        ({"mode": "soft", "highestTierAllowed": 0}, {"mode": "soft", "highestTierAllowed": 0}),
        (
            {"highestTierAllowed": 2, "highestTierName": "rack"},
            {"mode": "hard", "highestTierAllowed": 2},
        ),
        ({"highestTierName": "rack"}, {"mode": "hard", "highestTierName": "rack"}),
        ({"highestTierName": ""}, {"mode": "hard"}),
    ],
)
def test_a_network_topology_is_copied(given: Any, written: Any) -> None:
    part = {"partitionSize": 1, "networkTopology": given}
    manifest = stored(task(partitionPolicy=part), networkTopology=given)
    spec = new_podgroup(JobState.read(manifest, FakeView()))["spec"]
    assert spec.get("networkTopology") == written
    assert spec["subGroupPolicy"][0].get("networkTopology") == written
    assert spec["subGroupPolicy"][0]["minSubGroups"] == 0


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
    ("text", "version"),
    [("7", 7), ("", 0), ("x", 0), ("-1", 0), ("9" * 18, int("9" * 18)), ("9" * 19, 0), ("²", 0)],
)
def test_the_version_of_a_pod_is_a_number_or_nought(text: str, version: int) -> None:
    assert version_of(pod("p", "w", **{"volcano.sh/job-version": text})) == version


def test_restarts_of_all_containers_are_counted() -> None:
    init, main = [{"restartCount": 1}, {}], [{"restartCount": 2}, {"restartCount": None}]
    status = {"initContainerStatuses": init, "containerStatuses": main}
    assert restarts_of({"metadata": {}, "status": status}) == 3
    assert restarts_of({"metadata": {}}) == 0


@pytest.mark.parametrize("phase", [None, "", "Pending", "Inqueue", "Running", "Unknown"])
def test_a_pod_group_is_admitted_once_it_does_not_wait(phase: str | None) -> None:
    metadata = {"name": "j-u", "namespace": "ns"}
    group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    view = FakeView({**group, "metadata": metadata, "status": {"phase": phase}})
    assert JobState.read(stored(), view).admitted == (phase in ("Inqueue", "Running", "Unknown"))
    assert not JobState.read(stored(), FakeView()).admitted


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
