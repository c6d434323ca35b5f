"""Paths inside volumes: relative, and without steps back."""

from collections.abc import Iterator

from pumice.webhooks.fields import FieldError, Path, invalid


def no_steps_back(path: str, place: Path) -> Iterator[FieldError]:
    """Refuse ``..`` as part of a path."""
    if ".." in path.split("/"):
        yield invalid(place, path, "must not contain '..'")


def descending(path: str, place: Path) -> Iterator[FieldError]:
    """Require a relative path without steps back."""
    if path.startswith("/"):
        yield invalid(place, path, "must be a relative path")
    yield from no_steps_back(path, place)


def local(path: str, place: Path) -> Iterator[FieldError]:
    """Require a relative path that does not begin with two dots."""
    yield from descending(path, place)
    if path.startswith("..") and not path.startswith("../"):
        yield invalid(place, path, "must not start with '..'")
