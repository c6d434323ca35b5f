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
_LOOKS: Final = 64
"""The clock is read once in so many times: it costs more than most checks."""


class OverBudgetError(Exception):
    """A review takes more processor time than it may."""


class _Budget:
    """How long work may take from its first check on, and how often it was asked for."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.asked = 0
        self._ends: float | None = None

    def is_spent(self) -> bool:
        now = time.thread_time()
        self._ends = now + self.seconds if self._ends is None else self._ends
        return now > self._ends


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def cpu_budget(seconds: float) -> Iterator[None]:
    """Limit the processor time of work on this thread."""
    token = _budget.set(_Budget(seconds))
    try:
        yield
    finally:
        _budget.reset(token)


def check_cpu() -> None:
    """Stop if the budget is spent.

    Raises:
        OverBudgetError: it is.
    """
    budget = _budget.get()
    if budget is not None:
        budget.asked += 1
        if budget.asked % _LOOKS == 1 and budget.is_spent():
            raise OverBudgetError
