"""Order queues by the time of day: a queue goes first during the hours that it names."""

import re
from dataclasses import dataclass

import numpy as np

from pumice.plugin import Column, Plugin, PluginSession, Queues, SimulatorAssumptions, arg

_HOURS = re.compile(r"([01]?[0-9]|2[0-3])-([01]?[0-9]|2[0-4])")


@dataclass(kw_only=True)
class QueueHours(Plugin, name="queue-hours"):
    """Put queues first during their hours, and last outside of them.

    A queue names them in an annotation, as in "22-06"; one that names none is in between.
    """

    simulator = SimulatorAssumptions()

    annotation: str = arg(
        "queue-hours.annotation",
        default="example.com/hours",
        doc="annotation with the first hour and the one before which the time is over",
    )
    offset: float = arg(
        "queue-hours.offset",
        default=0.0,
        minimum=-12.0,
        maximum=14.0,
        doc="hours by which local time is ahead of UTC",
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Compute the hour of the cycle."""
        self._hour = int(ssn.now / 3600 + self.offset) % 24

    def changes_at(self, ssn: PluginSession) -> float:
        """Return the next full hour."""
        return (ssn.now // 3600 + 1) * 3600

    def order_queues(self, queues: Queues) -> Column:
        """Return 0 for queues in their hours, 1 for those that name none, 2 for the others."""
        return np.array([self._place(text) for text in queues.annotation(self.annotation)])

    def _place(self, text: str) -> float:
        hours = _HOURS.fullmatch(text)
        if hours is None:
            return 1.0
        first, last = int(hours[1]), int(hours[2])
        spent, length = (self._hour - first) % 24, (last - first) % 24 or 24
        return 0.0 if spent < length else 2.0
