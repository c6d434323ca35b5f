"""Changed jobs: defaults that a file leaves out are filled in, and are no change."""

from typing import Any

import pytest

from pumice.api.cloning import clone
from pumice.webhooks.registry import SERVICES
from pumice.webhooks.review import Options, Request, applied

EXISTING: Any = None  # these rules ask for no other object
GIVEN = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {
        "minAvailable": 1,
        "plugins": {"pytorch": []},
        "tasks": [
            {
                "replicas": 2,
                "template": {
                    "spec": {
                        "hostNetwork": True,
                        "containers": [{"name": "c", "image": "i"}],
                    }
                },
            }
        ],
    },
}


def filled(job: Any, operation: Any = "CREATE") -> Any:
    request = Request(operation=operation, object=job, old=job)
    patch = SERVICES["/jobs/mutate"].answer(request, EXISTING, Options()).patch
    return applied(clone(job), patch) if patch else job


def refused(new: Any, old: Any) -> str:
    request = Request(operation="UPDATE", object=new, old=old)
    return SERVICES["/jobs/validate"].answer(request, EXISTING, Options()).message


def scaled(job: Any, replicas: int) -> Any:
    new = clone(job)
    new["spec"]["tasks"][0]["replicas"] = replicas
    return new


def test_a_file_that_leaves_defaults_out_can_be_applied_with_other_replicas() -> None:
    stored = filled(GIVEN)
    changed = filled(scaled(GIVEN, 3), "UPDATE")
    (task,) = changed["spec"]["tasks"]
    assert (task["replicas"], task["maxRetry"], task["name"]) == (3, 3, "default0")
    assert {**changed["spec"], "tasks": 0} == {**stored["spec"], "tasks": 0}
    assert not refused(changed, stored)


def test_missing_defaults_are_no_change_where_nobody_fills_them_in() -> None:
    """Volcano's own webhook configuration asks for changes of new jobs only."""
    assert not refused(scaled(GIVEN, 3), filled(GIVEN))


@pytest.mark.parametrize("name", ["maxRetry", "name", "minAvailable"])
def test_any_default_of_a_task_may_be_missing(name: str) -> None:
    stored = filled(GIVEN)
    new = clone(stored)
    del new["spec"]["tasks"][0][name]
    assert not refused(new, stored)


@pytest.mark.parametrize(
    ("name", "value"), [("queue", "other"), ("schedulerName", "mine"), ("maxRetry", 7)]
)
def test_a_value_other_than_the_default_may_not_be_left_out(name: str, value: Any) -> None:
    stored = filled(GIVEN)
    stored["spec"][name] = value
    assert "may not change fields" in refused(scaled(GIVEN, 3), stored)


def test_other_changes_are_still_refused() -> None:
    stored = filled(GIVEN)
    new = scaled(GIVEN, 3)
    new["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["image"] = "j"
    assert "may not change fields" in refused(new, stored)
