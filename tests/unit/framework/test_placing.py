"""Which node: verdicts, room, scores, choice, and that moved rows are asked again."""

from typing import Any

import numpy as np
import pytest

from pumice.core.resources import CPU
from pumice.core.status import Status
from pumice.core.views import ALL
from pumice.framework import placing as placing_module
from pumice.framework.fits import FUTURE, IDLE, NO_ROOM
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


class Asked(Plugin, name="asked"):
    """Writes down which rows it is asked about."""

    def on_open(self, ssn: Any) -> None:
        self.rows: list[Any] = []

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        self.rows.append(nodes.index.tolist())
        return nodes.idle[CPU].copy()


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


def test_room_is_now_soon_or_none() -> None:
    ssn = open_session(CLUSTER)
    fit = ssn.placing.fit(task_of(ssn))
    assert fit.room.tolist() == [NO_ROOM, NO_ROOM, IDLE, IDLE]
    ssn.snapshot.evict(task_of(ssn, "full").row)
    assert ssn.placing.fit(task_of(ssn)).room.tolist() == [FUTURE, NO_ROOM, IDLE, IDLE]


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


def test_a_promise_takes_the_room_that_is_left() -> None:
    ssn = open_session(CLUSTER)
    ssn.snapshot.pipeline(task_of(ssn, "p1").row, 2)
    ssn.snapshot.pipeline(task_of(ssn, "p2").row, 2)
    assert ssn.placing.fit(task_of(ssn)).room.tolist() == [NO_ROOM, NO_ROOM, NO_ROOM, IDLE]


def test_all_nodes_are_asked_once_and_then_only_those_that_moved() -> None:
    asked = Asked()
    ssn = open_session(CLUSTER, [asked])
    task = task_of(ssn)
    ssn.placing.fit(task)
    ssn.placing.fit(task)
    ssn.snapshot.place(task_of(ssn, "p1").row, 3)
    fit = ssn.placing.fit(task)
    assert asked.rows == [[0, 1, 2, 3], [3]]
    assert fit.score.tolist() == [0, 1000, 4000, 2000]


def test_a_rollback_is_a_move_as_well() -> None:
    asked = Asked()
    ssn = open_session(CLUSTER, [asked])
    task = task_of(ssn)
    ssn.placing.fit(task)
    ssn.snapshot.place(task_of(ssn, "p1").row, 3)
    ssn.placing.fit(task)
    ssn.journal.rollback(0)
    assert ssn.placing.fit(task).score.tolist() == [0, 1000, 4000, 4000]
    assert asked.rows[-1] == [3]


def test_rows_that_a_plugin_touched_are_asked_again() -> None:
    asked = Asked()
    ssn = open_session(CLUSTER, [asked])
    task = task_of(ssn)
    ssn.placing.fit(task)
    ssn.journal.touch(np.array([1]))
    ssn.placing.fit(task)
    assert asked.rows[-1] == [1]


def test_when_most_rows_moved_all_are_asked_at_once() -> None:
    asked = Asked()
    ssn = open_session(CLUSTER, [asked])
    task = task_of(ssn)
    ssn.placing.fit(task)
    ssn.journal.touch(np.array([0, 1, 3]))
    ssn.placing.fit(task)
    assert asked.rows[-1] == [0, 1, 2, 3]


def test_tasks_of_one_shape_share_their_answers() -> None:
    asked = Asked()
    ssn = open_session(CLUSTER, [asked])
    assert ssn.placing.fit(task_of(ssn, "p0")) is ssn.placing.fit(task_of(ssn, "p1"))


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


def test_judged_columns_have_new_verdicts_and_ask_for_no_scores() -> None:
    class Roomy(Asked, name="roomy"):
        def filter_nodes(self, task: Any, nodes: Any) -> Any:
            return nodes.idle[CPU] >= 3000

    plugin = Roomy()
    ssn = open_session(CLUSTER, [plugin])
    task = task_of(ssn)
    fit = ssn.placing.judged(task)
    assert fit.verdict.astype(bool).tolist() == [True, True, False, False]
    plugin.rows.clear()
    ssn.statement().place(task_of(ssn, "p1").row, 2)
    assert ssn.placing.judged(task) is fit
    assert fit.verdict.astype(bool).tolist() == [True, True, True, False]
    assert plugin.rows == []
    assert ssn.placing.fit(task) is fit
    assert plugin.rows == [[2]]
    assert fit.score.tolist() == [0.0, 1000.0, 2000.0, 4000.0]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placing_module, "_MOST_BYTES", 1)
    ssn = open_session(CLUSTER, [Asked()])
    first = ssn.placing.fit(task_of(ssn, "p0"))
    ssn.placing.fit(task_of(ssn, "half"))
    assert ssn.placing.fit(task_of(ssn, "p0")) is not first


