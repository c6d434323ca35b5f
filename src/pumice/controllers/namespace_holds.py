"""Namespaces that are being deleted: nothing can be created there, so nothing is tried for a while.

Used by the controllers' loop.  Namespaces are not watched: a refusal shows that one is being
deleted, and a new object in it shows that a new one has that name.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from pumice.controllers.base import Create, Effect
from pumice.controllers.view import Change

_FIRST_S: Final = 1.0
_LONGEST_S: Final = 1000.0


class _Hold(msgspec.Struct, frozen=True):
    """Until when nothing is tried, and for how long that was."""

    until: float
    length_s: float


class NamespaceHolds:
    """Which namespaces refuse creations, and until when to wait."""

    def __init__(self) -> None:
        self._holds: dict[str, _Hold] = {}

    def __bool__(self) -> bool:
        return bool(self._holds)

    def refused(self, namespace: str, now: float) -> bool:
        """Record a refusal, each time for twice as long; return whether it is new."""
        known = self._holds.get(namespace)
        if known is None or now >= known.until:
            length_s = _FIRST_S if known is None else min(known.length_s * 2, _LONGEST_S)
            self._forget_old(now)
            self._holds[namespace] = _Hold(now + length_s, length_s)
        return known is None

    def left_s(self, namespace: str, now: float) -> float:
        """Return how long to wait before creating in a namespace, 0 if not at all."""
        hold = self._holds.get(namespace)
        return 0.0 if hold is None else max(hold.until - now, 0.0)

    def wait_s(self, effects: Iterable[Effect], now: float) -> float:
        """Return how long effects have to wait that create something, 0 if they need not."""
        if not self._holds:
            return 0.0
        made = [effect.manifest["metadata"] for effect in effects if isinstance(effect, Create)]
        namespaces = {str(metadata.get("namespace") or "") for metadata in made}
        return max((self.left_s(name, now) for name in namespaces), default=0.0)

    def notice(self, change: Change) -> None:
        """Release a namespace in which something new is seen: it is another one."""
        _, old, new = change
        if new is None:
            return
        metadata = new["metadata"]
        if old is None or old["metadata"].get("uid") != metadata.get("uid"):
            self._holds.pop(str(metadata.get("namespace") or ""), None)

    def _forget_old(self, now: float) -> None:
        """Drop namespaces that were not tried for long: they are gone."""
        self._holds = {
            name: hold for name, hold in self._holds.items() if now < hold.until + _LONGEST_S
        }
