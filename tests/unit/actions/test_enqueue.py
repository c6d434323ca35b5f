"""enqueue: the best queue first, its best pending job first; plugins decide which is admitted."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from pumice.api.conf import parse_conf
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.plugin import PERMIT, REJECT, Plugin
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue

WORLD = [node("n1", cpu=4, memory="64Gi"), queue("default")]


def job(name: Any, cpu: Any, **group: Any) -> Any:
    return [
        pod_group(name, min_resources={"cpu": cpu}, **group),
        pod(f"{name}-0", group=name, cpu=cpu),
    ]


def phases(decisions: Any) -> Any:
    return {name.partition("/")[2]: s.phase for name, s in decisions.pod_groups.items()}


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
