"""What a job takes to start, and a start that it is promised."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

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
