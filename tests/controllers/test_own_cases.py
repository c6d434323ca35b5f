"""Cases of our own in the format of the recorded ones: they hold today's behaviour fast.

Nothing here was recorded from Volcano.  The expected states are Pumice's own output, read through
against the rules of the original, so they show a change and do not prove that both are alike.
"""

from pathlib import Path
from typing import Any

import pytest

from pumice.testing.recorded import find_cases, run_case

CASES = list(find_cases([Path(__file__).parent / "own_cases"]))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.content["name"])
def test_the_controllers_still_do_what_was_written_down(case: Any) -> None:
    assert "NOT A RECORDING" in case.content["description"]
    result = run_case(case)
    assert result.outcome == "passed", "\n".join(result.differences)
