"""What a test takes for granted, checked for its reader and for the type checker."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pumice.api.objects import from_manifest

T = TypeVar("T")


def present(value: T | None) -> T:
    """Return a value that must not be None."""
    assert value is not None
    return value


def read_as(kind: type[T], manifest: Mapping[str, Any]) -> T:
    """Return the object of a manifest, which must be of a kind."""
    found = from_manifest(manifest)
    assert isinstance(found, kind)
    return found
