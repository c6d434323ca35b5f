"""What happened to the objects of one kind, as far back as it is remembered.

Used by the store for watches.  Events share their objects with the store: readers change nothing.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from pumice.cluster.base import Event
from pumice.errors import GoneError, RejectedError


class History:
    """Events in the order of their versions; the oldest are forgotten beyond ``limit``."""

    def __init__(self, kind: str, limit: int) -> None:
        self._kind = kind
        self._limit = limit
        self._versions: list[int] = []
        self._events: list[Event] = []
        self.forgotten = 0
        """The latest version that is not remembered."""

    def add(self, version: int, event: Event) -> None:
        """Remember an event."""
        self._versions.append(version)
        self._events.append(event)
        # A quarter more than the limit is kept, so that forgetting is rare and cheap on average.
        if len(self._versions) > self._limit + self._limit // 4 + 1:
            self.compact(self._versions[-self._limit - 1])

    def compact(self, version: int) -> None:
        """Forget everything up to a version."""
        cut = bisect_right(self._versions, version)
        del self._versions[:cut]
        del self._events[:cut]
        self.forgotten = max(self.forgotten, version)

    def since(self, text: str, latest: int) -> list[Event]:
        """Give events after a version.

        Raises:
            GoneError: some of them are forgotten, or the version is still to come.
            RejectedError: no version at all.
        """
        if not text.isdecimal():
            problem = f"wanted a resourceVersion of this cluster, found '{text}'"
            raise RejectedError(self._kind, problem=problem)
        version = int(text)
        if not self.forgotten <= version <= latest:
            raise GoneError(
                self._kind,
                problem=f"wanted changes after resourceVersion {version}, found those after "
                f"{self.forgotten} up to {latest} (list again)",
            )
        return self._events[bisect_right(self._versions, version) :]


def told(events: Iterable[Event], namespace: str, bookmark: Event | None) -> Iterator[Event]:
    """Give events of one namespace or of all, and a bookmark after them."""
    for event in events:
        if not namespace or event.object["metadata"].get("namespace") == namespace:
            yield event
    if bookmark is not None:
        yield bookmark
