"""An action as the scheduler knows it."""

from collections.abc import Callable
from functools import cache
from importlib import import_module

import msgspec

from pumice.framework.session import Session
from pumice.framework.simulator_assumptions import SimulatorAssumptions


class Action(msgspec.Struct, frozen=True):
    """A step of a session, with what the simulator may assume about it."""

    place: str
    """Module and function, with a colon between them."""
    simulator: SimulatorAssumptions

    def load(self) -> Callable[[Session], None]:
        """Import the module, unless that is done already, and return the function."""
        return _loaded(self.place)

    def __call__(self, ssn: Session) -> None:
        """Decide through a session."""
        self.load()(ssn)


@cache
def _loaded(place: str) -> Callable[[Session], None]:
    module, _, name = place.partition(":")
    found: Callable[[Session], None] = getattr(import_module(module), name)
    return found
