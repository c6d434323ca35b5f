"""The last cycle of a scheduler: one that moved nothing is decided again when something changes."""

import logging
import math
from copy import copy
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict

from pumice.api.decisions import Decisions
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot
from pumice.framework.future.promises import Promise
from pumice.framework.job_placement import JobMemory
from pumice.framework.job_records import Records
from pumice.framework.plugin import Plugin
from pumice.framework.session import Session

log = logging.getLogger(__name__)

CHECKED_EACH_S: Final = 60.0
"""How long what stands is not decided again, to compare."""


class _Outcome(NamedTuple):
    """A cycle that moved nothing, and on what it was decided."""

    snapshot: Snapshot
    changes: int
    asked: Any
    at: float
    until: float
    """When time alone may change it."""
    decisions: Decisions
    records: Records
    memory: dict[int, JobMemory]
    unschedulable: set[int]
    scheduled: Mask
    conditions: dict[int, tuple[str, str, str, str]]
    promises: dict[int, Promise]


class StandingCycle:
    """The last cycle of a scheduler, as long as it stands."""

    def __init__(self) -> None:
        self._last: _Outcome | None = None
        self._mark = 0
        self.mismatches = 0
        """Cycles that were decided to compare, and ended otherwise."""

    @property
    def is_compared(self) -> bool:
        """Whether a cycle that stands is decided all the same."""
        return self._last is not None

    def repeat(self, ssn: Session, asked: Any) -> Decisions | None:
        """Put the outcome of the last cycle into a session and return its decisions, if it stands.

        ``asked`` is what the caller wants to know; None: the cycle must be decided.
        """
        last, self._mark = self._last, ssn.journal.mark()
        if last is None or not self._stands(last, ssn, asked):
            self._last = None
            return None
        if ssn.now - last.at >= CHECKED_EACH_S or ssn.records.watched:
            return None
        ssn.records, ssn.job_memory = last.records, last.memory
        ssn.records.compare = ssn.refusal_numbers
        ssn.unschedulable, ssn.scheduled, ssn.conditions, ssn.promises = last[-4:]
        return _copy(last.decisions)

    @staticmethod
    def _stands(last: _Outcome, ssn: Session, asked: Any) -> bool:
        return (
            last.snapshot is ssn.snapshot
            and last.changes == ssn.snapshot.changes
            and last.asked == asked
            and last.at <= ssn.now < last.until
            and not ssn.node_usage
        )

    def keep(self, ssn: Session, asked: Any, decisions: Decisions) -> None:
        """Remember a cycle that was decided, if it will stand while nothing changes."""
        if ssn.records.watched:  # it states more than others
            return
        last, self._last = self._last, None
        if last is not None and last.decisions != decisions:
            self.mismatches += 1
            log.warning("a cycle in which nothing had changed was decided otherwise than before")
        if not self._moved(ssn) and not ssn.node_usage:
            self._last = _Outcome(
                ssn.snapshot,
                ssn.snapshot.changes,
                asked,
                ssn.now,
                changes_at(ssn),
                _copy(decisions),
                ssn.records,
                ssn.job_memory,
                ssn.unschedulable,
                ssn.scheduled,
                ssn.conditions,
                ssn.promises,
            )

    def _moved(self, ssn: Session) -> bool:
        """Return whether a session wrote or failed anything."""
        intents = ssn.intents
        return bool(
            ssn.journal.mark() != self._mark
            or intents.made
            or intents.released_claims
            or ssn.queue_gates.opened
            or ssn.failures.errors
        )


def _copy(decisions: Decisions) -> Decisions:
    """Copy decisions, of which those who write them may leave some out."""
    return Decisions(**{name: copy(value) for name, value in asdict(decisions).items()})


def changes_at(ssn: Session) -> float:
    """Return when time alone may change what plugins decide; at once for those that do not say."""
    soonest = math.inf
    for plugin in ssn.plugins:
        if plugin.simulator is None:
            return -math.inf
        at = ssn.hooks.ask_aside(plugin, Plugin.changes_at)(ssn)
        soonest = min(soonest, math.inf if at is None else float(at))
    return soonest
