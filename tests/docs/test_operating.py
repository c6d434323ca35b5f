"""The pages on operating agree with the code: flags, metrics, feature gates, controllers."""

from pathlib import Path

import pytest

from pumice.serve.controllers import NAMES
from pumice.serve.options import FEATURE_GATES
from tools.reference import pages

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "operating.md").read_text()


@pytest.mark.parametrize("name", pages())
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text() == pages()[name], "run python -m tools.reference"


def test_the_feature_gates_are_named_with_their_defaults() -> None:
    for name, on in FEATURE_GATES.items():
        assert f"`{name}={str(on).lower()}`" in PAGE


def test_the_controllers_are_named() -> None:
    for name in NAMES.values():
        assert f"`{name}`" in PAGE
