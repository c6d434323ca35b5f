"""A no with its reason: false, a reject, and read by its caller alone."""

from types import new_class
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.api.decisions import Short, short_of
from pumice.framework.refusals import over_quota
from pumice.plugin import (
    PERMIT,
    REJECT,
    Plugin,
    PluginSession,
    Queue,
    Refusal,
    Task,
    Verdict,
    Why,
    within_quota,
)
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

CLUSTER = [
    queue("q"),
    node("n", cpu=4),
    pod_group("job", queue="q", min_resources={"cpu": 1}),
    pod("waits", group="job", cpu=1),
]
CLOSED = Refusal(Why.QUEUE_CLOSED, {"queue": 0})


def saying(**answers: Any) -> type[Plugin]:
    members = {hook: lambda self, *args, a=answer: a for hook, answer in answers.items()}
    return new_class("Saying", (Plugin,), {"name": "saying"}, lambda space: space.update(members))


def test_a_refusal_is_a_no() -> None:
    assert not CLOSED
    ssn = open_session(
        CLUSTER, [saying(allocatable=True)(), saying(allocatable=CLOSED, job_ready=CLOSED)()]
    )
    assert ssn.policy.allocatable(0, ssn.task(0)) is CLOSED
    assert ssn.policy.job_ready(0) is CLOSED


def test_a_refusal_is_a_reject() -> None:
    ssn = open_session(
        CLUSTER, [saying(job_enqueueable=PERMIT)(), saying(job_enqueueable=CLOSED)()]
    )
    assert ssn.policy.job_enqueueable(0) is CLOSED
    assert not ssn.failures.errors


def test_a_refusal_lacks_nothing_that_its_message_needs() -> None:
    with pytest.raises(ValueError, match="'queue has no valid place in the tree' needs problem"):
        Refusal(Why.QUEUE_MISPLACED, {"queue": 0})
    with pytest.raises(ValueError, match="needs at, limit, request, used"):
        Refusal(Why.OVER_QUOTA, {"resource": "cpu"})


def test_the_first_resource_that_there_is_too_much_of_is_named() -> None:
    names, two = ["cpu", "memory", "pods", "gpu"], np.array([2.0, 0.0, 2.0, 2.0])
    limit = np.array([9.0, 0.0, 0.0, 3.0])
    refusal = within_quota(names, two, two, limit, queue=5, at="team")
    assert refusal == over_quota([Short("gpu", 2.0, 2.0, 3.0)], queue=5, at="team")
    assert within_quota(names, two, two, limit + 1, queue=5, at="team") is True


def test_all_resources_that_there_is_too_much_of_are_reported() -> None:
    names, two = ["cpu", "memory", "pods", "gpu"], np.array([2.0, 2.0, 2.0, 2.0])
    refusal = within_quota(names, two, two, np.array([3.0, 9.0, 0.0, 1.0]), queue=5, at="team")
    assert isinstance(refusal, Refusal)
    assert refusal.numbers["resource"] == "cpu"
    assert short_of(refusal.numbers) == [Short("cpu", 2.0, 2.0, 3.0), Short("gpu", 2.0, 2.0, 1.0)]


@pytest.mark.parametrize(
    ("actions", "answers", "reported"),
    [
        ("enqueue, allocate", {"job_enqueueable": CLOSED}, "not enqueued: queue q is not open"),
        ("allocate", {"allocatable": CLOSED}, "queue q is not open"),
        ("allocate", {"job_ready": CLOSED, "job_pipelined": REJECT}, "queue q is not open"),
    ],
)
def test_why_a_plugin_refused_is_what_the_job_is_reported(
    actions: str, answers: dict[str, Any], reported: str
) -> None:
    conf = parse_conf(
        f'actions: "{actions}"\ntiers:\n- plugins:\n  - name: saying\n  - name: gang\n'
    )
    cycle = Scheduler(conf, plugins={"saying": saying(**answers)}).cycle(CLUSTER, 0.0)
    assert cycle.explanations["default/job"] == reported
    assert cycle.failures == []


def test_a_refusal_reported_to_one_is_not_reported_to_the_next() -> None:
    """A no without a reason gets none from a question that was asked before."""

    class Once(Plugin, name="once"):
        def on_open(self, ssn: PluginSession) -> None:
            self._answers: list[Verdict] = [CLOSED, False]

        def allocatable(self, queue: Queue, task: Task) -> Verdict:
            return self._answers.pop(0)

    ssn = open_session(CLUSTER, [Once()])
    assert ssn.policy.allocatable(0, ssn.task(0)) is CLOSED
    assert ssn.policy.allocatable(0, ssn.task(0)) is False
