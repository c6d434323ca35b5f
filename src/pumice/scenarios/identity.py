"""Names of objects in a scenario."""

from collections.abc import Mapping
from typing import Any


def key_of(manifest: Mapping[str, Any]) -> str:
    """Return "namespace/name"; an absent namespace is `default`."""
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