def test_the_fit_that_was_asked_for_last_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ssn = open_session(CLUSTER, [Asked()])
    first = ssn.placing.fit(task_of(ssn, "p0"))
    ssn.placing.fit(task_of(ssn, "half"))
    assert ssn.placing.fit(task_of(ssn, "p0")) is first
    monkeypatch.setattr(placing_module, "_MOST_BYTES", 2 * first.n_bytes)
    ssn.placing._fits["other"] = ssn.placing._fits.pop(next(iter(ssn.placing._fits)))
    assert ssn.placing.fit(task_of(ssn, "p0")) is first
    ssn.placing.fit(task_of(ssn, "half"))
    assert "other" not in ssn.placing._fits
    assert ssn.placing.fit(task_of(ssn, "p0")) is first


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


def test_feasible_nodes_pass_all_filters_and_have_room() -> None:
    codes = Codes()
    codes.facts, codes.live = (0, 0, 1, 0), (0, 0, 0, 0)
    ssn = open_session(CLUSTER, [codes])
    fit = ssn.placing.fit(task_of(ssn))
    assert ((fit.verdict == 0) & (fit.room != NO_ROOM)).tolist() == [False, False, False, True]


def test_scores_of_all_plugins_are_added() -> None:
    ssn = open_session(CLUSTER, [scoring(1, 2, 3, 4)], [scoring(10, 10, 30, 10, hook="rank_nodes")])
    task = task_of(ssn)
    assert ssn.placing.fit(task).score.tolist() == [1, 2, 3, 4]
    assert ssn.placing.scores(task, np.array([2, 3])).tolist() == [33, 14]
    assert ssn.placing.choose(task, ssn.placing.fit(task)) == (2, True)


def test_room_now_beats_a_better_score_soon() -> None:
    ssn = open_session(CLUSTER, [scoring(9, 0, 1, 2)])
    ssn.snapshot.evict(task_of(ssn, "full").row)
    task = task_of(ssn)
    assert ssn.placing.choose(task, ssn.placing.fit(task)) == (3, True)


def test_room_soon_is_taken_when_there_is_none_now() -> None:
    ssn = open_session(CLUSTER, [scoring(9, 0, 1, 2)])
    ssn.snapshot.evict(task_of(ssn, "full").row)
    task = task_of(ssn)
    only = np.array([True, True, False, False])
    assert ssn.placing.choose(task, ssn.placing.fit(task), only) == (0, False)


def test_nothing_is_chosen_where_nothing_fits() -> None:
    ssn = open_session(CLUSTER)
    task = task_of(ssn)
    only = np.array([True, True, False, False])
    assert ssn.placing.choose(task, ssn.placing.fit(task), only) is None
    empty = open_session([queue("default"), pod_group("job"), pod("p0", group="job", cpu=1)])
    task = task_of(empty)
    assert empty.placing.choose(task, empty.placing.fit(task)) is None


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


def test_a_task_that_was_placed_no_longer_waits() -> None:
    ssn = open_session(CLUSTER)
    task = task_of(ssn)
    node_row, _ = present(ssn.placing.choose(task, ssn.placing.fit(task)))
    ssn.snapshot.place(task.row, node_row)
    assert (task.status, task.node) == (Status.ALLOCATED, node_row)


def test_why_nodes_refuse_a_task_is_numbered_and_counted() -> None:
    codes = Codes()
    codes.facts, codes.live = (2, 0, 2, 0), (0, 0, 0, 0)
    ssn = open_session(CLUSTER, [codes])
    task = task_of(ssn)
    refusals = ssn.placing.refusals(task, ssn.placing.fit(task))
    assert refusals.tolist() == [-1, -1, 2, 0]
    assert ssn.placing.barred(refusals).tolist() == [False, False, True, False]
    assert ssn.placing.count_reasons(refusals) == {"Insufficient cpu": 2, "lasting": 1}


