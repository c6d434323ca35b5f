"""Admission on a real API server: what users read when an object is refused, what is filled in."""

from typing import Any

import pytest

from pumice.testing.builders import pod_group
from tests.e2e_kube.space import job

# The scheduler makes the queues root and default when it starts.
pytestmark = pytest.mark.usefixtures("webhooks", "default_scheduler")


def test_a_bad_job_is_refused_with_a_readable_message(space: Any) -> None:
    said = space.kubectl.refuses(job("bad", replicas=1, min_available=3))
    assert "admission webhook" in said
    assert "job 'minAvailable' should not be greater than total replicas in tasks" in said
    said = space.kubectl.refuses(job("bad", queue="nowhere"))
    assert "unable to find job queue" in said
    twice = job("bad", replicas=1)
    twice["spec"]["tasks"] *= 2
    assert "duplicated task name worker" in space.kubectl.refuses(twice)
    assert space.kubectl.items("vcjob") == []


def test_the_schema_refuses_what_is_no_pod_group(space: Any) -> None:
    wrong = pod_group("bad", namespace=space.namespace, spec={"minMember": "many"})
    said = space.kubectl.refuses(wrong)
    assert "spec.minMember" in said
    assert "integer" in said


def test_defaults_are_filled_in(space: Any) -> None:
    bare = job("bare", replicas=2)
    for key in ("minAvailable", "schedulerName"):
        del bare["spec"][key]
    del bare["spec"]["tasks"][0]["name"]
    space.kubectl.create(bare)
    spec = space.kubectl.get("vcjob/bare")["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "volcano", 3)
    assert (spec["minAvailable"], spec["tasks"][0]["name"]) == (2, "default0")


def test_only_some_fields_of_a_job_may_change(space: Any) -> None:
    space.kubectl.create(job("train", replicas=2))
    done = space.kubectl.run(
        "patch", "vcjob/train", "--type=merge", "-p", '{"spec": {"queue": "other"}}'
    )
    assert done.returncode != 0
    assert "may not change" in done.stderr or "not allowed" in done.stderr


def queue(name: Any, **spec: Any) -> Any:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parent": "root", **spec},
    }


def test_a_queue_counts_from_the_moment_it_is_there(space: Any) -> None:
    """One kubectl makes a tree, each queue a few milliseconds after its parent."""
    for branch in range(5):
        above, made = "root", []
        for level in range(3):
            made.append(queue(f"q{branch}-{level}", parent=above))
            above = f"q{branch}-{level}"
        space.kubectl.create(*made)
    assert space.queue("q4-2")["spec"]["parent"] == "q4-1"


def test_queues_must_fit_into_their_parents(space: Any) -> None:
    more = queue("bad", deserved={"cpu": "1"}, guarantee={"resource": {"cpu": "2"}})
    assert "deserved" in space.kubectl.refuses(more)
    space.kubectl.create(queue("dept", capability={"cpu": "2"}))
    wide = queue("team", parent="dept", capability={"cpu": "3"})
    assert "capability" in space.kubectl.refuses(wide)
    space.kubectl.create(queue("team", parent="dept", capability={"cpu": "1"}))
    stored = space.kubectl.get("queue/team")["spec"]
    assert (stored["weight"], stored["reclaimable"]) == (1, True)
    done = space.kubectl.run("delete", "queue/dept")
    assert done.returncode != 0
    assert "denied the request" in done.stderr
    done = space.kubectl.run("delete", "queue/default")
    assert done.returncode != 0
    assert "default" in done.stderr
