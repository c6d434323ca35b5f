"""enqueue: the best queue first, its best pending job first; plugins decide which is admitted."""

from typing import Any

import pytest

from pumice.testing import node, pod, pod_group, priority_class, queue

WORLD = [node("n1", cpu=4, memory="64Gi"), queue("default")]


def job(name: Any, cpu: Any, **group: Any) -> Any:
    return [
        pod_group(name, min_resources={"cpu": cpu}, **group),
        pod(f"{name}-0", group=name, cpu=cpu),
    ]


def phases(decisions: Any) -> Any:
    return {name.partition("/")[2]: s.phase for name, s in decisions.pod_groups.items()}


def test_a_job_without_stated_needs_is_admitted_unasked(decide: Any) -> None:
    objects = [*WORLD, pod_group("g"), pod("g-0", group="g", cpu=99)]
    assert phases(decide(objects, "overcommit proportion", actions="enqueue")) == {"g": "Inqueue"}


def test_a_job_is_admitted_while_there_will_be_room(decide: Any) -> None:
    """1.2 times 4 cpus: 3 and 1.5 fit, the next 1.5 does not, 0.3 behind it does."""
    objects = [*WORLD]
    for i, cpu in enumerate(("3", "1500m", "1500m", "300m")):
        objects += job(f"j{i}", cpu, created=f"2026-01-01T00:00:0{i}Z")
    found = phases(decide(objects, "overcommit", actions="enqueue"))
    assert found == {"j0": "Inqueue", "j1": "Inqueue", "j2": "Pending", "j3": "Inqueue"}


def test_the_best_job_of_a_queue_is_asked_first(decide: Any) -> None:
    objects = [*WORLD, priority_class("high", value=9), *job("a-low", 4)]
    objects += job("b-high", 4, priority_class="high")
    found = phases(decide(objects, "priority overcommit", actions="enqueue"))
    assert found == {"a-low": "Pending", "b-high": "Inqueue"}


def test_the_best_queue_goes_first_and_goes_on_while_it_is_the_best(decide: Any) -> None:
    """Letting a job in moves no queue: without a policy the queue that comes first stays first."""
    objects = [node("n1", cpu=4), queue("b"), queue("a")]
    for name in ("b1", "b2", "a1", "a2"):
        objects += job(name, 2, queue=name[0])
    found = phases(decide(objects, "overcommit", actions="enqueue"))
    assert found == {"a1": "Inqueue", "a2": "Inqueue", "b1": "Pending", "b2": "Pending"}


@pytest.mark.parametrize("phase", ["Running", "Inqueue", "Unknown"])
def test_a_job_that_was_admitted_before_is_not_asked_again(decide: Any, phase: str) -> None:
    objects = [*WORLD, *job("old", 4, phase=phase), *job("new", 4)]
    found = phases(decide(objects, "overcommit", actions="enqueue"))
    assert found["new"] == ("Inqueue" if phase != "Inqueue" else "Pending")


@pytest.mark.parametrize("phase", ["Pending", None])
def test_a_group_without_a_phase_is_pending(decide: Any, phase: Any) -> None:
    assert phases(decide([*WORLD, *job("j", 1, phase=phase)], actions="enqueue")) == {
        "j": "Inqueue"
    }


def test_a_job_of_no_queue_is_left_out(decide: Any) -> None:
    assert phases(decide([*WORLD, *job("j", 1, queue="gone")], actions="enqueue")) == {}


def test_one_refusal_is_enough(decide: Any) -> None:
    objects = [node("n1", cpu=40), queue("default", capability={"cpu": 2}), *job("j", 3)]
    found = decide(objects, "overcommit proportion", actions="enqueue")
    assert phases(found) == {"j": "Pending"}
    assert found.explanations["default/j"].startswith("not enqueued: over quota at default: cpu")
