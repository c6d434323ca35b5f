"""The actions: one verb, one module; each takes a session and decides through it."""

from collections.abc import Callable

from pumice.actions.allocate import allocate
from pumice.actions.backfill import backfill
from pumice.actions.enqueue import enqueue
from pumice.actions.gangpreempt import gangpreempt
from pumice.actions.gangreclaim import gangreclaim
from pumice.actions.preempt import preempt
from pumice.actions.reclaim import reclaim
from pumice.actions.shuffle import shuffle
from pumice.framework.session import Session

Action = Callable[[Session], None]

ACTIONS: dict[str, Action] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
    "shuffle": shuffle,
    "gangpreempt": gangpreempt,
    "gangreclaim": gangreclaim,
}
