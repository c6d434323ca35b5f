"""Events worth a request: repeated ones are counted and sent less and less often.

Used by the client.  Decides only; sends nothing.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from pumice.api.kinds import Manifest
from pumice.api.times import rfc3339
from pumice.cluster.base import event_object

_REMEMBERED: Final = 4096
_FIRST_S: Final = 10.0
_LONGEST_S: Final = 300.0
_BURST: Final = 25.0  # different events about one object by one source, then one in _REFILL_S
_REFILL_S: Final = 300.0
_LONGEST_NAME: Final = 230


class EventKey(NamedTuple):
    """The parts in which equal events agree."""

    about: str
    type: str
    reason: str
    message: str
    source: str


@dataclass(slots=True)
class _Recorded:
    """An event that was written."""

    namespace: str
    name: str
    count: int
    next_at: float
    interval_s: float


class CountUpdate(NamedTuple):
    """An existing event that has happened again."""

    namespace: str
    name: str
    patch: Manifest


class EventCorrelator:
    """Remembers the latest events; ``wall`` returns seconds since 1970."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._recorded: OrderedDict[EventKey, _Recorded] = OrderedDict()
        self._room: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._last = 0

    def repeat(self, key: EventKey) -> CountUpdate | bool:
        """Return the patch of an event that was known before; True if nothing is to be sent.

        False means that it is new.
        """
        known = self._recorded.get(key)
        if known is None:
            return False
        self._recorded.move_to_end(key)
        known.count += 1
        now = self._wall()
        if now < known.next_at:
            return True
        known.interval_s = min(known.interval_s * 2.0, _LONGEST_S)
        known.next_at = now + known.interval_s
        patch = {"count": known.count, "lastTimestamp": rfc3339(now)}
        return CountUpdate(known.namespace, known.name, patch)

    def new(self, about: Manifest, key: EventKey) -> Manifest | None:
        """Return an event to write, None if there were too many about this object."""
        now = self._wall()
        if not self._has_room((key.source, key.about), now):
            return None
        metadata = about["metadata"]
        namespace = metadata.get("namespace") or "default"
        self._last = max(self._last + 1, int(now * 1e9))
        name = f"{metadata['name'][:_LONGEST_NAME]}.{self._last:x}"
        self._recorded[key] = _Recorded(namespace, name, 1, now + _FIRST_S, _FIRST_S)
        if len(self._recorded) > _REMEMBERED:
            self._recorded.popitem(last=False)
        what = key.type, key.reason, key.message[:1024], key.source  # servers refuse more
        return event_object(about, what, (namespace, name), rfc3339(now))

    def forget(self, key: EventKey) -> None:
        """Treat an event as new the next time: it is gone, or was never written."""
        self._recorded.pop(key, None)

    def _has_room(self, key: tuple[str, str], now: float) -> bool:
        room, last = self._room.pop(key, (_BURST, now))
        room = min(_BURST, room + (now - last) / _REFILL_S)
        self._room[key] = (room - 1.0 if room >= 1.0 else room), now
        if len(self._room) > _REMEMBERED:
            self._room.popitem(last=False)
        return room >= 1.0


def event_key(about: Manifest, event_type: str, reason: str, message: str, source: str) -> EventKey:
    """Return the key of an event."""
    metadata = about["metadata"]
    place = f"{about['kind']}/{metadata.get('namespace') or ''}/{metadata['name']}"
    return EventKey(metadata.get("uid") or place, event_type, reason, message, source)
