"""Why jobs wait, as in `explain`: on the pod group, as an event, and counted as a metric.

An observer of the live scheduler.  A job is examined once it has waited for a moment, and when it
waits for another reason than before; a few jobs a second, so that cycles stay short.  One that
keeps waiting for the same reason is examined again now and then, since the amounts change.
"""

from collections import Counter
from collections.abc import Hashable
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Final

from pumice.api.codes import Cause
from pumice.api.decisions import Decisions
from pumice.binder.binder import Binder
from pumice.framework.refusals import Stage
from pumice.framework.session import Session
from pumice.metrics import Metrics
from pumice.scheduler import Observer

if TYPE_CHECKING:  # loaded once a job waits: a scheduler that starts has no use for it
    from pumice.examine.causes import Examiner
    from pumice.examine.findings import Finding

MOST_EACH_SECOND: Final = 10
"""Jobs that are examined in a second, and at most in one cycle."""
PATIENCE_S: Final = 0.5
"""How long a job waits before it is examined: most start at once, or with the next change."""
LONGEST_S: Final = 60.0
"""How long amounts stay as written before a job is examined for others, or they are replaced."""
PAUSE_S: Final = 5.0
"""Least time between two jobs that are examined again."""
_NOT_TAKEN: Final = "not taken"
"""The short form of the record of a job that has none."""
_OUTSIDE: Final = "extender"
"""A plugin whose service must not be notified of placements that are only tried."""


