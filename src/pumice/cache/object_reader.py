"""Reads manifests for an informer: one by one, or all of a list at once."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from pumice.api.kinds import Manifest
from pumice.api.meta import KubeObject
from pumice.api.objects import TYPES, from_manifest


class ObjectReader:
    """Reads each manifest by itself; others may share what they have read."""

    def read(self, kind: str, manifest: Manifest) -> KubeObject:
        """Read a manifest; only one that does not fit at once is looked at closely."""
        try:
            return msgspec.convert(manifest, TYPES[kind])
        except msgspec.ValidationError:
            return from_manifest(manifest)

    def read_all(self, kind: str, manifests: Sequence[Manifest]) -> list[KubeObject]:
        """Read many manifests of a kind; raises if one of them is bad."""
        try:
            found: list[KubeObject] = msgspec.convert(manifests, _list_of(kind))
        except msgspec.ValidationError:
            return [self.read(kind, manifest) for manifest in manifests]
        return found


@cache
def _list_of(kind: str) -> Any:
    return list[TYPES[kind]]  # type: ignore[valid-type]
