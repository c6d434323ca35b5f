"""The actions: one verb, one module; each takes a session and decides through it.

Only those that a configuration names are loaded: those that evict load much, and few name them.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import Final, cast

from pumice.framework.action import Action
from pumice.framework.session import Session
from pumice.framework.simulator_assumptions import SimulatorAssumptions

_PLACING = SimulatorAssumptions(bounded=True)
_EVICTING = SimulatorAssumptions(bounded=True, evicts=True)
_ASSUMPTIONS: Final = MappingProxyType(
    {
        "enqueue": _PLACING,
        "allocate": _PLACING,
        "backfill": _PLACING,
        "preempt": _EVICTING,
        "reclaim": _EVICTING,
        "shuffle": SimulatorAssumptions(evicts=True),
        "gangpreempt": _EVICTING,
        "gangreclaim": _EVICTING,
    }
)


@cache
def load(name: str) -> Callable[[Session], None]:
    """Return the function that decides; module and function have the name of the action."""
    return cast("Callable[[Session], None]", getattr(import_module(f"{__name__}.{name}"), name))


def _run(name: str, ssn: Session) -> None:
    load(name)(ssn)


ACTIONS: dict[str, Action] = {
    name: Action(partial(_run, name), simulator, prepare=partial(load, name))
    for name, simulator in _ASSUMPTIONS.items()
}
