"""What a check of a cluster finds."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "wrong", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The outcome of one check."""

    check: str
    state: State
    text: str
    next_step: str = ""
    """What to do about it; empty if nothing is."""


def ok(check: str, text: str) -> Checked:
    """Return what is as it should be."""
    return Checked(check=check, state="ok", text=text)


def warning(check: str, text: str, next_step: str) -> Checked:
    """Return what works, but is probably not meant so."""
    return Checked(check=check, state="warning", text=text, next_step=next_step)


def wrong(check: str, text: str, next_step: str) -> Checked:
    """Return what keeps jobs from running."""
    return Checked(check=check, state="wrong", text=text, next_step=next_step)


def unknown(check: str, text: str) -> Checked:
    """Return what could not be looked at."""
    return Checked(check=check, state="unknown", text=text)
