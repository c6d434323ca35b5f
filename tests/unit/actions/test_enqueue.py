"""enqueue: the best queue first, its best pending job first; plugins decide which is admitted."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.plugin import PERMIT, REJECT, Plugin
from pumice.scheduler import Scheduler
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
    assert found.explanations["default/j"].startswith(
        "not enqueued: over the limit of queue default"
    )


class Even(Plugin, name="even"):
    """Admits five jobs, each of the queue that has had the fewest."""

    simulator = SimulatorAssumptions()

    def on_open(self, ssn: Any) -> None:
        self._admitted: Counter[str] = Counter()

    def order_queues(self, queues: Any) -> Any:
        return np.array([float(self._admitted[name]) for name in queues.names])

    def job_enqueueable(self, job: Any) -> int:
        return PERMIT if self._admitted.total() < 5 else REJECT

    def on_enqueued(self, job: Any) -> None:
        self._admitted[job.snapshot.queues.names[job.queue]] += 1


def test_queues_are_ordered_again_after_each_job_that_is_admitted() -> None:
    groups = [
        pod_group(f"{name}{i}", queue=name, phase="Pending", min_resources={"cpu": 1})
        for name in "abc"
        for i in range(4)
    ]
    conf = parse_conf('actions: "enqueue"\ntiers:\n- plugins: [{name: even}]')
    objects = [node("n"), *map(queue, "abc"), *groups]
    decided = Scheduler(conf, plugins={"even": Even}).cycle(objects, 0.0).pod_groups
    admitted = [key for key, state in decided.items() if state.phase == "Inqueue"]
    assert admitted == [f"default/{name}" for name in ("a0", "a1", "b0", "b1", "c0")]
