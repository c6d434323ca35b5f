"""Pods that ask for resources as a whole, in a few objects."""

from pathlib import Path
from typing import Any

import pytest

from pumice.scenarios.runner import default_scheduler
from pumice.testing import CompareOptions, check, find_scenarios, load_scenario

FILES = [file.path for file in find_scenarios([Path(__file__).parent / "pod-level"])]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_whole_counts(path: Any) -> None:
    assert check(load_scenario(path), default_scheduler, CompareOptions()) == []


def test_the_scenarios_are_there() -> None:
    assert FILES
