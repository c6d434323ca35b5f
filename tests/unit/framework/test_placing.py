"""Which node: verdicts, room, scores, choice, and that moved rows are asked again."""

from typing import Any

import numpy as np
import pytest

from pumice.framework.placing import IDLE, NO_ROOM
from pumice.framework.plugin import Plugin, Reason
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session
from tests.present import present

CLUSTER = [
    queue("default"),
    *(node(f"n{i}", cpu=4) for i in range(4)),
    pod_group("job", phase="Inqueue"),
    *(pod(f"p{i}", group="job", cpu=2) for i in range(3)),
    pod("full", group="job", cpu=4, node="n0"),
    pod("half", group="job", cpu=3, node="n1"),
]


class Codes(Plugin, name="codes"):
    """Refuses by table: facts first, then live."""

    reasons = (Reason("curable"), Reason("lasting", curable=False))
    facts: tuple[int, ...] = ()
    live: tuple[int, ...] = ()

    def filter_shape(self, shape: Any, facts: Any) -> Any:
        return np.array(self.facts, dtype=np.int16)[facts.index]

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        return np.array(self.live, dtype=np.int16)[nodes.index]


def task_of(ssn: Any, name: str = "p0") -> Any:
    return ssn.task(ssn.snapshot.tasks.row_of[f"default/{name}"])


def scoring(*scores: Any, hook: str = "score_nodes") -> Any:
    def answer(self: Any, task: Any, nodes: Any) -> Any:
        return np.array(scores, dtype=float)[nodes.index]

    return type("Scoring", (Plugin,), {hook: answer}, name="scoring")()


def test_a_device_that_broke_under_a_pod_bars_only_pods_that_ask_for_it() -> None:
    gpu = "nvidia.com/gpu"
    ssn = open_session(
        [
            queue("default"),
            node("n0", cpu=4, resources={gpu: 1}),
            pod("holds", cpu=1, resources={gpu: 2}, node="n0"),
            pod_group("job"),
            pod("p0", group="job", cpu=1),
            pod("p1", group="job", cpu=1, resources={gpu: 1}),
        ]
    )
    rooms = [ssn.placing.fit(task_of(ssn, name)).room.tolist() for name in ("p0", "p1")]
    assert rooms == [[IDLE], [NO_ROOM]]


def test_a_plugin_may_tell_tasks_of_one_shape_apart() -> None:
    class Row(Plugin, name="row"):
        def vary_by(self, task: Any) -> Any:
            return task.row

        def score_nodes(self, task: Any, nodes: Any) -> Any:
            return np.full(len(nodes), float(task.row))

    ssn = open_session(CLUSTER, [Row()])
    rows = [task_of(ssn, name).row for name in ("p0", "p1")]
    scores = [ssn.placing.fit(ssn.task(row)).score[0] for row in rows]
    assert scores == rows


def test_the_first_plugin_that_refuses_gives_the_reason() -> None:
    first, second = Codes(), Codes()
    first.facts, first.live = (0, 0, 1, 0), (0, 0, 0, 0)
    second.facts, second.live = (0, 2, 2, 0), (0, 0, 0, 0)
    ssn = open_session(CLUSTER, [first], [second])
    fit = ssn.placing.fit(task_of(ssn))
    texts = [ssn.placing.reasons[code].text for code in fit.verdict]
    assert texts == ["fits", "lasting", "curable", "fits"]


def test_inside_a_plugin_what_nothing_cures_is_reported_first() -> None:
    codes = Codes()
    codes.facts, codes.live = (1, 2, 1, 0), (2, 1, 1, 1)
    ssn = open_session(CLUSTER, [codes])
    fit = ssn.placing.fit(task_of(ssn))
    texts = [ssn.placing.reasons[code].text for code in fit.verdict]
    assert texts == ["lasting", "lasting", "curable", "curable"]
    assert ssn.placing.incurable(fit).tolist() == [True, True, False, False]


def test_scores_of_all_plugins_are_added() -> None:
    ssn = open_session(CLUSTER, [scoring(1, 2, 3, 4)], [scoring(10, 10, 30, 10, hook="rank_nodes")])
    task = task_of(ssn)
    assert ssn.placing.fit(task).score.tolist() == [1, 2, 3, 4]
    assert ssn.placing.scores(task, np.array([2, 3])).tolist() == [33, 14]
    assert ssn.placing.choose(task, ssn.placing.fit(task)) == (2, True)


def test_a_plugin_may_pick_among_scored_candidates() -> None:
    class Pick(Plugin, name="pick"):
        def best_node(self, task: Any, nodes: Any, scores: Any) -> int:
            assert (nodes.index.tolist(), scores.tolist()) == ([2, 3], [3.0, 4.0])
            return 2

    ssn = open_session(CLUSTER, [scoring(1, 2, 3, 4), Pick()])
    task = task_of(ssn)
    assert ssn.placing.choose(task, ssn.placing.fit(task)) == (2, True)
    assert ssn.failures.errors == {}


def test_equal_nodes_are_drawn_by_the_seed() -> None:
    cluster = [
        queue("default"),
        *(node(f"n{i}") for i in range(8)),
        pod_group("g"),
        pod("p0", group="g", cpu=1),
    ]

    def draws(seed: Any) -> Any:
        ssn = open_session(cluster, seed=seed)
        task = task_of(ssn)
        return [present(ssn.placing.choose(task, ssn.placing.fit(task)))[0] for _ in range(64)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    assert set(draws(1)) == set(range(8))


@pytest.mark.parametrize("n", [2, 3, 7])
def test_draws_are_even(n: int) -> None:
    ssn = open_session(CLUSTER, seed=5)
    counts = np.bincount([ssn.placing.spin(n) for _ in range(3000)], minlength=n)
    assert counts.min() > 0.85 * 3000 / n


def test_draws_follow_from_the_seed() -> None:
    """The sequence is part of what is promised: the same seed, the same ties."""
    ssn = open_session(CLUSTER, seed=1)
    assert [ssn.placing.spin(1000) for _ in range(4)] == [774, 153, 196, 870]
    assert open_session(CLUSTER, seed=2**64 + 1).placing.spin(1000) == 774
