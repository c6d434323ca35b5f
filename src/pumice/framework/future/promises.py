"""What a job takes to start, a start that it is promised, and the room beside promises."""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pumice.core.resources import Column, Mask


@dataclass(frozen=True)
class Demand:
    """The least that a job takes to start."""

    kind: Hashable
    """What its pods have in common; None if they differ."""
    count: int
    """How many pods."""
    need: Column
    """What each asks for (R,); all together if they differ."""
    allowed: Mask | None
    """Nodes that do not refuse such a pod for good (n,); None: all."""
    plain: bool
    """Whether such pods go by amounts of nodes alone, so that counting them is exact."""

    @property
    def amounts(self) -> Column:
        """What all of them ask for (R,)."""
        return self.need * self.count


class Promise(NamedTuple):
    """A start that a job is promised, and until when it may run then."""

    job: int
    key: str
    start: float
    end: float
    demand: Demand

    def moved(self, start: float) -> "Promise":
        """Return the same from another time on."""
        return self._replace(start=start, end=start + (self.end - self.start))


class Profile:
    """How many plain pods of a kind find room from each time on, beside promises to such pods."""

    def __init__(self, points: Column, slots: Column) -> None:
        """Begin without promises; ``points`` has now and each time at which room appears."""
        self._points = points
        self._left = slots
        self.now = float(slots[0])
        """How many find room now, promises aside."""

    def add(self, promises: Iterable[Promise]) -> None:
        """Take the room of several promises."""
        made = [(p.start, p.end, p.demand.count) for p in promises if p.start < np.inf]
        if not made:
            return
        starts, ends, counts = map(np.array, zip(*made, strict=True))
        more = np.concatenate([starts, ends[ends < np.inf]])
        points = np.unique(np.concatenate([self._points, more]))
        steps = np.zeros(len(points) + 1)
        np.add.at(steps, np.searchsorted(points, starts), counts)
        np.subtract.at(steps, np.searchsorted(points, ends), counts)
        kept = np.searchsorted(self._points, points, side="right") - 1
        self._points, self._left = points, self._left[kept] - np.cumsum(steps[:-1])

    def put(self, promise: Promise, *, back: bool = False) -> None:
        """Take the room of one promise, or give it ``back``."""
        if promise.start == np.inf:
            return
        first, last = self._step(promise.start), self._step(promise.end)
        count = promise.demand.count
        self._left[first:last] += count if back else -count

    @contextmanager
    def without(self, promise: Promise | None) -> Iterator[None]:
        """Leave one promise out for a while."""
        if promise is not None:
            self.put(promise, back=True)
        yield
        if promise is not None:
            self.put(promise)

    def _step(self, at: float) -> int:
        """Return the step that begins at a time, which is made if there is none."""
        points = self._points
        place = int(points.searchsorted(at))
        if at < np.inf and (place == len(points) or points[place] != at):
            left = self._left
            self._points = np.concatenate([points[:place], [at], points[place:]])
            self._left = np.concatenate([left[:place], left[place - 1 : place], left[place:]])
        return place

    def earliest(self, count: int, seconds: float, *, later: bool = False) -> float:
        """Return the first time at which so many fit for so long; infinite if there is none.

        ``later``: not now, but when room appears next or after that.
        """
        first = 1 if later else 0
        points = self._points[first:]
        is_open = self._left[first:] >= count
        closed = np.append(points[~is_open], np.inf)
        until = closed[np.searchsorted(closed, points)]
        fits = is_open & (until >= points + seconds)
        place = int(fits.argmax()) if len(fits) else 0
        return float(points[place]) if len(fits) and fits[place] else np.inf

    def short(self, count: int, end: float) -> float | None:
        """Return when so many that start now would leave others too little; None if never."""
        last = int(self._points.searchsorted(end))
        short = self._left[:last] < count
        place = int(short.argmax()) if last else 0
        return float(self._points[place]) if last and short[place] else None
