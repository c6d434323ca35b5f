"""The list of actions, which names functions by text."""

import pytest

from pumice.actions import ACTIONS


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_can_be_loaded(name: str) -> None:
    found = ACTIONS[name].load()
    assert (found.__module__, found.__name__) == (f"pumice.actions.{name}", name)
