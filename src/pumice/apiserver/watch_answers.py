"""Watches: one long answer, a line for each thing that happens to the objects asked for."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from pumice.api.kinds import Kind, Manifest
from pumice.apiserver.failures import failure
from pumice.apiserver.selectors import Selector
from pumice.apiserver.tables import Form, many, one
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ClusterError

_PATIENCE_S: Final = 1.0
"""After how long without news the client is looked after."""
_BOOKMARK_S: Final = 60.0
_INITIAL_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Ask:
    """What a client wants to be told, from which version on, for how long, in which form."""

    kind: Kind
    namespace: str = ""
    since: str = ""
    fits: Selector | None = None
    form: Form = field(default_factory=Form)
    timeout_s: float = 1800.0
    bookmarks: bool = False
    initial: bool = False
    """Whether to say when all that was there at the start is told."""


class Watches:
    """All watches of one cluster; ``stop`` ends them."""

    def __init__(
        self, cluster: EmbeddedCluster, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._timer = timer
        self._changed = threading.Condition(cluster.lock)
        self._stopped = False
        cluster.listeners.append(self._notice)

    def stop(self) -> None:
        """End all watches."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _notice(self, _kind: str, _event: Event) -> None:
        self._changed.notify_all()  # the store holds the lock while it tells

    def stream(self, ask: Ask) -> Iterator[bytes]:
        """Give the lines of a watch as things happen; an empty one now and then if nothing does."""
        sieve = _Sieve(ask, self._present(ask))
        since, deadline = ask.since, self._timer() + ask.timeout_s
        told = self._timer()
        first = True
        while not self._stopped and (left := deadline - self._timer()) > 0:
            try:
                events, since = self._next(ask, since, 0 if first else min(left, _PATIENCE_S))
            except ClusterError as error:
                yield _line("ERROR", failure(error, self._cluster.kinds))
                return
            yield b"".join(self._lines(ask, sieve.pass_on(events)))
            if (first and ask.initial) or (ask.bookmarks and self._timer() - told > _BOOKMARK_S):
                told = self._timer()
                yield self._bookmark(ask, since, initial=first and ask.initial)
            first = False
        if ask.bookmarks and not self._stopped:
            yield self._bookmark(ask, since)

    def _present(self, ask: Ask) -> set[str]:
        """Give the uids that fitted at the start: their going out of sight is to be told."""
        if ask.fits is None or not ask.since.isdecimal() or ask.since == "0":
            return set()
        start, last = int(ask.since), dict[str, Manifest]()
        try:
            for event in self._cluster.watch(ask.kind.name, ask.namespace, "1"):
                metadata = event.object["metadata"]
                if int(metadata["resourceVersion"]) > start:
                    break
                last[metadata["uid"]] = event.object
        except ClusterError:  # too long ago: what fits now is the best guess
            last = {m["metadata"]["uid"]: m for m in self._cluster.list(ask.kind.name)[0]}
        return {uid for uid, manifest in last.items() if ask.fits(manifest)}

    def _next(self, ask: Ask, since: str, patience_s: float) -> tuple[list[Event], str]:
        """Wait for events and give them with the version they reach up to."""
        with self._changed:
            events, since = self._new(ask, since)
            if patience_s and not events and not self._stopped:
                self._changed.wait(patience_s)
                events, since = self._new(ask, since)
            return events, since

    def _new(self, ask: Ask, since: str) -> tuple[list[Event], str]:
        found = self._cluster.watch(ask.kind.name, ask.namespace, since, bookmarks=True)
        *events, last = found
        return events, last.object["metadata"]["resourceVersion"]

    def _lines(self, ask: Ask, events: Iterable[Event]) -> Iterator[bytes]:
        now = self._cluster.now()
        for event in events:
            yield _line(event.type, one(event.object, ask.kind, ask.form, now))

    def _bookmark(self, ask: Ask, since: str, *, initial: bool = False) -> bytes:
        metadata: Manifest = {"resourceVersion": since}
        if initial:
            metadata["annotations"] = {_INITIAL_END: "true"}
        if ask.form.kind == "Table":
            return _line("BOOKMARK", many([], ask.kind, ask.form, 0.0, metadata))
        head = {"kind": ask.kind.kind, "apiVersion": ask.kind.api_version}
        return _line("BOOKMARK", {**head, "metadata": metadata})


class _Sieve:
    """Lets events of fitting objects pass; one that fits no more is told as deleted."""

    def __init__(self, ask: Ask, known: set[str]) -> None:
        self._fits = ask.fits
        self._known = known

    def pass_on(self, events: Iterable[Event]) -> Iterator[Event]:
        """Give the events a client sees."""
        fits = self._fits
        if fits is None:
            yield from events
            return
        for event in events:
            uid = event.object["metadata"]["uid"]
            if event.type == "DELETED":
                if uid in self._known or fits(event.object):
                    self._known.discard(uid)
                    yield event
            elif fits(event.object):
                type_ = event.type if uid in self._known else "ADDED"
                self._known.add(uid)
                yield Event(type_, event.object)
            elif uid in self._known:
                self._known.remove(uid)
                yield Event("DELETED", event.object)


def _line(type_: str, manifest: Manifest) -> bytes:
    return msgspec.json.encode({"type": type_, "object": manifest}) + b"\n"
