"""gang: all tasks a job needs, or none of them."""

from typing import Any

import numpy as np
import pytest

from pumice.framework.columns import Jobs
from pumice.plugins.gang import Gang
from pumice.testing import node, pod, pod_group, queue

BASE = [node("n1", cpu=9), queue("default")]


def running(n: Any, start: Any = 0, **more: Any) -> Any:
    return [pod(f"r{i}", group="g", cpu=1, node="n1", **more) for i in range(start, start + n)]


def pending(n: Any, **more: Any) -> Any:
    return [pod(f"p{i}", group="g", **{"cpu": 1, **more}) for i in range(n)]


def group(min_member: Any, minima: Any = None, name: str = "g") -> Any:
    return pod_group(name, min_member=min_member, min_task_member=minima)


@pytest.fixture
def gang(open_session: Any) -> Any:
    """Open a session on one group; return the session and the group's row."""

    def opened(*objects: Any) -> Any:
        ssn = open_session([*BASE, *objects], Gang())
        return ssn, ssn.snapshot.jobs.row_of["default/g"]

    return opened


# Validity


def test_a_job_with_too_few_pods_is_not_valid(gang: Any) -> None:
    ssn, job = gang(group(3), *pending(2))
    assert ssn.policy.job_valid(job) == "not enough pods for gang-scheduling: 2 of 3"


def test_failed_pods_do_not_count_for_validity(gang: Any) -> None:
    ssn, job = gang(group(2), *pending(1), pod("f", group="g", cpu=1, node="n1", phase="Failed"))
    assert ssn.policy.job_valid(job)


def test_a_job_with_too_few_pods_of_a_role_is_not_valid(gang: Any) -> None:
    ssn, job = gang(group(2, {"ps": 1, "worker": 1}), *pending(2, role="worker"))
    assert ssn.policy.job_valid(job) == "not enough pods of each task for gang-scheduling"


def test_minima_beyond_the_gang_are_not_enforced(gang: Any) -> None:
    ssn, job = gang(group(2, {"ps": 1, "worker": 2}), *pending(2, role="worker"))
    assert ssn.policy.job_valid(job) == ""


# Ready, pipelined, starving


def test_a_job_is_ready_with_its_least_number_placed(gang: Any) -> None:
    ssn, job = gang(group(2), *running(1), *pending(1))
    assert not ssn.policy.job_ready(job)
    ssn.statement().place(ssn.snapshot.tasks.row_of["default/p0"], 0)
    assert ssn.policy.job_ready(job)


def test_pods_that_ask_for_nothing_hold_nobody_up(gang: Any) -> None:
    ssn, job = gang(group(2), *running(1), *pending(1, cpu=None))
    assert ssn.policy.job_ready(job)
    assert ssn.policy.job_starving(job)


def test_a_job_is_ready_only_with_every_role(gang: Any) -> None:
    ssn, job = gang(group(2, {"ps": 1, "worker": 1}), *running(2, role="worker"))
    assert not ssn.policy.job_ready(job)


def test_a_job_keeps_its_place_with_enough_pipelined(gang: Any) -> None:
    ssn, job = gang(group(2), *running(1), *pending(1))
    assert not ssn.policy.job_pipelined(job)
    ssn.statement().pipeline(ssn.snapshot.tasks.row_of["default/p0"], 0)
    assert ssn.policy.job_pipelined(job)
    assert not ssn.policy.job_starving(job)


def test_a_job_above_its_least_number_does_not_starve(gang: Any) -> None:
    ssn, job = gang(group(1), *running(1), *pending(3))
    assert not ssn.policy.job_starving(job)


def test_jobs_that_are_not_ready_go_first(open_session: Any) -> None:
    world = [*BASE, group(1), *running(1), group(1, name="h"), pod("h-0", group="h", cpu=1)]
    ssn = open_session(world, Gang())
    rows = [ssn.snapshot.jobs.row_of[f"default/{name}"] for name in "gh"]
    keys = Gang().order_jobs(Jobs(ssn.snapshot, np.array(rows)))
    assert keys[1] < keys[0]


# Victims


@pytest.mark.parametrize("hook", ["preemptable", "reclaimable"])
@pytest.mark.parametrize(("min_member", "offered"), [(1, 2), (2, 1), (3, 0), (4, 0)])
def test_only_what_a_job_has_beyond_its_least_number_may_go(
    gang: Any, hook: str, min_member: int, offered: int
) -> None:
    ssn, _ = gang(group(min_member), *running(3))
    rows = [ssn.snapshot.tasks.row_of[f"default/r{i}"] for i in range(3)]
    assert getattr(ssn.policy, hook)(ssn.task(rows[0]), rows) == rows[:offered]


def test_the_bound_marks_every_task_of_a_job_with_some_to_spare(gang: Any) -> None:
    ssn, _ = gang(group(2), *running(3))
    plugin, task = ssn.plugins[0], ssn.task(0)
    rows = np.array(ssn.snapshot.nodes.tasks[0])
    assert plugin.bound_victims("preemptable", task, rows).all()
    tight, _ = gang(group(3), *running(3))
    assert not tight.plugins[0].bound_victims("preemptable", task, rows).any()
