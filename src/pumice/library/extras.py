"""Optional libraries: a missing one is named with the extra that installs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from pumice.api.wording import extra_hint
from pumice.errors import InputError, Words


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import the libraries of an extra.

    Raises:
        InputError: it is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise InputError(
            wanted=f"the library {error.name}",
            found=Words("not installed"),
            hint=extra_hint(name),
        ) from None
