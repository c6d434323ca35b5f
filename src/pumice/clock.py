"""Time: the machine's, and clocks for an embedded cluster, virtual or real.

Timers run only when the owner of the clock lets them (``advance_to``, ``run_due``), never by
themselves, so that nothing runs in the middle of another step.
"""

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

EPOCH = 1_767_225_600.0
"""Default start of virtual time: 2026-01-01T00:00:00Z."""
SPEED_WINDOW_S = 20.0
"""For how long another clock is watched to tell its speed: it may be set meanwhile."""
_STEADY = 0.5
"""Speeds so near to the machine's are those of a clock that was set, not of one that runs fast."""
_DATE_S = 1.0
"""How much later than its date a moment may be: dates have no fractions of a second."""


def wall_time() -> float:
    """Return the machine's time in seconds since 1970."""
    return datetime.now(UTC).timestamp()


def clock_speed(here_s: float, there_s: float) -> float:
    """Return how many seconds pass on another clock in one of ours, by what passed on both.

    It is 1 unless the dates of the other clock prove that it is not.
    """
    if here_s <= 0.0:
        return 1.0
    least, most = (there_s - _DATE_S) / here_s, (there_s + _DATE_S) / here_s
    is_usual = least <= 1.0 + _STEADY and most >= 1.0 - _STEADY
    return 1.0 if is_usual else max(0.0, there_s / here_s)


@dataclass(frozen=True)
class Deadline:
    """A time by which an answer is wanted; what is not known by then is left out."""

    within_s: float = math.inf
    """How long the answer may take, as it was asked for."""
    ends: float = math.inf

    @classmethod
    def of(cls, within_s: float | None) -> "Deadline":
        """Return the deadline so many seconds from now; None: there is none."""
        return cls() if within_s is None else cls(within_s, time.monotonic() + within_s)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.ends != math.inf and time.monotonic() >= self.ends

    def halved(self) -> "Deadline":
        """Return the deadline at half of the time that is left, for a part of the answer."""
        if self.ends == math.inf:
            return self
        now = time.monotonic()
        return Deadline(self.within_s, now + max(0.0, self.ends - now) / 2)


class Timer:
    """A call at a time; can be cancelled."""

    __slots__ = ("action", "when")

    def __init__(self, when: float, action: Callable[[], object]) -> None:
        self.when = when
        self.action: Callable[[], object] | None = action

    def cancel(self) -> None:
        """Cancel the call."""
        self.action = None


class Clock(Protocol):
    """Returns the time and keeps calls for later."""

    def now(self) -> float:
        """Return the time in seconds since 1970."""

    def call_at(self, when: float, action: Callable[[], object]) -> Timer:
        """Call a function at a time, or when timers run next if that is past."""

    def next_at(self) -> float | None:
        """Return the time of the next timer."""

    def run_due(self) -> int:
        """Run the timers whose time has come, and return how many ran."""


class _Timers:
    """Timers in order of time, and of setting for equal times."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._set = 0

    def now(self) -> float:
        raise NotImplementedError

    def call_at(self, when: float, action: Callable[[], object]) -> Timer:
        """Call a function at a time, or when timers run next if that is past."""
        timer = Timer(when, action)
        self._set += 1
        heapq.heappush(self._heap, (when, self._set, timer))
        return timer

    def next_at(self) -> float | None:
        heap = self._heap
        while heap and heap[0][2].action is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def run_due(self) -> int:
        """Run the timers whose time has come, and return how many ran."""
        ran = 0
        heap, now = self._heap, self.now()
        while heap and heap[0][0] <= now:
            timer = heapq.heappop(heap)[2]
            action, timer.action = timer.action, None
            if action is not None:
                action()
                ran += 1
        return ran


class VirtualClock(_Timers):
    """Time that stops until it is moved."""

    def __init__(self, start: float = EPOCH) -> None:
        super().__init__()
        self._now = start

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self._now

    def advance_to(self, when: float) -> int:
        """Move on to a time, running timers on the way at their times; return how many ran."""
        ran = 0
        while (due := self.next_at()) is not None and due <= when:
            self._now = max(self._now, due)
            ran += self.run_due()
        self._now = max(self._now, when)
        return ran

    def advance(self, seconds: float) -> int:
        """Move on by some seconds; return how many timers ran."""
        return self.advance_to(self._now + seconds)

    def step(self, until: float = math.inf) -> bool:
        """Move on to the next timer and run those of that instant; return whether there was one."""
        due = self.next_at()
        if due is None or due > until:
            return False
        self._now = max(self._now, due)
        return self.run_due() > 0


class RealClock(_Timers):
    """The machine's time; the owner of the clock calls ``run_due`` often enough."""

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return wall_time()
