"""An action as the scheduler knows it."""

from collections.abc import Callable
from dataclasses import dataclass

from pumice.framework.session import Session
from pumice.framework.simulator_assumptions import SimulatorAssumptions


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Action:
    """A step of a session, with what the simulator may assume about it."""

    run: Callable[[Session], None]
    simulator: SimulatorAssumptions
    prepare: Callable[[], object] = _nothing
    """Loads what it needs, so that its first run is not late."""

    def __call__(self, ssn: Session) -> None:
        """Decide through a session."""
        self.run(ssn)
