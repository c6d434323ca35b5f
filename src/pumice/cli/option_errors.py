"""Errors about the value of an option, with its name."""

from collections.abc import Iterator
from contextlib import contextmanager

from pumice.api.times import epoch
from pumice.errors import InputError


@contextmanager
def value_of(option: str) -> Iterator[None]:
    """Name an option in errors that name no place of their own."""
    try:
        yield
    except InputError as error:
        if not (error.file or error.field):
            error.field = option
        raise


def time_of(text: str | None, option: str = "--now") -> float | None:
    """Read the time that an option names; None without one.

    Raises:
        InputError: it is no time.
    """
    with value_of(option):
        return epoch(text) if text else None
