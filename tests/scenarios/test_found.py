"""Small scenarios, each of which once went wrong: what Volcano decides, in a few objects."""

from pathlib import Path
from typing import Any

import pytest

from pumice.scenarios.runner import default_scheduler
from pumice.testing import CompareOptions, check, find_scenarios, load_scenario

FOUND = [file.path for file in find_scenarios([Path(__file__).parent / "found"])]


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_decided_as_volcano_decides(path: Any) -> None:
    """The scenario ends as in its file."""
    assert check(load_scenario(path), default_scheduler, CompareOptions()) == []


def test_the_scenarios_are_there() -> None:
    """An empty folder must not pass for success."""
    assert FOUND
