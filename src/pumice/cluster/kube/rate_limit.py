"""Time as the client of a real cluster sees it, and its two brakes: rate limit and back-off.

Used by the client, the reflectors and the writer.  Tests use a clock that does not wait.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from secrets import SystemRandom

from pumice.clock import SPEED_WINDOW_S, clock_speed, wall_time

_NEAR_S = 2.0
_RESERVED: ContextVar[bool] = ContextVar("reserved", default=False)
"""Whether the running task has waited for a turn it has not used yet."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The source of time and chance."""

    clock: Callable[[], float] = time.monotonic
    """Seconds of a clock that never goes back."""
    wall: Callable[[], float] = wall_time
    """Seconds since 1970."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = SystemRandom().random
    """A number from 0 to 1, so that many clients do not return at the same moment."""


class ServerTime:
    """The time of a server, by the dates of its answers, and how fast it runs.

    It is the machine's while the two are near: dates have no fractions of a second.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._first = self._next = self._last = (b"", 0.0)
        """The dates of answers, and the machine's time when they arrived."""

    def notice(self, date: bytes) -> None:
        """Remember the date of an answer that has just arrived."""
        if date:
            self._last = (date, self._timing.wall())
            if not self._first[0]:
                self._first = self._next = self._last
            elif self._last[1] - self._next[1] > SPEED_WINDOW_S:
                self._first, self._next = self._next, self._last

    def now(self) -> float:
        """Return the server's time in seconds since 1970."""
        now = self._timing.wall()
        date, at = self._last
        there = _seconds(date)
        if there is None or abs(there - at) <= _NEAR_S:
            return now
        return there + (now - at) * self._speed(there, at)

    def _speed(self, there: float, at: float) -> float:
        """Return how many seconds pass on the server in one here."""
        since = _seconds(self._first[0])
        if since is None or since > there:
            return 1.0
        return clock_speed(at - self._first[1], there - since)


def _seconds(date: bytes) -> float | None:
    """Read the date of an answer; None if there is none, or it is no date."""
    try:
        return parsedate_to_datetime(date.decode("ascii", "replace")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


class TokenBucket:
    """Allows ``rate`` requests a second, ``burst`` at once after a rest; 0 is no limit."""

    def __init__(self, rate: float, burst: int, timing: Timing) -> None:
        self._rate = rate if rate > 0 else math.inf
        self._burst = float(max(burst, 1))
        self._timing = timing
        self._tokens = self._burst
        self._last = timing.clock()

    async def reserve(self) -> None:
        """Wait for a turn now; the next ``acquire`` of the same task is free."""
        await self.acquire()
        _RESERVED.set(True)

    async def acquire(self) -> None:
        """Wait for a turn; turns come in the order they were asked for."""
        if self.use_reserved() or self._rate == math.inf:
            return
        self._refill()
        self._tokens -= 1.0
        if self._tokens < 0.0:
            await self._timing.sleep(-self._tokens / self._rate)

    def _refill(self) -> None:
        now = self._timing.clock()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now

    def use_reserved(self) -> bool:
        """Use the turn that the running task has reserved; return whether there was one."""
        reserved = _RESERVED.get()
        if reserved:
            _RESERVED.set(False)
        return reserved

    def release(self) -> None:
        """Release a turn that was reserved and not used."""
        _RESERVED.set(False)
        self._tokens = min(self._burst, self._tokens + 1.0)


class Backoff:
    """Waits longer after each failure in a row, up to a limit, with half of it by chance."""

    def __init__(self, first_s: float, longest_s: float, timing: Timing) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._timing = timing
        self.failures = 0

    def reset(self) -> None:
        """Forget failures after a success."""
        self.failures = 0

    async def wait(self, at_least_s: float = 0.0) -> None:
        """Wait after one more failure, not shorter than the other side asked for."""
        longest = min(self._first_s * 2.0 ** min(self.failures, 30), self._longest_s)
        self.failures += 1
        chance = self._timing.jitter()
        wait = longest * (0.5 + 0.5 * chance)
        if wait < at_least_s:
            wait = at_least_s * (1.0 + 0.1 * chance)
        await self._timing.sleep(wait)
