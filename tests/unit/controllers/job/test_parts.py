"""Small parts: durations, names, the resources of the least part of a job."""

from typing import Any

import pytest

from pumice.controllers.job.objects import min_resources
from pumice.controllers.job.state import (
    MOST_HOSTS,
    host_name,
    hosts,
    pod_index,
    pod_name,
    stable_suffix,
)
from pumice.controllers.job.status import go_duration
from tests.unit.controllers.fakes import FakeView
from tests.unit.controllers.job.stage import job, task


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (0.001, "1ms"), (0.5, "500ms"), (1, "1s"), (59, "59s"), (60, "1m0s"),
        (61.5, "1m1.5s"), (90, "1m30s"), (600, "10m0s"), (3599, "59m59s"), (3600, "1h0m0s"),
        (3660, "1h1m0s"), (90000, "25h0m0s"),
    ],
)  # fmt: skip
def test_durations_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


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


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("j-w-0", 0),
        ("j-w-17", 17),
        ("j-w-1234567890", 1_234_567_890),
        ("j-w-12345678901", None),
        ("j-w-007", None),
        ("j-w-", None),
        ("j-w--1", None),
        ("j-w-x", None),
        ("", None),
        (f"j-w-{'9' * 5000}", None),
        ("j-w-²", None),
        ("j-w-٣", None),
        ("17", None),
        ("k-w-1", None),
    ],
)
def test_the_index_of_a_pod_is_read_off_its_name(name: str, index: int | None) -> None:
    assert pod_index("j", "w", name) == index
    assert index is None or pod_name("j", "w", index) == name


def test_suffixes_are_stable_over_releases() -> None:
    assert stable_suffix("u", "claim", 0) == "ip19m7thoi4y" != stable_suffix("u", "claim", 1)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, ("j-w-1", "j")),
        ({"hostname": "h"}, ("h", "j")),
        ({"subdomain": "s"}, ("j-w-1", "s")),
    ],
)
def test_a_host_is_named_by_its_template_or_by_its_pod(fields: Any, found: Any) -> None:
    one = task("w", 3)
    one["template"]["spec"] |= fields
    assert host_name(job(one), one, 1) == found
    assert host_name(job(one), {"name": "w"}, 1) == ("j-w-1", "j")


def test_a_task_has_as_many_hosts_as_replicas_but_one_if_it_is_fixed() -> None:
    one = task("w", 3)
    assert hosts(job(one), one) == [("j-w-0", "j"), ("j-w-1", "j"), ("j-w-2", "j")]
    one["template"]["spec"]["hostname"] = "h"
    assert hosts(job(one), one) == [("h", "j")]
    assert hosts(job(one), {"name": "w"}) == []
    assert hosts(job(one), {**one, "replicas": None}) == []


def test_hosts_beyond_all_bounds_are_left_out() -> None:
    many = task("w", MOST_HOSTS + 1)
    assert len(hosts(job(many), many)) == MOST_HOSTS
