"""Errors about a value that a user gave by name: an option of a command, an argument of a call."""

from collections.abc import Iterator
from contextlib import contextmanager

from pumice.errors import InputError


@contextmanager
def value_of(name: str) -> Iterator[None]:
    """Name an option or argument in errors that name no place of their own."""
    try:
        yield
    except InputError as error:
        if not (error.file or error.field):
            error.field = name
        raise
