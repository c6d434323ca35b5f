"""binpack: the weighted use of what a task asks for, with the task in place."""

from typing import Any

import pytest

from pumice.core.views import Task
from pumice.framework.arguments import bind_arguments
from pumice.plugins.binpack import Binpack
from pumice.testing import node, pod, pod_group, queue

GPU, FOO = "nvidia.com/gpu", "example.com/foo"
WEIGHTS = {
    "binpack.weight": 10,
    "binpack.cpu": 5,
    "binpack.memory": 1,
    "binpack.resources": f"{GPU}, {FOO}",
    f"binpack.resources.{GPU}": 2,
    f"binpack.resources.{FOO}": 3,
}


@pytest.fixture
def scores(open_session: Any) -> Any:
    """Score nodes for a pod: arguments as in a configuration, objects beside queue and group."""

    def run(objects: Any, arguments: Any, **request: Any) -> Any:
        fields, problems = bind_arguments(Binpack, arguments)
        assert problems == []
        plugin = Binpack(**fields)
        objects = [queue("default"), pod_group("g"), pod("p", group="g", **request), *objects]
        ssn = open_session(objects, plugin)
        task = Task(ssn.snapshot, ssn.snapshot.tasks.row_of["default/p"])
        found = plugin.score_nodes(task, ssn.nodes())
        return None if found is None else found.tolist()

    return run


def busy(name: Any, used: Any, **offers: Any) -> Any:
    return [node(name, **offers), pod(f"old-{name}", node=name, **used)]


def test_the_weights_of_the_configuration_are_applied_resource_by_resource(scores: Any) -> None:
    """Cpu 4 of 8 times 5, memory 2 of 8 times 1, gpus 3 of 4 times 2, foo 1 of 2 times 3, of 11."""
    held = {"cpu": 2, "memory": "1Gi", "resources": {GPU: 2}}
    objects = busy("n", held, cpu=8, memory="8Gi", resources={GPU: 4, FOO: 2})
    found = scores(objects, WEIGHTS, cpu=2, memory="1Gi", resources={GPU: 1, FOO: 1})
    assert found == [pytest.approx((4 / 8 * 5 + 2 / 8 + 3 / 4 * 2 + 1 / 2 * 3) / 11 * 100 * 10)]


def test_the_fuller_node_scores_higher(scores: Any) -> None:
    objects = [
        *busy("full", {"cpu": 6}, cpu=8),
        *busy("half", {"cpu": 3}, cpu=8),
        node("idle", cpu=8),
    ]
    found = scores(objects, {}, cpu=1)
    assert found == [pytest.approx(x) for x in (700 / 8, 400 / 8, 100 / 8)]


def test_what_a_task_does_not_ask_for_does_not_count(scores: Any) -> None:
    objects = busy("n", {"memory": "7Gi"}, cpu=8, memory="8Gi")
    assert scores(objects, {}, cpu=4) == [50.0]


def test_a_resource_that_is_not_named_does_not_count(scores: Any) -> None:
    objects = [node("n", cpu=8, resources={GPU: 4})]
    assert scores(objects, {}, cpu=4, resources={GPU: 4}) == [50.0]


def test_one_resource_that_would_overflow_makes_the_score_zero(scores: Any) -> None:
    objects = busy("n", {"cpu": 7}, cpu=8, memory="8Gi")
    assert scores(objects, {}, cpu=2, memory="4Gi") == [0.0]


def test_a_resource_of_weight_nought_counts_nothing_and_overflows_nothing(scores: Any) -> None:
    objects = busy("n", {"cpu": 7}, cpu=8, memory="8Gi")
    assert scores(objects, {"binpack.cpu": 0}, cpu=2, memory="4Gi") == [50.0]


def test_a_named_resource_without_a_weight_counts_once(scores: Any) -> None:
    objects = [node("n", cpu=8, resources={GPU: 4})]
    assert scores(objects, {"binpack.resources": GPU}, cpu=8, resources={GPU: 1}) == [62.5]


def test_a_negative_weight_counts_once() -> None:
    fields, problems = bind_arguments(Binpack, {"binpack.cpu": -1})
    assert fields == {"cpu": 1}
    assert [problem.field for problem in problems] == ["binpack.cpu"]


def test_without_weight_there_is_no_opinion(scores: Any) -> None:
    assert scores([node("n")], {"binpack.weight": 0}, cpu=1) is None
