"""What is not tried again for a while: what quotas refuse, and namespaces being deleted.

What a resource quota refused is tried again once a quota of its namespace has more room; used by
the controllers' loop on a cluster in memory, where quotas can be watched at no cost.  A time to try
again would be a guess: a quota has room when pods of others end, or when it is changed.  Many may
wait for the same room.  Once it is taken again, quotas are as they were when the others were
refused, and these need not be tried to be refused once more.

Namespaces are not watched: a refusal shows that one is being deleted, and a new object in it shows
that a new one has that name.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from pumice.api.kinds import Manifest
from pumice.api.quantity import amount_or_nothing
from pumice.controllers.base import Create, Effect
from pumice.controllers.view import Change
from pumice.errors import QuotaExceededError

_Item = TypeVar("_Item", bound=Hashable)


class QuotaBackoff(Generic[_Item]):
    """What waits for quotas.

    ``listed`` returns the quotas of a namespace, ``version`` that of the last change of any quota.
    """

    def __init__(self, listed: Callable[[str], list[Manifest]], version: Callable[[], int]) -> None:
        self._listed = listed
        self._version = version
        self._begun_at = -1
        self._errors: dict[_Item, QuotaExceededError] = {}
        self._refused_by: dict[_Item, str] = {}
        """The quotas that an attempt found, where they were the same from its start to its end."""
        self._present: dict[str, str] = {}
        """The quotas of namespaces as of the latest changes."""

    def __bool__(self) -> bool:
        return bool(self._errors)

    @property
    def errors(self) -> Mapping[_Item, QuotaExceededError]:
        """The latest refusal of each."""
        return self._errors

    def begin(self) -> None:
        """Note the start of an attempt."""
        self._begun_at = self._version()

    def add(self, item: _Item, error: QuotaExceededError) -> bool:
        """Have something wait whose attempt was refused; return whether it did not wait yet."""
        is_new = item not in self._errors
        self._errors[item] = error
        found = _described(self._listed(error.namespace))
        self._refused_by[item] = found if self._version() == self._begun_at else ""
        return is_new

    def forget(self, item: _Item) -> None:
        """Stop waiting with something that is no longer refused."""
        self._errors.pop(item, None)
        self._refused_by.pop(item, None)

    def take_changes(self) -> None:
        """Read quotas again before the next answer: they may have changed."""
        self._present.clear()

    def is_refused_again(self, item: _Item) -> bool:
        """Return whether an attempt is bound to be refused as before: quotas are as they were."""
        before = self._refused_by.get(item)
        if not before:
            return False
        home = self._errors[item].namespace
        present = self._present.get(home)
        if present is None:
            present = self._present[home] = _described(self._listed(home))
        return present == before

    def released_by(self, old: Manifest | None, new: Manifest | None) -> list[_Item]:
        """List what to try again after a change of a quota; it waits until that succeeds."""
        if old is None or not _has_more_room(old, new):
            return []
        home = old["metadata"]["namespace"]
        return [item for item, error in self._errors.items() if error.namespace == home]


def _has_more_room(old: Manifest, new: Manifest | None) -> bool:
    """Return whether a changed quota may admit what it refused: it is not just used more."""
    if new is None or old.get("spec") != new.get("spec"):
        return True
    before, after = _used(old), _used(new)
    return any(
        amount_or_nothing(after.get(name) or 0).nano < amount_or_nothing(each).nano
        for name, each in before.items()
    )


def _used(quota: Manifest) -> Mapping[str, Any]:
    return (quota.get("status") or {}).get("used") or {}


def _described(quotas: list[Manifest]) -> str:
    """Write down all that quotas decide by; nothing if they decide by other objects, too."""
    text = repr([(one["metadata"]["name"], one.get("spec"), one.get("status")) for one in quotas])
    return "" if "PriorityClass" in text else text


_FIRST_S: Final = 1.0
_LONGEST_S: Final = 1000.0


class _Hold(msgspec.Struct, frozen=True):
    """Until when nothing is tried, and for how long that was."""

    until: float
    length_s: float


class NamespaceDeletions:
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
