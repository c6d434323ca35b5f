"""State of the job controller between reconciliations; losing it loses no job.

Objects show nearly everything themselves.  The rest is kept here: pods that are
gone, container restarts that were reset, timers that were announced, and how often a
reconciliation has failed in a row.
"""

from typing import Final

import msgspec

from pumice.api.kinds import Manifest
from pumice.controllers.base import Key
from pumice.controllers.job.policies import LifecycleEvent
from pumice.controllers.job.state import out_of_sync, restarts_of

_FIRST_DELAY_S: Final = 0.005
_DOUBLINGS: Final = 20
_EventKey = tuple[str, str]


class TrackedJob(msgspec.Struct):
    """The state of one job."""

    gone: dict[str, tuple[Manifest, float]] = msgspec.field(default_factory=dict)
    """Pods that another client removed, by uid, with the time it was noticed."""

    restarts: dict[str, int] = msgspec.field(default_factory=dict)
    """The most container restarts that a pod reported, by uid; the next report may show fewer."""

    excused: set[str] = msgspec.field(default_factory=set)
    """Pods that the controller removed itself."""

    armed: dict[_EventKey, float] = msgspec.field(default_factory=dict)
    """Announced timers, with the time from which they count."""

    reported: set[_EventKey] = msgspec.field(default_factory=set)
    """Events that were answered by an event alone."""

    awaited: dict[_EventKey, int] = msgspec.field(default_factory=dict)
    """Events answered by a restart, and the retry count that proves the restart was written."""

    failures: int = 0
    """How many reconciliations in a row failed, not counting those before their time."""

    retry_at: float = 0.0
    """When to reconcile again after a failure."""

    def notice_restarts(self, pod: Manifest) -> None:
        """Remember how often the containers of a pod were restarted, whatever it reports later."""
        if count := restarts_of(pod):
            uid = str(pod["metadata"]["uid"])
            self.restarts[uid] = max(count, self.restarts.get(uid, 0))

    def notice_gone(self, pod: Manifest, now: float) -> None:
        """Remember a pod that is gone, unless the controller removed it."""
        uid = str(pod["metadata"]["uid"])
        self.restarts.pop(uid, None)
        if out_of_sync(pod):
            self.excused.add(uid)
        if uid in self.excused:
            self.gone.pop(uid, None)
        else:
            self.gone.setdefault(uid, (pod, now))

    def since(self, event: LifecycleEvent, now: float) -> float:
        """Return from when a timer counts, and keep it."""
        at = now if event.since is None else event.since
        return self.armed.setdefault(event_key(event), at)

    def answered(self, event: LifecycleEvent, retries: int) -> bool:
        """Return whether something that happened needs no (further) answer."""
        key = event_key(event)
        awaited = self.awaited.get(key)
        return key in self.reported or (awaited is not None and retries >= awaited)

    def failed(self, now: float) -> float:
        """Count a failure; return how long to wait, each time twice as long."""
        if self.failures == 0 or now >= self.retry_at:
            self.failures += 1
            self.retry_at = now + _FIRST_DELAY_S * 2.0 ** min(self.failures - 1, _DOUBLINGS)
        return self.retry_at - now

    def keep_only(self, present: set[_EventKey]) -> None:
        """Forget what no longer applies."""
        self.armed = {key: at for key, at in self.armed.items() if key in present}
        self.awaited = {key: count for key, count in self.awaited.items() if key in present}
        self.reported &= present


def event_key(event: LifecycleEvent) -> _EventKey:
    """Return the key of an event."""
    return event.subject, event.name


class JobTracker:
    """The state of all jobs, by job."""

    def __init__(self) -> None:
        """Start with no job."""
        self._jobs: dict[Key, tuple[str, TrackedJob]] = {}

    def of(self, key: Key, uid: str) -> TrackedJob:
        """Return the state of a job; another job of the same name starts empty."""
        known = self._jobs.get(key)
        if known is None or known[0] != uid:
            known = self._jobs[key] = (uid, TrackedJob())
        return known[1]

    def forget(self, key: Key) -> None:
        """Drop a job that is gone."""
        self._jobs.pop(key, None)
