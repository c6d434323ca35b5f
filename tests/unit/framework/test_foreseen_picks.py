"""Picks for tasks of several kinds, foreseen: those of one task after the other, bit for bit."""

from typing import Any

import numpy as np
import pytest

from pumice.core.resources import CPU
from pumice.core.views import Task
from pumice.framework import foreseen_picks as module
from pumice.framework.foreseen_picks import ForeseenPicks
from pumice.framework.plugin import Plugin
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import open_session


class Score(Plugin, name="score"):
    """Scores nodes by what they have left, in one of several ways."""

    way = "spread"

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        idle = nodes.idle[CPU] / 1000
        return {
            "spread": idle,
            "pack": -idle,
            "equal": np.zeros(len(idle)),
            "coarse": idle // 3,
            "waves": (idle * 7) % 5,
            "rising": np.where(idle > 4, idle, 9 - idle),
            "lonely": np.where(nodes.index == 0, 5.0, idle % 2),
        }[self.way]


WAYS = ("spread", "pack", "equal", "coarse", "waves", "rising", "lonely")


def cluster(rng: Any, seed: int) -> tuple[list[Any], list[str]]:
    """Make nodes, alike or not, and tasks of a few kinds in a random order."""
    nodes = [
        node(f"n{i}", cpu=int(rng.integers(2, 9)) if seed % 3 == 0 else 6, pods=[4, 110][i % 2])
        for i in range(int(rng.integers(2, 9)))
    ]
    sizes: list[Any] = ["1", "2", "500m", "1500m"][: int(rng.integers(1, 5))]
    n = int(rng.integers(12, 45))
    pods = [
        pod(f"p{i:02d}", group=f"g{i:02d}", cpu=sizes[int(rng.integers(len(sizes)))])
        for i in range(n)
    ]
    groups = [pod_group(f"g{i:02d}") for i in range(n)]
    return [queue("default"), *nodes, *groups, *pods], [f"default/p{i:02d}" for i in range(n)]


def foreseen(ssn: Any, tasks: list[int], picks: ForeseenPicks) -> list[int]:
    kinds: list[Any] = [picks.kind(Task(ssn.snapshot, row)) for row in tasks]
    assert picks.begin(kinds, len(kinds))
    nodes: list[int] = []
    while len(nodes) < len(tasks):
        at = len(nodes)
        some = picks.pick(kinds[at:])
        if not some:
            break
        ssn.snapshot.bind_each(np.array(tasks[at : at + len(some)]), np.array(some))
        picks.placed()
        nodes += some
    return nodes


def one_by_one(ssn: Any, tasks: list[int]) -> list[int]:
    nodes: list[int] = []
    for row in tasks:
        task = Task(ssn.snapshot, row)
        chosen = ssn.placing.choose(task, ssn.placing.fit(task))
        if chosen is None or not chosen[1]:
            break
        ssn.snapshot.bind(row, chosen[0])
        nodes.append(chosen[0])
    return nodes


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("first", "beyond", "kinds"), [(32, 96, 24), (3, 2, 24), (1, 0, 24), (32, 96, 0)]
)
def test_foreseen_picks_are_those_of_one_after_the_other(
    way: str, first: int, beyond: int, kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In two rounds, between which a node is emptied: what was learnt then still holds."""
    monkeypatch.setattr(module, "_FIRST", first)
    monkeypatch.setattr(module, "_LOOKED_BEYOND", beyond)
    monkeypatch.setattr(module, "MOST_KINDS", kinds)
    monkeypatch.setattr(Score, "way", way)
    rng = np.random.default_rng(WAYS.index(way))
    for seed in range(5):
        made, names = cluster(rng, seed)
        fast, slow = (open_session(made, [Score()], seed=seed) for _ in range(2))
        tasks = [fast.snapshot.tasks.row_of[name] for name in names]
        picks, half = ForeseenPicks(fast.placing), len(tasks) // 2
        found, wanted = foreseen(fast, tasks[:half], picks), one_by_one(slow, tasks[:half])
        assert found == wanted
        if len(found) < half:
            continue
        assert fast.placing.state == slow.placing.state
        for ssn in (fast, slow):
            ssn.snapshot.evict(tasks[0])
            ssn.snapshot.nodes.books[0, :, wanted[0]] += 1000
            ssn.snapshot.journal.touch(wanted[0])
        assert foreseen(fast, tasks[half:], picks) == one_by_one(slow, tasks[half:])


class Moods(Plugin, name="moods"):
    """Likes each number of free cores of each node in its own way, however alike the nodes are."""

    def __init__(self, seed: int) -> None:
        self.likes = np.random.default_rng(seed).integers(0, 9, (4, 5)).astype(float)

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        return self.likes[nodes.index, (nodes.idle[CPU] / 1000).astype(int)]


@pytest.mark.parametrize("first", [1, 2])
def test_nodes_that_only_seemed_alike_are_seen_as_they_are_from_then_on(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FIRST", first)
    monkeypatch.setattr(module, "_LOOKED_BEYOND", 0)
    made = [queue("default"), *(node(f"n{i}", cpu=4) for i in range(4))]
    for i in range(12):
        made += [pod_group(f"g{i:02d}"), pod(f"p{i:02d}", group=f"g{i:02d}", cpu=1)]
    for seed in range(12):
        fast, slow = (open_session(made, [Moods(seed)], seed=seed) for _ in range(2))
        tasks = [fast.snapshot.tasks.row_of[f"default/p{i:02d}"] for i in range(12)]
        assert foreseen(fast, tasks, ForeseenPicks(fast.placing)) == one_by_one(slow, tasks)


def test_many_tasks_are_picked_for_in_few_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    walks = []
    walk = ForeseenPicks._walk

    def counted(self: Any, numbers: Any) -> Any:
        steps = walk(self, numbers)
        walks.append(len(steps))
        return steps

    monkeypatch.setattr(ForeseenPicks, "_walk", counted)
    made = [queue("default"), *(node(f"n{i}", cpu=64) for i in range(8))]
    names = []
    for i in range(400):
        made += [pod_group(f"g{i}"), pod(f"p{i}", group=f"g{i}", cpu=1)]
        names.append(f"default/p{i}")
    ssn = open_session(made, [Score()])
    tasks = [ssn.snapshot.tasks.row_of[name] for name in names]
    assert len(foreseen(ssn, tasks, ForeseenPicks(ssn.placing))) == 400
    assert len(walks) <= 32
    assert max(walks) >= 16


def test_kinds_whose_candidates_must_be_compared_are_not_picked_for() -> None:
    class Ranker(Plugin, name="ranker"):
        def rank_nodes(self, task: Any, nodes: Any) -> Any:
            return np.zeros(len(nodes)) if task.request[CPU, 0] > 1000 else None

    made = [queue("default"), *(node(f"n{i}") for i in range(3))]
    for i in range(8):
        made += [pod_group(f"g{i}"), pod(f"p{i}", group=f"g{i}", cpu=1 + i % 2)]
    ssn = open_session(made, [Ranker()])
    picks = ForeseenPicks(ssn.placing)
    tasks = [Task(ssn.snapshot, ssn.snapshot.tasks.row_of[f"default/p{i}"]) for i in range(8)]
    kinds: list[Any] = [picks.kind(task) for task in tasks]
    assert kinds == [0, 1] * 4
    assert not picks.begin(kinds, len(kinds))
    assert [picks.kind(task) for task in tasks[:2]] == [0, None]
    assert picks.begin([0, 0, 0], 3)
