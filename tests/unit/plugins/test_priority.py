"""priority: higher priority first, and at the cost of lower priority."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pumice.framework.columns import Jobs, Tasks
from pumice.framework.plugin import Plugin
from pumice.plugins.priority import Priority
from pumice.testing import node, pod, pod_group, priority_class, queue

CLASSES = [priority_class("high-priority", value=1000), priority_class("low", value=10)]


def group(name: Any, of: str = "", **more: Any) -> Any:
    return pod_group(name, priority_class=of or None, min_member=1, **more)


@pytest.fixture
def ssn(open_session: Any) -> Any:
    world = [node("n1", cpu=9), queue("default"), *CLASSES]
    world += [group("high", "high-priority"), group("low", "low"), group("none")]
    world += [pod("mine", group="high", cpu=1, priority=5)]
    world += [
        pod("equal", group="high", cpu=1, node="n1", priority=5),
        pod("lesser", group="high", cpu=1, node="n1", priority=4),
        pod("other", group="low", cpu=1, node="n1", priority=99),
        pod("default", group="none", cpu=1, node="n1"),
    ]
    return open_session(world, Priority())


def offered(ssn: Any, preemptor: Any, *names: Any) -> Any:
    rows = [ssn.snapshot.tasks.row_of[f"default/{name}"] for name in names]
    task = ssn.task(ssn.snapshot.tasks.row_of[f"default/{preemptor}"])
    kept = ssn.policy.preemptable(task, rows)
    return [name for name, row in zip(names, rows, strict=True) if row in kept]


def test_jobs_of_higher_priority_go_first(ssn: Any) -> None:
    jobs = ssn.snapshot.jobs.row_of
    rows = [jobs["default/low"], jobs["default/none"], jobs["default/high"]]
    keys = Priority().order_jobs(Jobs(ssn.snapshot, np.array(rows)))
    assert np.argsort(keys).tolist() == [2, 0, 1]


def test_tasks_of_higher_priority_go_first(ssn: Any) -> None:
    tasks = ssn.snapshot.tasks.row_of
    rows = [tasks["default/default"], tasks["default/mine"], tasks["default/lesser"]]
    keys = Priority().order_tasks(Tasks(ssn.snapshot, np.array(rows)))
    assert np.argsort(keys).tolist() == [1, 2, 0]


def test_between_jobs_the_priority_of_the_job_decides(ssn: Any) -> None:
    """A pod of high priority is no protection for a job of low priority."""
    assert offered(ssn, "mine", "other", "default") == ["other", "default"]
    assert offered(ssn, "other", "equal", "lesser") == []


def test_inside_a_job_the_priority_of_the_task_decides(ssn: Any) -> None:
    assert offered(ssn, "mine", "equal", "lesser") == ["lesser"]


def test_equal_priority_of_jobs_protects(open_session: Any) -> None:
    world = [node("n1"), queue("default"), *CLASSES, group("a", "low"), group("b", "low")]
    world += [pod("new", group="a", cpu=1), pod("old", group="b", cpu=1, node="n1")]
    assert offered(open_session(world, Priority()), "new", "old") == []


def test_a_job_starves_while_any_task_lacks_a_place(open_session: Any) -> None:
    world = [node("n1"), queue("default"), group("g"), pod("a", group="g", cpu=1, node="n1")]
    row = "default/g"
    full = open_session(world, Priority())
    assert not full.policy.job_starving(full.snapshot.jobs.row_of[row])
    short = open_session([*world, pod("b", group="g", cpu=1)], Priority())
    assert short.policy.job_starving(short.snapshot.jobs.row_of[row])


def test_it_has_no_say_in_reclaim(ssn: Any) -> None:
    row = ssn.snapshot.tasks.row_of["default/other"]
    assert ssn.hooks.tiers(Plugin.reclaimable) == []
    assert ssn.policy.reclaimable(ssn.task(row), [row]) == []


@pytest.mark.parametrize(("reclaims", "names"), [(False, ["other", "default"]), (True, None)])
def test_a_whole_job_evicts_jobs_of_lower_priority_or_any_of_another_queue(
    ssn: Any, reclaims: bool, names: Any
) -> None:
    everyone = ["equal", "lesser", "other", "default"]
    rows = [ssn.snapshot.tasks.row_of[f"default/{name}"] for name in everyone]
    job = ssn.job(ssn.snapshot.jobs.row_of["default/high"])
    eviction: Any = SimpleNamespace(reclaims=reclaims, job=job)
    mask = ssn.plugins[0].gang_evictable(eviction, rows)
    assert [name for name, goes in zip(everyone, mask, strict=True) if goes] == (names or everyone)


def test_parts_with_a_task_of_higher_priority_go_first() -> None:
    high: Any = SimpleNamespace(priority=5)
    low: Any = SimpleNamespace(priority=3)
    assert Priority().order_subgroups(high, low) == -2
    assert Priority().order_subgroups(low, high) == 2


@pytest.mark.parametrize(("pipelined", "starves"), [(0, True), (1, True), (2, False)])
def test_promised_places_count_against_starving(
    open_session: Any, pipelined: int, starves: bool
) -> None:
    world = [node("n1"), queue("default"), group("g"), pod("a", group="g", cpu=1, node="n1")]
    ssn = open_session([*world, *(pod(f"w{i}", group="g", cpu=1) for i in range(2))], Priority())
    for i in range(pipelined):
        ssn.statement().pipeline(ssn.snapshot.tasks.row_of[f"default/w{i}"], 0)
    assert ssn.policy.job_starving(ssn.snapshot.jobs.row_of["default/g"]) is starves
