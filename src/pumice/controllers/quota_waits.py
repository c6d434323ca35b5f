"""What a resource quota refused: it is tried again once a quota of its namespace has more room.

Used by the controllers' loop on a cluster in memory, where quotas can be watched at no cost.  A
time to try again would be a guess: a quota has room when pods of others end, or when it is changed.
"""

from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

from pumice.api.kinds import Manifest
from pumice.api.quantity import amount_or_nothing
from pumice.errors import QuotaExceededError

_Item = TypeVar("_Item", bound=Hashable)


class QuotaWaits(Generic[_Item]):
    """What waits for quotas."""

    def __init__(self) -> None:
        self._errors: dict[_Item, QuotaExceededError] = {}

    def __bool__(self) -> bool:
        return bool(self._errors)

    @property
    def errors(self) -> Mapping[_Item, QuotaExceededError]:
        """The latest refusal of each."""
        return self._errors

    def add(self, item: _Item, error: QuotaExceededError) -> bool:
        """Have something wait; return whether it did not wait yet."""
        is_new = item not in self._errors
        self._errors[item] = error
        return is_new

    def forget(self, item: _Item) -> None:
        """Stop waiting with something that is no longer refused."""
        self._errors.pop(item, None)

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
