"""Watches: one long answer, a line for each thing that happens to the objects asked for."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import msgspec

from pumice.api.annotations import INITIAL_EVENTS_END
from pumice.api.kinds import Kind, Manifest
from pumice.apiserver.columns import Form, many, one
from pumice.apiserver.failures import failure
from pumice.apiserver.selectors import Selector
from pumice.apiserver.versions import is_stored
from pumice.cluster.base import Event
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import ClusterError

_BOOKMARK_S: Final = 60.0
_AT_ONCE: Final = 1000
"""Changes in one answer of ``poll``; all watches come to them before their lines are forgotten."""
_PART: Final = 32 * 1024
"""Bytes of one answer of ``poll``, and one line more: a client may not read, and many may watch."""
_KEPT: Final = 16 << 20
"""Bytes of the lines that are kept."""


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a client watches, from which version on, for how long, in which form."""

    kind: Kind
    namespace: str = ""
    since: str = ""
    selector: Selector | None = None
    form: Form = field(default_factory=Form)
    timeout_s: float = 1800.0
    bookmarks: bool = False
    initial: bool = False
    """Whether to mark the end of the initial objects."""


class EventLines:
    """Encodes events for watches, each once for all of them; the latest are kept."""

    def __init__(self, most: int = 4096) -> None:
        self._most = most
        self._lines: dict[tuple[str, str], bytes] = {}
        self._size = 0

    def line(self, event: Event) -> bytes:
        """Return the line of an event; an object's version identifies it."""
        key = (event.type, event.object["metadata"]["resourceVersion"])
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= self._most or self._size > _KEPT:
                self._lines.clear()
                self._size = 0
            line = self._lines[key] = _line(event.type, event.object)
            self._size += len(line)
        return line


class Watch:
    """One watch: each ``poll`` returns the lines of what happened since the last, until ``over``.

    ``poll`` waits for nothing but the lock of the cluster; its caller waits for changes.
    """

    def __init__(
        self,
        cluster: EmbeddedCluster,
        request: WatchRequest,
        timer: Callable[[], float] = time.monotonic,
        *,
        lines: EventLines | None = None,
    ) -> None:
        """Begin one; ``lines`` are shared with others of the same cluster."""
        self._cluster = cluster
        self._request = request
        self._timer = timer
        self._event_lines = lines or EventLines()
        self._since = request.since
        self._is_stored = is_stored(request.kind, cluster.kinds)
        self._filter = _SelectorFilter(request.selector, _selected_uids(cluster, request))
        self._deadline = timer() + request.timeout_s
        self._bookmarked_at = timer()
        self._is_first = True
        self._untold: Iterator[Event] | None = None
        """What happened that ``poll`` has yet to return."""
        self.over = False
        self.has_more = False
        """Whether more happened than the last ``poll`` returned."""

    def wait_s(self) -> float:
        """Return after how many seconds to poll at the latest."""
        return max(0.0, min(self._deadline - self._timer(), _BOOKMARK_S))

    def poll(self) -> bytes:
        """Return the lines of what happened since the last time."""
        request = self._request
        if self._timer() >= self._deadline:
            self.over = True
            return self._bookmark() if request.bookmarks else b""
        try:
            lines = self._part()
        except ClusterError as error:
            self.over = True
            return _line("ERROR", failure(error, self._cluster.kinds))
        if self.has_more:
            return lines
        is_first, self._is_first = self._is_first, False
        if is_first and request.initial:
            return lines + self._bookmark(initial=True)
        if request.bookmarks and self._timer() - self._bookmarked_at > _BOOKMARK_S:
            return lines + self._bookmark()
        return lines

    def _part(self) -> bytes:
        """Return the next lines, and note whether there are more."""
        if self._untold is None:
            request = self._request
            found = self._cluster.watch(
                request.kind.name, request.namespace, self._since, bookmarks=True
            )
            self._untold = self._filter.apply(self._up_to_bookmark(found))
        lines: list[bytes] = []
        size, now = 0, self._cluster.now()
        for event in self._untold:
            if len(lines) == _AT_ONCE or size > _PART:
                self._untold = chain((event,), self._untold)
                self.has_more = True
                return b"".join(lines)
            lines.append(self._encoded(event, now))
            size += len(lines[-1])
        self._untold, self.has_more = None, False
        return b"".join(lines)

    def _up_to_bookmark(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if event.type == "BOOKMARK":
                self._since = event.object["metadata"]["resourceVersion"]
            else:
                yield event

    def _encoded(self, event: Event, now: float) -> bytes:
        request = self._request
        if request.form.is_whole and self._is_stored:
            return self._event_lines.line(event)
        return _line(event.type, one(event.object, request.kind, request.form, now))

    def _bookmark(self, *, initial: bool = False) -> bytes:
        self._bookmarked_at = self._timer()
        request = self._request
        metadata: Manifest = {"resourceVersion": self._since}
        if initial:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        if request.form.kind == "Table":
            return _line("BOOKMARK", many([], request.kind, request.form, 0.0, metadata))
        head = {"kind": request.kind.kind, "apiVersion": request.kind.api_version}
        return _line("BOOKMARK", {**head, "metadata": metadata})


def _selected_uids(cluster: EmbeddedCluster, request: WatchRequest) -> set[str]:
    """Return the uids selected at the start: the client is notified when they no longer are."""
    selector = request.selector
    if selector is None or not request.since.isdecimal() or request.since == "0":
        return set()
    start, last = int(request.since), dict[str, Manifest]()
    try:
        for event in cluster.watch(request.kind.name, request.namespace, "1"):
            metadata = event.object["metadata"]
            if int(metadata["resourceVersion"]) > start:
                break
            last[metadata["uid"]] = event.object
    except ClusterError:  # too long ago: what is selected now is the best guess
        last = {m["metadata"]["uid"]: m for m in cluster.list(request.kind.name)[0]}
    return {uid for uid, manifest in last.items() if selector(manifest)}


class _SelectorFilter:
    """Passes events of selected objects; one that is selected no more becomes a deletion."""

    def __init__(self, selector: Selector | None, known: set[str]) -> None:
        self._selector = selector
        self._known = known

    def apply(self, events: Iterable[Event]) -> Iterator[Event]:
        selector = self._selector
        if selector is None:
            yield from events
            return
        for event in events:
            uid = event.object["metadata"]["uid"]
            if event.type == "DELETED":
                if uid in self._known or selector(event.object):
                    self._known.discard(uid)
                    yield event
            elif selector(event.object):
                type_ = event.type if uid in self._known else "ADDED"
                self._known.add(uid)
                yield Event(type_, event.object)
            elif uid in self._known:
                self._known.remove(uid)
                yield Event("DELETED", event.object)


def _line(type_: str, manifest: Manifest) -> bytes:
    return msgspec.json.encode({"type": type_, "object": manifest}) + b"\n"
