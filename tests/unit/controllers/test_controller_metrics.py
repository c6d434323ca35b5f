"""Metrics of jobs, flows and queues follow the changes their loop sees."""

from typing import Any

import pytest

from pumice.api.times import rfc3339
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers.controller_metrics import ControllerMetrics
from pumice.controllers.view import ClusterView
from pumice.metrics import Metrics

JOB = "Job.batch.volcano.sh"
GROUP = "PodGroup.scheduling.volcano.sh"
FLOW = "JobFlow.flow.volcano.sh"
QUEUE = "Queue.scheduling.volcano.sh"


def job(phase: Any) -> Any:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": {"queue": "q"},
        "status": {"state": {"phase": phase}},
    }


def group(phase: Any, queue: str = "q") -> Any:
    return {
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"queue": queue},
        "status": {"phase": phase},
    }


@pytest.fixture
def reported() -> Any:
    metrics = Metrics()
    figures = ControllerMetrics(metrics, ClusterView(EmbeddedCluster(), [JOB]))

    def tell(*changes: Any) -> Any:
        for change in changes:
            figures.notice(change)
        lines = (line.rpartition(" ") for line in metrics.text().splitlines())
        return {name: value for name, _, value in lines}

    return tell


@pytest.mark.parametrize("phase", ["Completed", "Failed"])
def test_a_job_that_ends_counts_once(reported: Any, phase: str) -> None:
    series = reported((JOB, job("Running"), job(phase)), (JOB, job(phase), job(phase)))
    name = f'volcano_job_{phase.lower()}_phase_count{{job_name="ns/j",queue_name="q"}}'
    assert series[name] == "1"


def test_a_job_that_had_ended_before_does_not_count(reported: Any) -> None:
    assert not [name for name in reported((JOB, None, job("Completed"))) if "job_completed" in name]


def test_a_job_that_goes_takes_its_count_along(reported: Any) -> None:
    series = reported((JOB, job("Running"), job("Failed")), (JOB, job("Failed"), None))
    assert not [name for name in series if "job_failed_phase_count" in name]


def test_pod_groups_are_counted_by_queue_and_phase(reported: Any) -> None:
    series = reported(
        (GROUP, None, group("Pending")),
        (GROUP, group("Pending"), group("Running")),
        (GROUP, None, group("Pending", "other")),
        (GROUP, None, {"metadata": {"name": "h", "namespace": "ns"}, "spec": {"queue": "q"}}),
    )
    stem = "volcano_queue_pod_group"
    assert series[f'{stem}_running_count{{queue_name="q"}}'] == "1"
    assert series[f'{stem}_pending_count{{queue_name="q"}}'] == "1"
    assert series[f'{stem}_pending_count{{queue_name="other"}}'] == "1"


def test_a_queue_that_goes_takes_its_counts_along(reported: Any) -> None:
    gone = {"metadata": {"name": "q"}}
    series = reported((GROUP, None, group("Running")), (QUEUE, gone, None))
    assert not [name for name in series if "queue_pod_group" in name]


def test_flows_count_by_namespace(reported: Any) -> None:
    flow = job("Running")
    series = reported((FLOW, flow, job("Succeed")), (FLOW, flow, job("Failed")))
    assert series['volcano_jobflow_succeed_phase_count{jobflow_namespace="ns"}'] == "1"
    assert series['volcano_jobflow_failed_phase_count{jobflow_namespace="ns"}'] == "1"


def test_what_names_no_queue_counts_for_the_default_one(reported: Any) -> None:
    before, after, waiting = job("Running"), job("Failed"), group("Inqueue", queue="")
    for one in (before, after, waiting):
        del one["spec"]["queue"]
    series = reported((JOB, before, after), (GROUP, None, waiting))
    assert series['volcano_job_failed_phase_count{job_name="ns/j",queue_name="default"}'] == "1"
    assert series['volcano_queue_pod_group_inqueue_count{queue_name="default"}'] == "1"


def test_a_pod_group_that_goes_is_counted_no_more(reported: Any) -> None:
    series = reported((GROUP, None, group("Running")), (GROUP, group("Running"), None))
    assert series['volcano_queue_pod_group_running_count{queue_name="q"}'] == "0"


OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u"}


@pytest.mark.parametrize(
    ("owner", "made_s", "looked_s", "counts"),
    [
        ({}, 7.0, 7.0, True),
        ({}, 7.0, 66.9, True),
        ({}, 7.0, 67.0, False),
        ({"kind": "Queue"}, 7.0, 7.0, False),
        ({"apiVersion": "batch/v1"}, 7.0, 7.0, False),
        ({"name": "other"}, 7.0, 7.0, False),
        ({"controller": False}, 7.0, 7.0, False),
    ],
)
def test_the_time_from_a_job_to_its_new_pod_is_counted(
    owner: Any, made_s: float, looked_s: float, counts: bool
) -> None:
    clock = VirtualClock(0.0)
    cluster = EmbeddedCluster(clock)
    cluster.create(job("Pending"))
    view, metrics = ClusterView(cluster, [JOB]), Metrics()
    list(view.refresh())
    references = [{**OWNER, "controller": True, **owner}]
    pod = {"metadata": {"name": "p", "namespace": "ns", "ownerReferences": references}}
    pod["metadata"]["creationTimestamp"] = rfc3339(made_s)
    clock.advance(looked_s)
    figures = ControllerMetrics(metrics, view)
    figures.notice(("Pod", None, pod))
    figures.notice(("Pod", pod, pod))
    figures.notice(("Pod", pod, None))
    lines = [line for line in metrics.text().splitlines() if not line.startswith("#")]
    sums = [line.rpartition(" ")[2] for line in lines if "pod_creat" in line and "_sum" in line]
    assert [float(each) for each in sums if float(each)] == ([1000 * made_s] if counts else [])