class WaitingCauses(Observer):
    """Keeps the decisive cause of every waiting job, and returns those that changed."""

    def __init__(self, metrics: Metrics, inner: Observer | None = None) -> None:
        """Count in ``metrics``; ``inner`` observes each session as well."""
        self._metrics = metrics
        self._inner = inner or Observer()
        self._causes: dict[str, Finding] = {}
        self._records: dict[str, Hashable] = {}
        self._due: dict[str, float] = {}
        """Jobs to be examined, and since when."""
        self._allowance = float(MOST_EACH_SECOND)
        self._allowed_at = 0.0
        self._examiners: list[Examiner] = []
        self._changed: dict[str, Finding | None] = {}
        """Jobs with another cause than before, None for those that wait no more."""
        self._reworded: dict[str, Finding] = {}
        """Jobs with the same cause in other words, which have other amounts."""
        self._examined_at: dict[str, float] = {}
        """When the causes were found, the oldest first."""
        self._repeated_at = 0.0
        self._worded: dict[str, tuple[str, float]] = {}
        """The text of each cause as last passed on, and when."""

    def opened(self, ssn: Session) -> None:
        """Examine the jobs that are due."""
        self._inner.opened(ssn)
        known = ssn.snapshot.jobs.row_of
        keys = self._allowed(ssn.now, [key for key in self._due if key in known])
        keys = keys or [key for key in self._oldest(ssn.now) if key in known]
        self._examiners = []
        if not keys or ssn.has_plugin(_OUTSIDE):
            return
        from pumice.examine.causes import Examiner  # noqa: PLC0415
        from pumice.examine.order_keys import OrderBook  # noqa: PLC0415

        book = OrderBook(ssn)
        for key in keys:
            examiner = Examiner(key)
            examiner.book, examiner.in_detail = book, False
            examiner.opened(ssn)
            self._examiners.append(examiner)

    def _allowed(self, now: float, keys: list[str]) -> list[str]:
        """Return the jobs to examine now, of those that are due for long enough."""
        passed_s = abs(now - self._allowed_at)
        self._allowance = min(self._allowance + MOST_EACH_SECOND * passed_s, MOST_EACH_SECOND)
        self._allowed_at = now
        ripe = [key for key in keys if abs(now - self._due[key]) >= PATIENCE_S]
        chosen = ripe[: int(self._allowance)]
        self._allowance -= len(chosen)
        return chosen

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        """Record the findings, and choose the jobs to examine next."""
        self._inner.decided(ssn, decisions)
        waiting = self._waiting(ssn)
        for examiner in self._examiners:
            examiner.decided(ssn, decisions)
            key = examiner.outcome.job
            self._due.pop(key, None)
            if key in waiting and examiner.outcome.waits:
                self._take(key, _examined(examiner), ssn.now)
            elif not examiner.outcome.waits:
                self._drop(key)
        for key, record in waiting.items():
            if self._records.get(key) == record:
                continue
            if not ssn.has_plugin(_OUTSIDE):
                self._due.setdefault(key, ssn.now)
            elif record != _NOT_TAKEN:
                self._take(key, _recorded(ssn, key, decisions), ssn.now)
            else:
                self._drop(key)  # the record is all that is known with such a plugin
        for key in [key for key in self._causes if key not in waiting]:
            self._drop(key)
        if not decisions.binds and not decisions.pipelined:
            brief = (key for key, each in self._causes.items() if _is_brief(each))
            self._due |= {key: ssn.now for key in brief if key not in self._due}
        self._due = {key: since for key, since in self._due.items() if key in waiting}
        self._records = waiting
        self._metrics.waiting_jobs(Counter(each.code.value for each in self._causes.values()))

    def _waiting(self, ssn: Session) -> dict[str, Hashable]:
        """Name the jobs that this cycle leaves waiting, with a short form of its record."""
        keys = ssn.snapshot.jobs.keys
        found: dict[str, Hashable] = {}
        for row, record in ssn.records.by_job.items():
            if record.stage is not Stage.DONE:
                reasons = frozenset(record.numbers.get("nodes") or ())
                found[keys[row]] = (record.stage, record.why, record.numbers.get("at"), reasons)
        for row in ssn.waiting_jobs():  # those that no action took, for a gate or lack of an action
            if row not in ssn.records.by_job:
                found[keys[row]] = _NOT_TAKEN
        return found

    def _oldest(self, now: float) -> list[str]:
        """Return the job whose cause was found first, if that was long ago."""
        if now - self._repeated_at < PAUSE_S:
            return []
        found = [key for key, at in islice(self._examined_at.items(), 1) if now - at >= LONGEST_S]
        if found:
            self._repeated_at = now
        return found

    def _drop(self, key: str) -> None:
        for known in (self._examined_at, self._reworded, self._worded):
            known.pop(key, None)
        if self._causes.pop(key, None) is not None:
            self._changed[key] = None

    def _take(self, key: str, cause: "Finding", now: float) -> None:
        known = self._causes.get(key)
        self._causes[key] = cause
        self._examined_at.pop(key, None)
        self._examined_at[key] = now
        text, at = self._worded.get(key, ("", now))
        if known is None or known.code is not cause.code:
            self._changed[key] = cause
        elif text != cause.text and now - at >= LONGEST_S:
            self._reworded[key] = cause
        else:
            return
        self._worded[key] = cause.text, now

    def write(self, binder: Binder) -> None:
        """Write the causes that changed since the last call."""
        changed, self._changed = self._changed, {}
        for group, cause in changed.items():
            code, text = (cause.code.value, cause.text) if cause is not None else ("", "")
            binder.write_cause(group, code, text)
        reworded, self._reworded = self._reworded, {}
        for group, cause in reworded.items():
            if group not in changed:
                binder.write_cause(group, cause.code.value, cause.text, is_new=False)


def load_examination() -> None:
    """Load what examines jobs, where some are sure to wait soon."""
    import_module("pumice.examine.causes")


def _is_brief(cause: "Finding") -> bool:
    """Return whether a cause is about one cycle only: it is over once a cycle places no pod."""
    return cause.code is Cause.JOB_AHEAD


def _examined(examiner: "Examiner") -> "Finding":
    """Return the decisive cause that an examination found."""
    from pumice.examine.causes import session_causes  # noqa: PLC0415

    return session_causes(examiner)[0]


def _recorded(ssn: Session, key: str, decisions: Decisions) -> "Finding":
    """Return the cause in the record of the cycle alone."""
    from pumice.examine.causes import Examiner, as_recorded  # noqa: PLC0415

    examiner = Examiner(key)
    examiner.asks = examiner.in_detail = False
    examiner.opened(ssn)
    examiner.decided(ssn, decisions)
    return as_recorded(examiner.outcome)
