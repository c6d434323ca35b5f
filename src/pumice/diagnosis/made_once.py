"""What is made of a manifest, made once."""

from collections.abc import Callable
from typing import Generic, TypeVar

from pumice.api.kinds import Manifest

_T = TypeVar("_T")


class MadeOnce(Generic[_T]):
    """A function of manifests that remembers its results, by the identity of the manifest."""

    def __init__(self, make: Callable[[Manifest], _T]) -> None:
        self._make = make
        self._known: dict[int, tuple[Manifest, _T]] = {}

    def __reduce__(self) -> tuple[type["MadeOnce[_T]"], tuple[Callable[[Manifest], _T]]]:
        """Leave the results behind on the way to another process: there, identities are others."""
        return MadeOnce, (self._make,)

    def __call__(self, manifest: Manifest) -> _T:
        """Return what is made of a manifest."""
        known = self._known.get(id(manifest))
        if known is None:
            # the manifest is kept with it, so that its identity is not reused
            known = self._known[id(manifest)] = (manifest, self._make(manifest))
        return known[1]