def test_a_refusal_that_is_known_stands() -> None:
    codes = Codes()
    codes.facts, codes.live = (0, 0, 0, 1), (0, 0, 0, 0)
    ssn = open_session(CLUSTER, [codes])
    task = task_of(ssn)
    known = np.array([2, 0, 0, -3], dtype=np.int16)
    refusals = ssn.placing.refusals(task, ssn.placing.fit(task), known)
    assert refusals.tolist() == [2, -1, 0, -3]
    assert ssn.placing.count_reasons(refusals) == {
        "Insufficient cpu": 1,
        "Insufficient pods": 1,
        "lasting": 1,
    }


@pytest.mark.parametrize(
    ("moved", "n", "wanted"),
    [
        ([3], 10, slice(3, 4)),
        ([3, 3], 10, slice(3, 4)),
        ([np.array([3])], 10, slice(3, 4)),
        ([3, 4], 10, [3, 4]),
        ([np.array([3, 5]), 4, 5], 10, [3, 4, 5]),
        ([np.array([0, 1, 2, 3, 4])], 10, [0, 1, 2, 3, 4]),
        ([np.array([0, 1, 2, 3, 4]), 5], 10, ALL),
        ([np.array([], dtype=np.intp)], 10, []),
        ([1], 1, slice(1, 2)),
    ],
)
def test_the_rows_of_a_log_are_distinct_and_all_where_most_moved(
    moved: Any, n: int, wanted: Any
) -> None:
    found = placing_module.distinct_rows(moved, n)
    if isinstance(wanted, list):
        assert not isinstance(found, slice)
        assert sorted(found.tolist()) == wanted
    else:
        assert found == wanted


def test_the_best_node_with_room_now_is_picked_whatever_is_promised() -> None:
    ssn = open_session(CLUSTER, [scoring(9, 8, 7, 6)])
    ssn.snapshot.pipeline(task_of(ssn, "p1").row, 2)
    ssn.snapshot.pipeline(task_of(ssn, "p2").row, 2)
    task = task_of(ssn)
    fit = ssn.placing.fit(task)
    assert fit.room.tolist() == [NO_ROOM, NO_ROOM, NO_ROOM, IDLE]
    assert ssn.placing.choose_idle(task, fit) == 2
    ssn.snapshot.nodes.books[0, CPU, 2] = 1999.95
    assert ssn.placing.choose_idle(task, fit) == 2
    ssn.snapshot.nodes.books[0, CPU, 2] = 1999.5
    assert ssn.placing.choose_idle(task, fit) == 3
    codes = Codes()
    codes.facts, codes.live = (1, 1, 1, 1), (0, 0, 0, 0)
    closed = open_session(CLUSTER, [codes])
    task = task_of(closed)
    assert closed.placing.choose_idle(task, closed.placing.fit(task)) is None


def test_refusals_are_left_aside_for_nodes_that_evictions_could_open() -> None:
    codes = Codes()
    codes.facts, codes.live = (1, 1, 1, 1), (0, 0, 0, 0)
    ssn = open_session(CLUSTER, [codes], [scoring(9, 8, 7, 6)])
    ssn.snapshot.evict(task_of(ssn, "full").row)
    task = task_of(ssn)
    fit, pick = ssn.placing.fit(task), ssn.placing.choose_curable
    assert pick(task, fit, np.array([True, True, True, True])) == (2, True)
    assert pick(task, fit, np.array([True, True, False, False])) == (0, False)
    assert pick(task, fit, np.array([False, True, False, False])) is None


def test_the_reasons_of_one_plugin_are_shown_apart() -> None:
    codes = Codes()
    codes.facts, codes.live = (0, 2, 0, 0), (1, 0, 0, 0)
    ssn = open_session(CLUSTER, [scoring(1, 1, 1, 1), codes])
    found = ssn.placing.plugin_codes(task_of(ssn), codes.position)
    assert present(found).tolist() == [1, 2, 0, 0]
    assert ssn.placing.plugin_codes(task_of(ssn), 99) is None


def test_draws_follow_from_the_seed() -> None:
    """The sequence is part of what is promised: the same seed, the same ties."""
    ssn = open_session(CLUSTER, seed=1)
    assert [ssn.placing.spin(1000) for _ in range(4)] == [774, 153, 196, 870]
    assert open_session(CLUSTER, seed=2**64 + 1).placing.spin(1000) == 774
