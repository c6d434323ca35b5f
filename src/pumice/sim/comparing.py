"""Which figures of two simulations can be compared."""

from collections.abc import Mapping
from typing import Any

Summary = Mapping[str, Any]
"""The figures of one configuration, or of all."""


def are_comparable(before: Summary, after: Summary) -> bool:
    """Return whether the same jobs finished: only then are figures over jobs better or worse.

    A configuration that leaves long jobs waiting for ever has short waits and an early end.
    """
    return _unfinished(before) == _unfinished(after)


def _unfinished(found: Summary) -> set[str]:
    return {job["job"] for job in found["unfinished"]}
