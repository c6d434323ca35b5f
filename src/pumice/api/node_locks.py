"""Annotations that lock a node while a device plugin works, and when they count.

The scheduler sets one, with the time, before it binds a pod with devices; the device
plugin of the node removes it.  One that is older than five minutes was forgotten.
"""

from typing import Final

from pumice.api.times import epoch
from pumice.errors import InputError

LOCK_LASTS: Final = 300.0
"""Seconds."""


def is_locked(since: str, now: float) -> bool:
    """Return whether a lock with this text counts; one without a time does not."""
    try:
        return bool(since) and now - epoch(since) <= LOCK_LASTS
    except InputError:
        return False
