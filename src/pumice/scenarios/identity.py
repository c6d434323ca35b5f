"""Names and kinds of objects in a scenario."""

from collections.abc import Mapping
from typing import Any, Final

from pumice.api.kinds import JOB, kind_of

_JOB_KIND: Final = JOB.partition(".")[0]


def key_of(manifest: Mapping[str, Any]) -> str:
    """Return "namespace/name"; an absent namespace is `default`."""
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def is_job(manifest: Mapping[str, Any]) -> bool:
    """Return whether an object is a job of Volcano."""
    return manifest["kind"] == _JOB_KIND and kind_of(manifest) == JOB
