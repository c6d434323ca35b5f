"""What the kernel computes and picks is what the hooks answer and the plain loop chooses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.consistency import cells, changed
from pumice.core.views import Task
from pumice.kernel.library import library
from pumice.plugins.binpack import Binpack
from pumice.plugins.nodeorder import NodeOrder
from pumice.plugins.predicates import Predicates
from pumice.plugins.resource_strategy_fit import ResourceStrategyFit
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session

pytestmark = pytest.mark.skipif(library() is None, reason="there is no kernel")
GPU = "nvidia.com/gpu"
STRATEGIES = {
    "cpu": {"type": "MostAllocated", "weight": 3},
    "memory": {"type": "LeastAllocated", "weight": 2},
    "nvidia.com/*": {"type": "MostAllocated", "weight": 5},
}
PLUGINS: dict[str, Any] = {
    "nodeorder": lambda: NodeOrder(most=1, balanced=3),
    "least": lambda: NodeOrder(balanced=0, images=0),
    "binpack": lambda: Binpack(weight=7, memory=3, resources=[GPU], resource_weights={GPU: 5}),
    "strategies": lambda: ResourceStrategyFit(resources=STRATEGIES),
    "defaults": ResourceStrategyFit,
}


@st.composite
def clusters(draw: Any) -> list[Any]:
    """Nodes of several sizes with running pods, some of them leaving, and pods that wait."""
    made: list[Any] = [queue("default"), pod_group("g")]
    n = draw(st.integers(1, 9))
    for i in range(n):
        cpu, gpu = draw(st.integers(0, 9)), draw(st.integers(0, 4))
        memory, pods = f"{draw(st.integers(1, 17))}Gi", draw(st.sampled_from([1, 3, 110]))
        cordoned, more = draw(st.integers(0, 9)) == 0, {GPU: gpu} if gpu else {}
        size: dict[str, Any] = {"cpu": cpu, "memory": memory, "pods": pods, "resources": more}
        made.append(node(f"n{i}", unschedulable=cordoned, **size))
    asks = st.tuples(st.sampled_from([0, 0.1, 0.333, 1, 2]), st.sampled_from([0, 1, 3]))
    for i in range(draw(st.integers(0, 12))):
        cpu, gib = draw(asks)
        at = f"n{draw(st.integers(0, n - 1))}"
        made.append(pod(f"r{i}", node=at, cpu=cpu, memory=f"{gib}Gi", phase="Running"))
        if draw(st.booleans()):
            made[-1]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for i in range(draw(st.integers(1, 9))):
        cpu, gib = draw(asks)
        gpus = {GPU: draw(st.integers(0, 2))}
        made.append(pod(f"g-{i}", group="g", cpu=cpu, memory=f"{gib}Gi", resources=gpus))
    return made


@settings(max_examples=150)
@given(
    cluster=clusters(),
    scores=st.lists(st.sampled_from(sorted(PLUGINS)), min_size=1, max_size=3, unique=True),
    live=st.booleans(),
    seed=st.integers(0, 5),
)
def test_the_kernel_picks_as_the_plain_loop_does(
    cluster: Any, scores: Any, live: bool, seed: int
) -> None:
    plugins = [*([Predicates()] if live else []), *(PLUGINS[name]() for name in scores)]
    ssn = open_session(cluster, plugins, seed=seed)
    snapshot, placing = ssn.snapshot, ssn.placing
    stmt = ssn.statement()
    tasks = [Task(snapshot, row) for row in snapshot.jobs.tasks[0]]
    if len(tasks) > 3:  # room that is promised is no room now
        stmt.pipeline(tasks.pop().row, 0)
    classes = [placing.class_of(task) for task in tasks]
    assert None not in classes
    before = cells(snapshot)
    nodes, draws = placing.pick([each.number for each in classes if each])
    assert changed(before, cells(snapshot)) == []
    for i, (task, known) in enumerate(zip(tasks, classes, strict=True)):
        fit = placing.fit(task)
        assert known is not None
        np.testing.assert_array_equal(placing.kernel.values(known.number), fit.value)
        chosen = placing.choose(task, fit)
        if chosen is None or not chosen[1]:
            assert len(nodes) == i
            break
        assert (chosen[0], placing.state) == (nodes[i], draws[i])
        stmt.place(task.row, chosen[0])
    stmt.discard()
    for task, known in zip(tasks, classes, strict=True):
        assert known is not None
        value = placing.kernel.values(known.number)
        np.testing.assert_array_equal(value, placing.fit(task).value)
