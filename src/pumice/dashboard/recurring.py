"""A question that is asked again whenever the cluster has changed, but not more often than useful.

Its last answer is shown until the next one comes.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from pumice.dashboard.answers import UnansweredError

_EVERY_S: Final = 2.0
_SHARE: Final = 0.25
"""The part of the time of the answering process that one such question may take."""


class Recurring:
    """One question about the cluster as it is, and its last answer."""

    def __init__(self, ask: Callable[[], Future[Any]], notify: Callable[[], None]) -> None:
        """Make one; ``notify`` is called when the answer differs from the one before."""
        self._ask = ask
        self._notify = notify
        self._lock = threading.Lock()
        self._asked: Future[Any] | None = None
        self._asked_for = -1
        self._asked_at = 0.0
        self._due = 0.0
        self.found: dict[str, Any] = {}
        self.problem = ""
        """Why there is no answer."""
        self.version = 0
        """Differs whenever the answer does."""

    def look(self, revision: int) -> None:
        """Ask again if the cluster has changed and the last answer is not too fresh."""
        with self._lock:
            now = time.monotonic()
            if now < self._due or revision == self._asked_for or self._asked is not None:
                return
            self._asked_at, self._asked_for = now, revision
            self._due = now + _EVERY_S
            with suppress(UnansweredError):
                self._asked = self._ask()
        if self._asked is not None:
            self._asked.add_done_callback(self._take)

    def _take(self, asked: Future[Any]) -> None:
        found, problem = _answer_of(asked)
        with self._lock:
            now = time.monotonic()
            self._due = max(self._due, now + (now - self._asked_at) * (1 / _SHARE - 1))
            self._asked = None
            if problem:
                self._asked_for = -1  # ask again, even if nothing changes
            is_new = (found, problem) != (self.found, self.problem)
            if is_new:
                self.found, self.problem = found, problem
                self.version += 1
        if is_new:
            self._notify()


def _answer_of(asked: Future[Any]) -> tuple[dict[str, Any], str]:
    """Return what was found, or why nothing was."""
    if asked.cancelled():
        return {}, "the dashboard is being stopped"
    error = asked.exception()
    return ({}, str(error)) if error is not None else (asked.result(), "")
