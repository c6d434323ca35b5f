"""Manifests with arrival times: arrivals, gangs and run times."""

from pathlib import Path
from typing import Any

import pytest

from pumice.api.objects import Node
from pumice.errors import InputError, ManifestError
from pumice.sim.readers import manifests

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{{marks}}}}}
spec: {{containers: [{{name: main, resources: {{requests: {{cpu: "1"}}}}}}]}}
---
"""
GROUP = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {{name: gang, annotations: {{{marks}}}}}
spec: {{minMember: 2, queue: q}}
---
"""
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: q, annotations: {{{marks}}}}}
---
"""
JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
  annotations: {pumice.dev/arrival-seconds: "5", pumice.dev/run-seconds: "100"}
spec:
  queue: q
  minAvailable: 2
  tasks:
  - name: master
    replicas: 1
    template: {spec: {containers: [{name: main}]}}
  - name: worker
    replicas: 3
    template:
      metadata: {annotations: {pumice.dev/run-seconds: "50"}}
      spec: {containers: [{name: main}]}
"""
IN_GANG = "scheduling.k8s.io/group-name: gang"


def mark(name: Any, seconds: Any) -> str:
    return f'pumice.dev/{name}-seconds: "{seconds}"'


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def from_text(text: Any) -> Any:
        path = tmp_path / "w.yaml"
        path.write_text(text, encoding="utf-8")
        return manifests.read(path)

    return from_text


def test_a_pod_alone_is_a_job_that_comes_and_runs_as_annotated(read: Any) -> None:
    marks = f"{mark('arrival', 7)}, {mark('run', 30)}"
    text = POD.format(name="a", marks="") + POD.format(name="b", marks=marks)
    first, second = read(text).jobs
    assert (first.name, first.arrival, first.queue, first.min_member) == ("a", 0.0, "default", 1)
    assert (second.name, second.arrival, second.run_seconds) == ("b", 7.0, 30.0)


def test_pods_without_a_run_time_get_one_and_the_notes_count_them(read: Any) -> None:
    workload = read(POD.format(name="a", marks=""))
    assert workload.jobs[0].run_seconds == manifests.DEFAULT_SECONDS
    assert workload.notes == ("1 pod states no run time: 60 seconds each",)


def test_pods_of_a_group_are_one_gang_and_the_nearest_run_time_counts(read: Any) -> None:
    text = (
        POD.format(name="early", marks="")
        + GROUP.format(marks=f"{mark('arrival', 20)}, {mark('run', 40)}")
        + POD.format(name="left", marks=IN_GANG)
        + POD.format(name="right", marks=f"{IN_GANG}, {mark('run', 10)}")
    )
    gang = read(text).jobs[1]
    assert (gang.name, gang.queue, gang.min_member, gang.arrival) == ("gang", "q", 2, 20.0)
    assert [(task.pod_name, task.run_seconds) for task in gang.tasks] == [
        ("left", 40.0),
        ("right", 10.0),
    ]


@pytest.mark.parametrize(
    ("spec", "run"), [("", 300), ("activeDeadlineSeconds: 200, ", 200)], ids=["queue", "deadline"]
)
def test_a_bound_counts_where_nobody_states_an_estimate(read: Any, spec: str, run: float) -> None:
    own = POD.format(name="a", marks=IN_GANG).replace("spec: {", f"spec: {{{spec}")
    queue = QUEUE.format(marks=mark("walltime", 300))
    (job,) = read(GROUP.format(marks="") + own + queue).jobs
    assert job.run_seconds == run


def test_a_gang_whose_group_states_no_arrival_comes_with_its_last_pod(read: Any) -> None:
    text = (
        POD.format(name="early", marks="")
        + GROUP.format(marks="")
        + POD.format(name="left", marks=f"{IN_GANG}, {mark('arrival', 3)}")
        + POD.format(name="right", marks=f"{IN_GANG}, {mark('arrival', 9)}")
    )
    assert [job.arrival for job in read(text).jobs] == [0.0, 9.0]


def test_a_volcano_job_is_a_gang_of_the_pods_of_its_templates(read: Any) -> None:
    early, job = read(POD.format(name="early", marks="") + JOB).jobs
    assert early.name == "early"
    assert (job.name, job.arrival, job.queue, job.min_member) == ("train", 5.0, "q", 2)
    assert [(task.role, task.count, task.run_seconds) for task in job.tasks] == [
        *(("master", 1, 100.0), ("worker", 3, 50.0))
    ]
    assert job.late_pods


