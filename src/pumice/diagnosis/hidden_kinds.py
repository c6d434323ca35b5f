"""Kinds that a cluster did not show: the note about one, and whether there is one."""

from collections.abc import Iterable


def hidden_note(kind: str, problem: str) -> str:
    """Write that objects of a kind could not be read."""
    return f"{kind} left out: {problem}"


def is_hidden(kind: str, notes: Iterable[str]) -> bool:
    """Return whether notes say that objects of a kind could not be read."""
    return any(note.startswith(hidden_note(kind, "")) for note in notes)
