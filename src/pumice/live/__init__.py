"""A scheduler at work on a cluster: follow, decide, write, and recover what goes wrong."""

from pumice.cache.follow import FOLLOWED as KINDS
from pumice.live.loop import LiveOptions, run_scheduler
from pumice.live.queues import make_queues
from pumice.live.scheduler import Cycle, LiveScheduler, Usage

__all__ = [
    "KINDS",
    "Cycle",
    "LiveOptions",
    "LiveScheduler",
    "Usage",
    "make_queues",
    "run_scheduler",
]
