"""Names of what belongs to a job."""

from typing import Any

import pytest

from pumice.controllers.job.state import (
    MOST_HOSTS,
    host_name,
    hosts,
    pod_index,
    pod_name,
    podgroup_name,
    stable_suffix,
)
from tests.unit.controllers.job.stage import job, task


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
        ("j-w-²", None),
        ("j-w-٣", None),
        ("17", None),
        ("k-w-1", None),
    ],
)
def test_the_index_of_a_pod_is_read_off_its_name(name: str, index: int | None) -> None:
    assert pod_index("j", "w", name) == index
    assert index is None or pod_name("j", "w", index) == name


def test_a_pod_group_is_named_after_its_job_and_its_uid() -> None:
    assert podgroup_name({"metadata": {"name": "j", "uid": "u"}}) == "j-u"
    assert podgroup_name({"metadata": {"name": "j"}}) == "j"


def test_suffixes_are_stable_over_releases() -> None:
    assert stable_suffix("u", "claim", 0) == "ip19m7thoi4y"


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
