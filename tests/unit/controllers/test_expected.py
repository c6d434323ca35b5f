"""Objects that controllers have still to make: which jobs lack pods, and how many are too many."""

from typing import Any

import pytest

from pumice.api.annotations import JOB_NAME
from pumice.controllers.expected import MOST_PODS, expand_jobs
from pumice.errors import ManifestError
from pumice.testing import pod


def running(replicas: int) -> dict[str, Any]:
    containers = [{"name": "c", "image": "busybox:1"}]
    task = {"name": "w", "replicas": replicas, "template": {"spec": {"containers": containers}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "default", "uid": "u"},
        "spec": {"minAvailable": 1, "queue": "default", "tasks": [task]},
        "status": {"state": {"phase": "Running"}},
    }


PRESENT = pod("j-w-0", cpu=1, node="n1", annotations={JOB_NAME: "j"})


def names(replicas: int, *objects: dict[str, Any]) -> list[str]:
    made = expand_jobs([running(replicas)], objects)
    return [one["metadata"]["name"] for one in made if one["kind"] == "Pod"]


def test_a_job_that_runs_gets_the_pods_that_it_lacks() -> None:
    assert names(3, PRESENT) == ["j-w-1", "j-w-2"]
    assert names(1, PRESENT) == []
    assert names(3) == [], "input without any of its pods says nothing"


def test_too_many_pods_are_refused_before_one_is_made() -> None:
    with pytest.raises(ManifestError, match="at most 200,000 pods"):
        names(MOST_PODS + 2, PRESENT)
