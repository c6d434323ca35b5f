"""gang: all tasks a job needs, or none of them."""

from typing import Any

import pytest

from pumice.framework.session import close_session
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
