"""Holds back whatever decides and writes while the caches of a cluster may be behind it.

Used by the loops of scheduler and controllers before each pass.  A process that has just taken the
lease must see the last writes of the leader before it, and one that lost a watch what it missed.
"""

import time
from collections.abc import Callable
from typing import Final

from pumice import logs
from pumice.cluster.base import LiveCluster
from pumice.metrics import Metrics

_NOTED_S: Final = 1.0
"""How long a wait goes without a line in the log: most are over at once."""


class CacheGate:
    """Open while every kind was listed since the lease was taken, and its watch is not lost."""

    def __init__(
        self,
        cluster: LiveCluster,
        metrics: Metrics,
        log: logs.Logger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._log = log
        self._clock = clock
        self._closed_at: float | None = None
        self._is_noted = False

    def is_open(self, timeout_s: float) -> bool:
        """Wait a moment until it is open; return whether it is."""
        missing = self._cluster.wait_current(timeout_s)
        for kind in missing:
            self._metrics.watching(kind, is_well=False)
        self._note(missing)
        return not missing

    def _note(self, missing: list[str]) -> None:
        """Log a wait that lasts, once, and its end."""
        now = self._clock()
        closed_at = now if self._closed_at is None else self._closed_at
        lasted_s = round(now - closed_at, 1)
        if missing and not self._is_noted and lasted_s >= _NOTED_S:
            self._log.warning("waiting for objects to be synced", kinds=", ".join(missing))
        elif not missing and self._is_noted:
            self._log.info("objects synced", waited_s=lasted_s)
        self._is_noted = bool(missing) and lasted_s >= _NOTED_S
        self._closed_at = closed_at if missing else None
