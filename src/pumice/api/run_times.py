"""How long a job is expected to run: the one place that forecasts, policies and the simulator ask.

Two times are stated apart.  An estimate (``pumice.dev/run-seconds``) is what its user expects; a
bound (``pumice.dev/walltime-seconds``, or ``activeDeadlineSeconds`` of its pods) is a time after
which it has ended.  Each is looked up on the pod, then its pod group, then its queue.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pumice.api.annotations import RUN_SECONDS, WALLTIME_SECONDS


class RunTime(NamedTuple):
    """The two times of a job in seconds; None where nobody states one."""

    estimate: float | None = None
    bound: float | None = None

    @property
    def expected(self) -> float | None:
        """How long it will probably run: its estimate, at most its bound. Forecasts go by it."""
        if self.estimate is None or self.bound is None:
            return self.bound if self.estimate is None else self.estimate
        return min(self.estimate, self.bound)

    @property
    def longest(self) -> float | None:
        """How long it runs at most: its bound, else its estimate. Reservations go by it."""
        return self.estimate if self.bound is None else self.bound


def run_time(
    places: Iterable[Mapping[str, Any] | None], deadline_s: float | None = None
) -> RunTime:
    """Read the times of a pod or job from annotations, the nearest place first.

    ``deadline_s`` is ``activeDeadlineSeconds``: it ends pods whatever else is stated.
    """
    found = [marks for marks in places if marks]
    estimate, bound = _first(found, RUN_SECONDS), _first(found, WALLTIME_SECONDS)
    if deadline_s is not None:
        bound = deadline_s if bound is None else min(bound, deadline_s)
    return RunTime(estimate, bound)


def seconds_of(text: object) -> float | None:
    """Read a number of seconds from 0 up; None if it is not one."""
    try:
        seconds = float(str(text))
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _first(places: Iterable[Mapping[str, Any]], name: str) -> float | None:
    stated = (seconds_of(marks[name]) for marks in places if name in marks)
    return next((seconds for seconds in stated if seconds is not None), None)
