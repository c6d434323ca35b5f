"""The search for remedies: its results work, and it knows when to stop."""

from pathlib import Path
from typing import Any

import pytest

from pumice.diagnosis import explain_job, load_world
from pumice.diagnosis.remedy.search import Search
from pumice.diagnosis.replay import Replay
from pumice.diagnosis.trials import look
from pumice.testing import node, queue

EXAMPLE = Path(__file__).parents[3] / "examples" / "first-cluster.yaml"


def causes(world: Any, job: str) -> Any:
    return explain_job(world, job, unblock=False).causes


@pytest.mark.parametrize("job", ["ai/sweep", "data/render"])
def test_every_way_out_works_on_a_fresh_copy(job: str) -> None:
    world = load_world([EXAMPLE])
    ways = Search(world, job, Replay(world)).ways(causes(world, job))
    assert ways
    for way in ways:
        found = look(way.change(world), job)
        assert found.started or found.makes_room, way.change.text


def test_the_budget_bounds_the_trials(world: Any, job: Any) -> None:
    there = world([queue("default"), node("n1", cpu=4), *job("j", cpu=3, pods=40)])
    search = Search(there, "default/j", Replay(there))
    search.left = 3
    search.ways(causes(there, "default/j"))
    assert len(search.tried) == 3


def test_a_large_world_gets_fewer_trials(world: Any) -> None:
    small, large = (world([node(f"n{i}") for i in range(n)]) for n in (1, 10_000))
    unused: Any = None
    assert Search(small, "x", unused).left > Search(large, "x", unused).left > 0


def test_the_same_change_is_tried_once(world: Any, job: Any) -> None:
    there = world([queue("default"), node("n1", cpu=4), *job("j", cpu=3, pods=2)])
    search, found = Search(there, "default/j", Replay(there)), causes(there, "default/j")
    first = search.ways(found)
    tried = len(search.tried)
    assert [way.change for way in search.ways(found)] == [way.change for way in first]
    assert len(search.tried) == tried
