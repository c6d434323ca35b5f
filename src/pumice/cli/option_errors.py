"""Errors about the value of an option, with its name."""

from pumice.api.times import epoch
from pumice.api.wording import value_of


def time_of(text: str | None, option: str = "--now") -> float | None:
    """Read the time that an option names; None without one.

    Raises:
        InputError: it is no time.
    """
    with value_of(option):
        return epoch(text) if text else None
