"""Names and numbers as manifests write them, read as Kubernetes and Go read them."""

import re
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from pumice.api.meta import KubeObject

_NUMBER: Final = re.compile(r"([+-]?)0*([0-9]{1,10})")


def key_of(thing: KubeObject) -> str:
    """Name an object: ``namespace/name``, or the name alone."""
    meta = thing.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def keyed(things: Iterable[KubeObject]) -> dict[str, KubeObject]:
    """Return objects by their names, in their order."""
    parts = ((thing.metadata, thing) for thing in things)
    return {
        f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name: thing
        for meta, thing in parts
    }


def int32_of(text: str, otherwise: int) -> int:
    """Read a whole number of 32 bits as Go does; anything else counts as absent."""
    if not text:
        return otherwise
    found = _NUMBER.fullmatch(text)  # Python refuses to read very many digits, even zeros
    number = int(found[1] + found[2]) if found else otherwise
    return number if -(2**31) <= number < 2**31 else otherwise


def index_of(name: str) -> int:
    """Read the number at the end of a pod name of at least three parts; -1 if there is none."""
    job_and_task, _, last = name.rpartition("-")
    is_number = last.isascii() and last.isdigit() and len(last) < 10
    return int(last) if is_number and "-" in job_and_task else -1


def is_touch(before: KubeObject, after: KubeObject) -> bool:
    """Return whether nothing that is read of an object has changed, as with a heartbeat."""
    return _plain(before) == _plain(after)


def _plain(thing: KubeObject) -> KubeObject:
    return replace(thing, metadata=replace(thing.metadata, resource_version="", generation=None))
