"""The log of a served scheduler: new events at once, repeated ones only on request.

Used by the loop.  No decision depends on it.
"""

import traceback
from collections import deque
from typing import Final

from pumice import logs
from pumice.binder import WriteResult
from pumice.cache.informer import BadObject
from pumice.errors import ClusterError
from pumice.serve.scheduler.live_scheduler import Cycle

_log = logs.get("scheduler")
_AGAIN_S: Final = 60.0
"""How often a persistent failure of one sort is logged."""
_REMEMBERED: Final = 10_000


class LoopLog:
    """Logs cycles, failures, bad objects and kinds that cannot be watched."""

    def __init__(self) -> None:
        self._traced: set[tuple[str, str]] = set()
        self._failing: list[str] = []
        self._logged_at: dict[tuple[str, str], float] = {}
        self._suppressed: dict[tuple[str, str], int] = {}
        self._bad: dict[tuple[str, str], str] = {}
        self._troubles: dict[str, str] = {}

    def broken(self, error: Exception, failures: int, pause_s: float) -> None:
        """Log that a cycle failed, the first time with its place, unless due to the cluster."""
        what = f"{type(error).__name__}: {error}"
        _log.error("cycle failed", error=what, failures=failures, pause_s=pause_s)
        if isinstance(error, ClusterError):
            return
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        is_new = (type(error).__name__, place) not in self._traced
        self._traced.add((type(error).__name__, place))
        _log.v(0 if is_new else 2).info(
            "where it failed", trace="".join(traceback.format_exception(error))
        )

    def cycle(self, cycle: Cycle) -> None:
        """Log the decisions of a cycle and the results of writes."""
        decided, results = cycle.decisions, cycle.writes.results
        if decided.failures != self._failing:
            for line in decided.failures:
                if line not in self._failing:
                    _log.warning("plugin failed and was skipped", problem=line)
            if not decided.failures:
                _log.info("all plugins work again")
            self._failing = decided.failures
        for result in results:
            if result.error is not None:
                self._write_failed(result, cycle.at)
        if decided.binds or decided.evictions or results:
            _log.v(2).info(
                "cycle",
                binds=len(decided.binds),
                evictions=len(decided.evictions),
                waiting=len(decided.unschedulable),
                answers=len(results),
                failed=sum(each.error is not None for each in results),
            )

    def _write_failed(self, result: WriteResult, now: float) -> None:
        """Log the first of a sort at once, and then one now and then with the number of others."""
        sort = result.what, type(result.error).__name__
        values = {"what": result.what, "of": result.key, "why": result.error}
        last = self._logged_at.get(sort)
        if last is None or abs(now - last) >= _AGAIN_S:
            self._logged_at[sort] = now
            more = self._suppressed.pop(sort, 0)
            _log.warning("write failed", **values, **({"more": more} if more else {}))
        else:
            self._suppressed[sort] = self._suppressed.get(sort, 0) + 1
            _log.v(2).info("write failed", **values)

    def skipped(self, problems: deque[BadObject]) -> None:
        """Log each bad object once, and again if it has another fault."""
        while problems:
            bad = problems.popleft()
            object_, why = (bad.kind, bad.key), str(bad.error)
            if self._bad.get(object_) == why:
                continue
            if len(self._bad) >= _REMEMBERED:
                self._bad.clear()
            self._bad[object_] = why
            _log.warning("object skipped", kind=bad.kind, object=bad.key, error=why)

    def troubles(self, troubles: dict[str, str]) -> None:
        """Log kinds that cannot be watched, when that begins and when it ends."""
        for kind in sorted(troubles.keys() - self._troubles.keys()):
            _log.warning("watch interrupted", kind=kind, why=troubles[kind])
        for kind in sorted(self._troubles.keys() - troubles.keys()):
            _log.info("watch resumed", kind=kind)
        self._troubles = troubles
