"""Parts of messages: the name probably meant, the first of many, a counted noun."""

import difflib
import re
import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pumice.errors import InputError, Words

EMPTY_FILE: Final = Words("an empty file")
"""What was found in a file without content."""
_ORDINALS: Final = ("first", "second", "third", "fourth", "fifth")
_LONGEST: Final = 500
"""Characters of a name for which near ones are sought: the search takes long for a long one."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name probably meant, or None when nothing comes close."""
    if len(name) > _LONGEST:
        return None
    by_lower = {known.lower(): known for known in sorted(names, reverse=True)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None


def name_hint(name: str, names: Collection[str]) -> str:
    """Suggest the nearest name, else list all there are when they are few."""
    close = nearest(name, names)
    if close is not None:
        return f"did you mean '{close}'?"
    if len(names) == 1:
        return f"the only one is {next(iter(names))}"
    return f"there are {', '.join(sorted(names))}" if 0 < len(names) <= 12 else ""


def first_of(names: Sequence[str], most: int) -> str:
    """Write the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def listing(names: Sequence[str], most: int) -> str:
    """Write a few names as a sentence does: ``a, b and c``; of more, the first."""
    if len(names) > most:
        return first_of(names, most)
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def verb(n: int, one: str, many: str) -> str:
    """Choose the form of a verb for a number of subjects: ``is`` for 1, ``are`` for others."""
    return one if n == 1 else many


def counted(n: int, noun: str) -> str:
    """Write a number with its noun: ``1 pod``, ``2,000 pods``."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def ordinal(n: int) -> str:
    """Write a place in an order: ``first``, ``second``, ``11th``, ``22nd``."""
    if 0 < n <= len(_ORDINALS):
        return _ORDINALS[n - 1]
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def part_of_its(n: int, total: int, noun: str) -> str:
    """Write how many of its things: ``2 of its 3 pods``, ``its 3 pods``, ``its only pod``."""
    if total == 1:
        return f"its only {noun}"
    whole = f"its {counted(total, noun)}"
    return whole if n == total else f"{n:,} of {whole}"


def extra_hint(extra: str) -> str:
    """Return how the libraries of an extra are installed, wherever Pumice itself came from."""
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415  # loads slowly

    try:
        listed = requires("pumice") or ()
    except PackageNotFoundError:  # imported from a folder
        listed = ()
    marked = re.compile(rf"([\w.-]+).*extra == ['\"]{extra}['\"]")
    names = [found[1] for each in listed if (found := marked.match(each))]
    return f"pip install {' '.join(names)}" if names else f"pip install 'pumice[{extra}]'"


def crash_text(error: BaseException) -> str:
    """Name an unexpected error and the line it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def span(seconds: float) -> str:
    """Write a span of time in its two largest units, a part of a second in tenths."""
    if 0.05 <= seconds < 0.5:
        return f"{seconds:.1f} s"
    parts, left = [], round(seconds)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        n, left = divmod(left, size)
        if n:
            parts.append(f"{n} {unit}")
    return " ".join(parts[:2]) or "no time"


def fine_span(seconds: float) -> str:
    """Write a span of time, below a minute in tenths of a second."""
    return span(seconds) if seconds >= 60 else f"{seconds:.1f} s"


def signed_span(seconds: float) -> str:
    """Write by how much a span of time is longer or shorter."""
    return f"{'-' if seconds < 0 else '+'}{fine_span(abs(seconds))}"


@contextmanager
def value_of(name: str) -> Iterator[None]:
    """Name an option or argument in errors that name no place of their own."""
    try:
        yield
    except InputError as error:
        if not (error.file or error.field):
            error.field = name
        raise
