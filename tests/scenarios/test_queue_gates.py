"""Scheduling gates as queue admission: which gates open, and for whom the room is kept."""

from pathlib import Path

import pytest

from pumice.errors import ScenarioError
from pumice.scenarios.runner import default_scheduler
from pumice.scenarios.scenario import scenario_from
from pumice.testing import CompareOptions, check, find_scenarios, load_scenario

FILES = [file.path for file in find_scenarios([Path(__file__).parent / "queue-gates"])]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_gates_open_as_the_scenario_says(path: Path) -> None:
    """The scenario ends as in its file."""
    assert check(load_scenario(path), default_scheduler, CompareOptions()) == []


def test_a_wrong_expectation_is_noticed() -> None:
    """A file that expects other gates to open fails, in both directions."""
    path = next(path for path in FILES if path.stem.startswith("a-gate-opens"))
    scenario = load_scenario(path)
    scenario.expect[0]["openedGates"] = ["team/two"]

    assert check(scenario, default_scheduler, CompareOptions()) == [
        "cycle 1: team/two: gate kept, expected it to be removed",
        "cycle 1: team/one: gate removed, expected it to stay",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"SchedulingGatesQueueAdmissions": True}, "did you mean 'SchedulingGatesQueueAdmission'?"),
        ({"SchedulingGatesQueueAdmission": "yes"}, "expected true or false, got 'yes'"),
    ],
)
def test_feature_gates_are_checked(given: dict[str, object], said: str) -> None:
    """A misspelt feature or value is one clear sentence."""
    with pytest.raises(ScenarioError) as refused:
        scenario_from({"objects": [], "featureGates": given}, Path("s.yaml"))

    assert said in str(refused.value)
