"""A cluster that shows a scheduler again what a record says that it was shown."""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from pumice import errors
from pumice.api.kinds import Manifest
from pumice.cluster.base import Done, Event, Lane, Write
from pumice.errors import ClusterError, NotFoundError
from pumice.records.changes import place_of
from pumice.records.entries import CycleEntry, Entry
from pumice.records.history import Moment

_Objects = list[Manifest]
_OWN: Final = ("bind", "evict")
"""Writes that a record names by their verb; others are known by their object alone."""


class RecordedCluster:
    """Objects come as the record has them; writes end as they ended then."""

    def __init__(self) -> None:
        self._moment = Moment()
        self._events: dict[str, list[Event]] = defaultdict(list)
        self.cycle = CycleEntry(now=0.0)
        """The cycle that is decided again."""
        self._results: dict[tuple[str, str], deque[str]] = {}
        """Errors of the writes whose results came with this cycle, empty for success."""
        self._waiting: dict[tuple[str, str], deque[Done]] = defaultdict(deque)

    # The record

    def happen(self, entry: Entry, moment: Moment) -> None:
        """Take a change of an object."""
        self._moment = moment
        if entry.put is not None:
            self._tell("ADDED", place_of(entry.put)[0], entry.put)
        elif entry.of is not None and entry.of in moment.objects:
            self._tell("MODIFIED", entry.of[0], moment.objects[entry.of])
        elif entry.gone is not None:
            kind, namespace, name = entry.gone
            meta = {"name": name, "namespace": namespace, "resourceVersion": "0"}
            self._tell("DELETED", kind, {"metadata": meta})

    def _tell(
        self, what: Literal["ADDED", "MODIFIED", "DELETED"], kind: str, manifest: Manifest
    ) -> None:
        if isinstance(
            manifest["metadata"].get("resourceVersion"), str
        ):  # no cluster has an object without one
            self._events[kind].append(Event(what, manifest))

    def begin(self, cycle: CycleEntry) -> None:
        """Set the time to that of a cycle; what was written before ends as it did by then."""
        self.cycle = cycle
        self._results = defaultdict(deque)
        for what, key, _, error in cycle.results:
            self._results[what if what in _OWN else "", key].append(error)
        for place, callbacks in self._waiting.items():
            while callbacks and self._results.get(place):
                callbacks.popleft()(_error(self._results[place].popleft(), place[1]))

    # What a scheduler asks

    def now(self) -> float:
        """Return the time of the cycle."""
        return self.cycle.now

    def steady(self) -> float:
        """Return the other clock at the cycle."""
        return self.cycle.steady

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[_Objects, str]:
        """Return all objects of a kind."""
        del namespace, labels
        self._events.pop(kind, None)
        return [one for place, one in self._moment.objects.items() if place[0] == kind], "1"

    def watch(self, kind: str, namespace: str = "", since: str = "") -> Iterator[Event]:
        """Return what happened since the last time."""
        del namespace, since
        return iter(self._events.pop(kind, ()))

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Return one object."""
        found = self._moment.objects.get((kind, namespace, name))
        if found is None:
            raise NotFoundError(kind, namespace, name)
        return found

    def submit(self, write: Write, *, lane: Lane, done: Done | None = None) -> None:
        """End a write as it ended then: now, with a later cycle, or never."""
        del lane
        if done is None:
            return
        given = write.arguments
        if write.verb == "record":
            done(None)
            return
        name = given.get("pod") or given.get("name") or ""
        namespace = given.get("namespace") or ""
        key = f"{namespace}/{name}" if namespace else str(name)
        place = (write.verb if write.verb in _OWN else "", key)
        if self._results.get(place):
            done(_error(self._results[place].popleft(), key))
        else:
            self._waiting[place].append(done)

    def flush(self, timeout_s: float) -> bool:
        """Return True: nothing is on its way."""
        del timeout_s
        return True


def _error(name: str, key: str) -> ClusterError | None:
    """Return the error of a write by its name; None if it succeeded."""
    if not name:
        return None
    known: Any = getattr(errors, name, ClusterError)
    namespace, _, of = key.rpartition("/")
    return known("", namespace, of, "as recorded")