def test_a_task_without_replicas_has_no_pods_as_in_a_cluster_and_the_notes_tell(read: Any) -> None:
    workload = read(JOB.replace("    replicas: 1\n", ""))
    assert [(task.role, task.count) for task in workload.jobs[0].tasks] == [("worker", 3)]
    assert workload.notes == ("1 task states no replicas: no pods, as in a cluster",)


def test_a_volcano_job_brings_its_marks_its_numa_policy_and_its_claims(read: Any) -> None:
    text = JOB.replace("    replicas: 3\n", "    replicas: 3\n    topologyPolicy: best-effort\n")
    text = text.replace("annotations: {", 'annotations: {volcano.sh/revocable-zone: "*", ', 1)
    text += "  volumes: [{mountPath: /data, volumeClaim: {accessModes: [ReadWriteOnce]}}]\n"
    workload = read(text)
    worker = workload.jobs[0].tasks[1]
    assert worker.annotations["volcano.sh/numa-topology-policy"] == "best-effort"
    assert worker.annotations["volcano.sh/revocable-zone"] == "*"
    assert worker.labels["volcano.sh/job-name"] == "train"
    claim, volume = workload.objects
    assert worker.spec.volumes[-1].persistent_volume_claim.claim_name == claim.metadata.name
    assert claim.spec.volume_name == volume.metadata.name


def test_the_partitions_of_a_task_are_reported_apart(read: Any) -> None:
    policy = "partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1}"
    text = JOB.replace("    replicas: 3\n", f"    replicas: 4\n    {policy}\n")
    workers = read(text).jobs[0].tasks[1:]
    assert [(one.role, one.count) for one in workers] == [("worker", 2), ("worker", 2)]
    assert [one.labels["volcano.sh/partition-id"] for one in workers] == ["0", "1"]


def test_a_priority_class_counts_wherever_it_stands_in_the_file(read: Any) -> None:
    high = (
        "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
        "metadata: {name: high}\nvalue: 7\n"
    )
    text = JOB.replace("minAvailable: 2", "minAvailable: 1")
    text = text.replace(
        "spec: {containers: [{name: main}]}\n",
        "spec: {priorityClassName: high, containers: [{name: main, resources:"
        ' {requests: {cpu: "3"}}}]}\n',
    )
    group = read(text + high).jobs[0].group
    assert group.min_resources["cpu"] == "3"


def test_all_other_objects_are_the_cluster(read: Any) -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: one}\n---\n"
    (thing,) = read(node + JOB).objects
    assert isinstance(thing, Node)


@pytest.mark.parametrize("seconds", ["soon", "-1", "nan", "inf"])
def test_a_time_that_is_none_is_reported_with_file_line_and_annotation(
    read: Any, seconds: str
) -> None:
    text = POD.format(name="a", marks="") + POD.format(name="b", marks=mark("arrival", seconds))
    with pytest.raises(ManifestError, match=r"w\.yaml:\d+: pumice\.dev/arrival-seconds: expected"):
        read(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("replicas: 3", "replicas: many"),
        ("name: train", "name: ''"),
        ("replicas: 3", "replicas: -3"),
    ],
)
def test_a_job_that_cannot_be_used_is_reported_with_file_and_line(
    read: Any, old: str, new: str
) -> None:
    with pytest.raises(ManifestError, match=r"w\.yaml:1: "):
        read(JOB.replace(old, new))


def test_pods_of_other_schedulers_are_left_out_with_a_note(read: Any) -> None:
    foreign = JOB.replace("name: train", "name: other").replace(
        "{spec: {containers", "{spec: {schedulerName: default-scheduler, containers"
    )
    every = foreign.replace(
        "spec: {containers", "spec: {schedulerName: default-scheduler, containers"
    )
    workload = read(f"{JOB}---\n{foreign}---\n{every.replace('name: other', 'name: third')}")
    assert [(job.name, sum(task.count for task in job.tasks)) for job in workload.jobs] == [
        ("other", 3),
        ("train", 4),
    ]
    assert workload.notes == ("5 pods name another scheduler than volcano: left out",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "conf: ''\nobjects:\n- {kind: Node}\n",
            "expected manifests of a workload, got a scenario",
        ),
        ("apiVersion: v1\nkind: Thing\n", "HyperNode, Job, LimitRange, Namespace"),
    ],
)
def test_what_is_no_workload_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        manifests.read(path)
    assert message in str(caught.value)
