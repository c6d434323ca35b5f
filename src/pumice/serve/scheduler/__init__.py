"""A scheduler at work on a cluster: follow, decide, write, and recover what goes wrong."""

from pumice.cache.informer import FOLLOWED as KINDS
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import Cycle, LiveScheduler, Usage
from pumice.serve.scheduler.loop import LiveOptions, run_scheduler

__all__ = [
    "KINDS",
    "Cycle",
    "LiveOptions",
    "LiveScheduler",
    "Usage",
    "make_queues",
    "run_scheduler",
]
