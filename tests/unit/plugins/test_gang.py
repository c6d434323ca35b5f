"""gang: all tasks a job needs, or none of them."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pumice.framework.close_session import close_session
from pumice.framework.columns import Jobs
from pumice.framework.plugin import PERMIT, REJECT
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


# Parts of a job


@pytest.mark.parametrize(("ready", "pipelined", "says"), [(0, 0, REJECT), (0, 1, PERMIT)])
def test_parts_of_a_job_are_judged_by_their_own_counts(
    ready: bool, pipelined: bool, says: int
) -> None:
    part: Any = SimpleNamespace(is_ready=bool(ready), is_pipelined=bool(pipelined))
    assert Gang().subgroup_ready(part) is bool(ready)
    assert Gang().subgroup_pipelined(part) == says


def test_parts_that_are_not_ready_go_first() -> None:
    done: Any = SimpleNamespace(is_ready=True)
    waits: Any = SimpleNamespace(is_ready=False)
    pairs = [(waits, done), (done, waits), (done, done)]
    assert [Gang().order_subgroups(*pair) for pair in pairs] == [-1.0, 1.0, 0.0]


def test_a_whole_bundle_may_go_whatever_the_least_number(gang: Any) -> None:
    ssn, _ = gang(group(3), *running(3))
    eviction: Any = SimpleNamespace()
    assert ssn.plugins[0].gang_evictable(eviction, [0, 1, 2]).tolist() == [True] * 3


# The condition at the end of a session


def leaving(n: int, start: int = 0) -> Any:
    pods = running(n, start)
    for each in pods:
        each["metadata"]["deletionTimestamp"] = "2026-01-15T10:00:00Z"
    return pods


@pytest.mark.parametrize(
    ("objects", "conditions"),
    [
        ((group(1),), []),
        ((group(1), *running(1)), ["Scheduled"]),
        ((group(2), *running(1)), ["Unschedulable"]),
        ((group(2), *running(1), *pending(1, cpu=None)), ["Scheduled"]),
        ((group(1), *leaving(1)), []),
        ((group(2), *running(1), *leaving(1, 1)), []),
        ((group(3), *running(1), *leaving(1, 1)), ["Unschedulable"]),
        ((group(2), *leaving(2), *pending(1)), ["Unschedulable"]),
    ],
)
def test_a_gang_with_tasks_is_scheduled_or_not_unless_it_is_ending(
    gang: Any, objects: Any, conditions: list[str]
) -> None:
    """Ending: what is left and what is leaving make a gang, and nothing waits for a place."""
    ssn, _ = gang(*objects)
    state = close_session(ssn).pod_groups.get("default/g")
    found = [] if state is None else [each.type for each in state.conditions]
    assert found == conditions


def test_a_gang_that_waits_for_a_promised_place_is_not_ending(gang: Any) -> None:
    ssn, job = gang(group(2), *leaving(2), *pending(1))
    ssn.statement().pipeline(ssn.snapshot.tasks.row_of["default/p0"], 0)
    close_session(ssn)
    assert job in ssn.conditions
