"""Garbage collector: ttlSecondsAfterFinished."""

from typing import Any

import pytest

from pumice.api.times import rfc3339
from pumice.controllers.base import Delete
from pumice.controllers.garbage import GarbageController
from tests.unit.controllers.fakes import NOON, FakeView, key


def finished(phase: str = "Completed", ttl: Any = 5, **metadata: Any) -> Any:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns", **metadata},
        "spec": {} if ttl is None else {"ttlSecondsAfterFinished": ttl},
        "status": {"state": {"phase": phase, "lastTransitionTime": rfc3339(NOON)}},
    }


def plan_at(job: Any, after_s: Any) -> Any:
    return GarbageController().reconcile(key(job), FakeView(job, now=NOON + after_s))


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_a_finished_job_goes_when_its_time_is_over(phase: str) -> None:
    job = finished(phase)
    gone = Delete(key(job), propagation="Foreground", uid="uid-of-j")
    assert plan_at(job, 5).effects == [gone]


def test_before_its_time_it_is_looked_at_again() -> None:
    plan = plan_at(finished(), 2)
    assert (plan.effects, plan.again_in_s) == ([], 3.0)


def test_a_time_to_live_of_nothing_means_at_once() -> None:
    assert plan_at(finished(ttl=0), 0).effects


@pytest.mark.parametrize(
    "job",
    [
        finished("Aborted"),
        finished("Running"),
        finished(ttl=None),
        finished(deletionTimestamp=rfc3339(NOON)),
    ],
    ids=["aborted", "running", "no limit", "already going"],
)
def test_others_are_left_alone(job: Any) -> None:
    plan = plan_at(job, 100)
    assert (plan.effects, plan.again_in_s) == ([], None)


def test_a_job_that_is_gone_needs_nothing() -> None:
    assert GarbageController().reconcile(key(finished()), FakeView()).effects == []
