"""Decisions out: binds, evictions, nominations, conditions, statuses and events as writes."""

from pumice.binder.applied import Applied, Outcome
from pumice.binder.binder import Binder

__all__ = ["Applied", "Binder", "Outcome"]
