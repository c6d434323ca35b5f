"""binpack: the weighted use of what a task asks for, with the task in place."""

from typing import Any

import pytest

from pumice.core.views import Task
from pumice.framework.arguments import bind_arguments
from pumice.plugins.binpack import Binpack
from pumice.testing import node, pod, pod_group, queue


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


def test_without_weight_there_is_no_opinion(scores: Any) -> None:
    assert scores([node("n")], {"binpack.weight": 0}, cpu=1) is None
