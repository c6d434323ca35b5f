"""The actions: one verb, one module; each takes a session and decides through it.

They are listed here by name and loaded on use, as plugins are: a configuration names few of them.
"""

from pumice.framework.session import Action
from pumice.framework.simulator_assumptions import SimulatorAssumptions

_PLACING = SimulatorAssumptions(bounded=True)
_EVICTING = SimulatorAssumptions(bounded=True, evicts=True)

ACTIONS: dict[str, Action] = {
    name: Action(f"{__name__}.{name}:{name}", assumptions)
    for name, assumptions in {
        "enqueue": _PLACING,
        "allocate": _PLACING,
        "backfill": _PLACING,
        "preempt": _EVICTING,
        "reclaim": _EVICTING,
        "shuffle": SimulatorAssumptions(evicts=True),
        "gangpreempt": _EVICTING,
        "gangreclaim": _EVICTING,
    }.items()
}
