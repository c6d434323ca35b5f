"""When the next cycle begins: once something may start, once a timer is due, or by the period.

Used by the scheduler's loop.  Changes are left to gather, and for a multiple of what the last
cycle took, so that cycles never take more than a part of the time: their cost is shared by more
pods the longer they are.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from pumice.api.decisions import Decisions
from pumice.framework.session import Session
from pumice.scheduler import Observer

_SHARE: Final = 3.0
"""How many times as long as a cycle the pause after it lasts."""
_APART: Final = 3.0
"""How many times as long as changes gather the pause lasts at least: what a cycle costs beside its
pods is shared by those that come meanwhile, and one that comes alone does not wait for it."""
_SLICE_S: Final = 1.0
"""The longest wait without a look at what ends it from outside."""


class Rhythm(Observer):
    """Waits for the next cycle; as an observer it learns when policies change by the clock."""

    def __init__(
        self,
        wake: threading.Event | None,
        clock: Callable[[], float],
        gather_s: float,
        on_turn: Callable[[], None],
    ) -> None:
        """Make one; ``wake`` is set when something changed, None: cycles begin by period."""
        # On a virtual clock a cycle takes what that clock says, so that equal runs are equal.
        self._busy_s = time.thread_time if clock is time.monotonic else clock
        self._wake = wake
        self._clock = clock
        self._gather_s = gather_s
        self._on_turn = on_turn
        self._took_s = 0.0
        """Processor time of the last cycle: how long it took also depends on other processes."""
        self._changes_in_s: float | None = None

    def synced(self) -> None:
        """Begin to count what a cycle takes."""
        self._took_s = -self._busy_s()

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Ask the plugins that depend on time when they may decide differently.

        For those that do not tell whether they do, cycles by the period are as good as before.
        """
        del decisions
        self._took_s += self._busy_s()
        self._changes_in_s = None
        for plugin in ssn.hooks.plugins if self._wake is not None else ():
            if plugin.simulator is not None:
                with suppress(Exception):  # as one that does not tell
                    self._note(plugin.changes_at(ssn), ssn.now)

    def _note(self, at: float | None, now: float) -> None:
        if at is not None:
            known = self._changes_in_s
            self._changes_in_s = at - now if known is None else min(known, at - now)

    def wait(
        self,
        stop: threading.Event,
        until: float,
        due: float | None,
        may_start: Callable[[], bool],
    ) -> None:
        """Wait until a time at most, or a timer that is ``due``, or until something may start.

        ``may_start`` is asked after changes.
        """
        now = self._clock()
        if self._wake is None:
            stop.wait(max(0.0, until - now))
            return
        earliest = min(now + max(_SHARE * self._took_s, _APART * self._gather_s), until)
        until = max(earliest, min([until, *self._timers(now, due)]))
        while not stop.is_set() and (left := until - self._clock()) > 0:
            if self._wake.wait(min(left, _SLICE_S)):
                pause = max(self._gather_s, earliest - self._clock())
                stop.wait(max(0.0, min(pause, until - self._clock())))
                self._wake.clear()  # before the look: what comes later wakes again
            self._on_turn()
            if may_start():
                return

    def _timers(self, now: float, due: float | None) -> list[float]:
        found = [now + self._changes_in_s] if self._changes_in_s is not None else []
        return [*found, *([due] if due is not None else [])]
