"""How much processor time a review may take, whatever a client sends.

Every check takes time in proportion to its input, and bodies are bounded; the budget is for
unforeseen cases.  Rules ask at each piece of an object; outside of a review nothing is
counted.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

REVIEW_S: Final = 3.0
"""Seconds of processor time for one review."""
_ends: ContextVar[float | None] = ContextVar("ends", default=None)


class OverBudgetError(Exception):
    """A review takes more processor time than it may."""


@contextmanager
def cpu_budget(seconds: float) -> Iterator[None]:
    """Limit the processor time of work on this thread."""
    token = _ends.set(time.thread_time() + seconds)
    try:
        yield
    finally:
        _ends.reset(token)


def check_cpu() -> None:
    """Stop if the budget is spent.

    Raises:
        OverBudgetError: it is.
    """
    ends = _ends.get()
    if ends is not None and time.thread_time() > ends:
        raise OverBudgetError
