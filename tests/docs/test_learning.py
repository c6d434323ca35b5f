"""The step interface of the examples: what it shows, what it rewards, and that one can learn."""

import math
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pumice

FILE = Path(__file__).parents[2] / "examples" / "learning" / "scheduling_environment.py"


@pytest.fixture(scope="module")
def example() -> Any:
    return SimpleNamespace(**runpy.run_path(str(FILE)))


def rush(seed: int) -> Any:
    """Twelve jobs at once, of which three fit."""
    runs = np.random.default_rng(seed).integers(60, 3600, 12).tolist()
    return pumice.workload(
        {"arrival": 0, "run": run, "walltime": 2 * run, "pods": 10, "cpu": 1} for run in runs
    )


@pytest.fixture
def environment(example: Any) -> Any:
    return example.SchedulingEnvironment(rush)


def episode(example: Any, environment: Any, policy: Any, seed: int) -> Any:
    seen, _ = environment.reset(seed)
    steps: list[Any] = []
    while not (steps and steps[-1][2]):
        steps.append(environment.step(policy(seen)))
        seen = steps[-1][0]
    return steps


def test_an_observation_has_a_row_for_each_of_the_oldest_jobs(
    example: Any, environment: Any
) -> None:
    seen, info = environment.reset(seed=3)
    assert seen.shape == environment.observation_shape == (16, 5)
    assert info == {}
    waiting = environment.waiting()
    assert len(waiting) == 12
    there, waited, asked, part, _ = seen.T
    assert there.sum() == min(len(waiting), 16)
    assert np.all(np.diff(waited[there > 0]) <= 0)  # the oldest first
    assert asked[0] == pytest.approx(waiting[0].spec.walltime / 3600)
    assert part[0] == pytest.approx(waiting[0].spec.size / 32)


def test_an_episode_ends_with_all_jobs_and_the_same_seed_plays_the_same(
    example: Any, environment: Any
) -> None:
    first = episode(example, environment, example.shortest_that_fits, 5)
    assert environment.result().figures["finished"] == 12
    assert not environment.result().failures
    again = episode(example, environment, example.shortest_that_fits, 5)
    assert [step[1] for step in first] == [step[1] for step in again]
    assert all(not cut_short for _, _, _, cut_short, _ in first)


def test_the_chosen_job_goes_first(example: Any, environment: Any) -> None:
    """Whichever of twelve jobs is chosen is among the three that start in the next cycle."""
    for row in (0, 5, 11):
        environment.reset(row)
        before = environment.waiting()
        environment.step(row)
        started = [run for run in before if not math.isnan(run.started)]
        assert len(started) == 3
        assert before[row] in started


def test_less_slowdown_is_more_reward(example: Any, environment: Any) -> None:
    rewards = {
        name: sum(step[1] for step in episode(example, environment, policy, 1))
        for name, policy in (
            ("first", example.first_come),
            ("shortest", example.shortest_that_fits),
        )
    }
    assert rewards["first"] < rewards["shortest"] < 0


@pytest.mark.slow
def test_a_greedy_policy_and_a_learned_one_beat_first_come(example: Any) -> None:
    environment = example.SchedulingEnvironment(example.drawn_workload)
    weights = example.learn(environment, rounds=2, tries=3)
    unseen = (100, 101)
    first, greedy, learned = (
        np.mean([example.play(environment, policy, seed) for seed in unseen])
        for policy in (example.first_come, example.shortest_that_fits, example.linear(weights))
    )
    assert greedy < 0.8 * first
    assert learned < 0.9 * first


@pytest.mark.parametrize("action", [-1, 16])
def test_an_action_out_of_range_is_refused(environment: Any, action: int) -> None:
    environment.reset(seed=1)
    with pytest.raises(ValueError, match=f"expected an action from 0 to 15, got {action}"):
        environment.step(action)


def test_a_reset_takes_the_arguments_of_gymnasium(environment: Any) -> None:
    first, _ = environment.reset(seed=4, options=None)
    second, _ = environment.reset()
    again, _ = environment.reset(seed=5)
    assert not np.array_equal(first, second)
    assert np.array_equal(second, again)
    with pytest.raises(ValueError, match="expected no options, got speed"):
        environment.reset(seed=4, options={"speed": 2})
