"""Scores by amounts: floats for a few nodes and columns for many are the same, bit for bit."""

from typing import Any

import numpy as np
import pytest

from pumice.core.views import Nodes
from pumice.plugins.nodeorder.amounts import AmountScores
from pumice.testing.builders import node, pod, pod_group, queue
from pumice.testing.samples import open_session

GPU = "nvidia.com/gpu"


@pytest.mark.parametrize("seed", range(12))
def test_floats_and_columns_score_alike(seed: int) -> None:
    dice = np.random.default_rng(seed)

    def draw(*choices: Any) -> Any:
        return choices[dice.integers(len(choices))]

    objects = [queue("default"), pod_group("g", min_member=1)]
    for number in range(24):
        size: Any = {
            "cpu": draw(0, 3, 7, 16),
            "memory": draw("1Gi", "5Gi"),
            "resources": {GPU: draw(0, 1, 8)},
        }
        objects.append(node(f"n{number}", **size))
        for place in range(draw(0, 1, 2)):
            asked: Any = {"cpu": draw("100m", "1", "2500m"), "memory": draw("0", "3Gi")}
            objects.append(pod(f"p{number}-{place}", group="g", node=f"n{number}", **asked))
    wanted: Any = {"cpu": draw("0", "300m", "2"), "resources": {GPU: draw(0, 1)}}
    ssn = open_session([*objects, pod("new", group="g", **wanted)])
    snapshot = ssn.snapshot
    shape = ssn.task(snapshot.tasks.row_of["default/new"]).shape
    nodes = Nodes(snapshot, np.arange(snapshot.nodes.n))
    gpu = snapshot.resources.names.index(GPU)
    for least, most, balanced in ((1, 0, 1), (0, 2, 3), (1, 1, 0)):
        scores = AmountScores(least, most, balanced, gpu=gpu)
        few = scores.of_few(shape, nodes, range(snapshot.nodes.n)).tolist()
        assert scores.of_rows(shape, nodes).tolist() == few
        assert len(set(few)) > 1
