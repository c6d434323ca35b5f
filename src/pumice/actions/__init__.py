"""The actions: one verb, one module; each takes a session and decides through it."""

from pumice.actions.allocate import allocate
from pumice.actions.backfill import backfill
from pumice.actions.enqueue import enqueue
from pumice.actions.gangpreempt import gangpreempt
from pumice.actions.gangreclaim import gangreclaim
from pumice.actions.preempt import preempt
from pumice.actions.reclaim import reclaim
from pumice.actions.shuffle import shuffle
from pumice.framework.action import Action
from pumice.framework.simulator_assumptions import SimulatorAssumptions

_PLACING = SimulatorAssumptions(bounded=True)
_EVICTING = SimulatorAssumptions(bounded=True, evicts=True)

ACTIONS: dict[str, Action] = {
    "enqueue": Action(enqueue, _PLACING),
    "allocate": Action(allocate, _PLACING),
    "backfill": Action(backfill, _PLACING),
    "preempt": Action(preempt, _EVICTING),
    "reclaim": Action(reclaim, _EVICTING),
    "shuffle": Action(shuffle, SimulatorAssumptions(evicts=True)),
    "gangpreempt": Action(gangpreempt, _EVICTING),
    "gangreclaim": Action(gangreclaim, _EVICTING),
}
