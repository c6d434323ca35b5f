"""Findings of the checks of a cluster."""

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
    """What to do about it; empty if nothing."""


def ok(check: str, text: str) -> Checked:
    """Return a finding without a problem."""
    return Checked(check=check, state="ok", text=text)


def warning(check: str, text: str, next_step: str) -> Checked:
    """Return a finding that works, but is probably not intended."""
    return Checked(check=check, state="warning", text=text, next_step=next_step)


def wrong(check: str, text: str, next_step: str) -> Checked:
    """Return a problem that keeps jobs from running."""
    return Checked(check=check, state="wrong", text=text, next_step=next_step)


def unknown(check: str, text: str) -> Checked:
    """Return a finding that could not be checked."""
    return Checked(check=check, state="unknown", text=text)
