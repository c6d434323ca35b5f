"""Actions are loaded by name when they are first run."""

import pytest

from pumice.actions import ACTIONS, load


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_can_be_loaded(name: str) -> None:
    run = load(name)
    assert run.__name__ == name
    assert run.__module__ == f"pumice.actions.{name}"
