"""Small parts: durations, names, the resources of the least part of a job."""

from typing import Any

import pytest

from pumice.api.quota_amounts import pods_usage
from pumice.controllers.job.objects import min_resources
from pumice.controllers.job.state import stable_suffix
from pumice.controllers.job.status import go_duration
from tests.unit.controllers.fakes import FakeView
from tests.unit.controllers.job.stage import job, task


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(6, "6s"), (90, "1m30s"), (600, "10m0s"), (3600, "1h0m0s"), (0.5, "500ms"), (0, "0s")],
)
def test_durations_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


def test_suffixes_are_the_same_for_the_same_parts() -> None:
    assert stable_suffix("a", 1) == stable_suffix("a", 1) != stable_suffix("a", 2)
    assert len(stable_suffix("a")) == 12


def test_limits_alone_are_no_requests() -> None:
    resources = {"limits": {"cpu": "1", "example.com/gpu": "1"}}
    assert pods_usage([({"containers": [{"name": "c", "resources": resources}]}, 1)]) == {
        "pods": "1",
        "count/pods": "1",
        "limits.cpu": "1",
    }


def test_a_larger_init_container_counts_instead_of_the_sum() -> None:
    def container(cpu: Any) -> Any:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}}

    spec = {"containers": [container("1"), container("1")], "initContainers": [container("3")]}
    assert pods_usage([(spec, 1)])["cpu"] == "3"


def test_tasks_of_a_higher_priority_class_are_counted_first() -> None:
    low, high = task("low", 2, {"cpu": "1"}), task("high", 2, {"cpu": "4"})
    high["template"]["spec"]["priorityClassName"] = "urgent"
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 10,
    }
    manifest = job(low, high, minAvailable=3)
    assert min_resources(manifest, FakeView(urgent))["cpu"] == "9"
    assert min_resources(manifest, FakeView())["cpu"] == "6"


@pytest.mark.parametrize("least", [0, None])
def test_a_job_that_needs_no_pod_to_start_needs_nothing(least: int | None) -> None:
    assert min_resources(job(task("a", 2, {"cpu": "1"}), minAvailable=least), FakeView()) == {}


def test_what_is_left_to_the_minimum_is_filled_from_further_replicas() -> None:
    tasks = task("a", 3, {"cpu": "1"}, minAvailable=1), task("b", 3, {"cpu": "10"}, minAvailable=1)
    assert min_resources(job(*tasks, minAvailable=4), FakeView())["cpu"] == "13"
