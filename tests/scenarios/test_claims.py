"""Resource claims, in a few objects."""

from pathlib import Path
from typing import Any

import pytest

from pumice.scenarios.runner import default_scheduler
from pumice.testing import CompareOptions, check, find_scenarios, load_scenario

CLAIMS = [file.path for file in find_scenarios([Path(__file__).parent / "claims"])]


@pytest.mark.parametrize("path", CLAIMS, ids=[path.stem for path in CLAIMS])
def test_devices_go_where_the_file_says(path: Any) -> None:
    assert check(load_scenario(path), default_scheduler, CompareOptions()) == []


def test_the_scenarios_are_there() -> None:
    assert CLAIMS
