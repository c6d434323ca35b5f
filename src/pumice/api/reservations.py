"""A start that a job is promised, as an annotation of its PodGroup keeps it."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from pumice.api.annotations import RESERVATION
from pumice.api.times import epoch, rfc3339_micro
from pumice.errors import InputError


class Reservation(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """When a job is promised to start, and where it would by the plan of that time."""

    start: str
    """In microseconds: what is read back is what was promised."""
    nodes: tuple[str, ...] = ()
    moved: str = ""
    """Why it was moved later last; empty if it was not, or if nobody can say."""

    @classmethod
    def at(cls, start: float, nodes: tuple[str, ...] = (), moved: str = "") -> "Reservation":
        """Make one of a time in seconds since 1970."""
        return cls(rfc3339_micro(start), nodes, moved)

    @cached_property
    def seconds(self) -> float:
        """When it starts, in seconds since 1970."""
        return epoch(self.start)

    def to_text(self) -> str:
        """Write it as the text of the annotation."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def of(cls, annotations: Mapping[str, Any]) -> "Reservation | None":
        """Read that of a PodGroup; None if it has none, or one that nobody can read."""
        text = annotations.get(RESERVATION)
        if not text:
            return None
        try:
            found = msgspec.json.decode(text, type=cls)
            epoch(found.start)
        except (msgspec.DecodeError, UnicodeEncodeError, InputError):
            return None
        return found
