"""What Volcano's controllers did, step by step, must happen on the embedded cluster too."""

from pathlib import Path
from typing import Any

import pytest

from pumice.testing.recorded import find_cases, run_case

FOLDER = Path(__file__).parents[1] / "recorded" / "controllers"
CASES = list(find_cases([FOLDER]))


def test_the_recorded_cases_are_there() -> None:
    assert len(CASES) == len(list(FOLDER.glob("*.json"))) > 100


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.content["name"])
def test_the_controllers_do_what_was_recorded(case: Any) -> None:
    result = run_case(case)
    assert result.outcome == "passed", "\n".join(result.differences)
