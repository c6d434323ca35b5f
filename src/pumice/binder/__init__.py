"""Decisions out: binds, evictions, nominations, conditions, statuses and events as writes."""

from pumice.binder.binder import Binder
from pumice.binder.write_results import WriteResult, WriteResults

__all__ = ["Binder", "WriteResult", "WriteResults"]
