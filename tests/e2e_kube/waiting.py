"""Waiting for a cluster to get somewhere: look, compare, look again, until a deadline."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
PATIENCE_S: Final = 45.0
"""Most of what is waited for takes a second or two; a loaded machine is given much more."""
_PAUSE_S: Final = 0.2


def until(
    what: str,
    look: Callable[[], T],
    holds: Callable[[T], object] = bool,
    *,
    timeout_s: float = PATIENCE_S,
) -> T:
    """Poll until a condition holds and return what was seen; fails with the last value."""
    deadline = time.monotonic() + timeout_s
    while not holds(seen := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {timeout_s:.0f} s not {what}; last seen: {seen!r}")
        time.sleep(_PAUSE_S)
    return seen


def stays(
    what: str, look: Callable[[], T], holds: Callable[[T], object] = bool, *, for_s: float
) -> None:
    """Look for a while; fails at once when something no longer holds."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        seen = look()
        if not holds(seen):
            raise AssertionError(f"no longer {what}: {seen!r}")
        time.sleep(_PAUSE_S)
