"""Unknown fields in what clients send: refused, warned about or ignored.

All fields of Volcano's kinds, of pods and of kinds that clients define are declared, so a misspelt
one is found; of other kinds only the fields that Pumice reads are, so theirs are not checked.
"""

from collections.abc import Mapping
from typing import Any, Final

from pumice.api.kinds import Kind, Manifest
from pumice.api.schema.build import CHECKED_KINDS, Node, declared_schema, unknown_fields
from pumice.api.schema.grammar import fields_of
from pumice.apiserver.failures import RequestError

_LEVELS: Final = ("Ignore", "Strict", "Warn")
_DECLARED: Final = frozenset({*CHECKED_KINDS, "Pod"})


def field_warnings(
    kind: Kind, manifest: Any, query: Mapping[str, str], custom: Node | None = None
) -> list[str]:
    """Return warnings about unknown fields, at the level that the client asked for.

    ``custom`` is the schema of a kind that a client defined.

    Raises:
        RequestError: it wants unknown fields to be refused, and there are some.
    """
    level = query.get("fieldValidation") or "Warn"
    if level not in _LEVELS:
        listed = ", ".join(f'"{each}"' for each in _LEVELS)
        raise RequestError(
            422,
            f'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: '
            f'"{level:.40}": supported values: {listed}',
        )
    is_known = custom is not None or kind.name in _DECLARED
    if level == "Ignore" or not is_known or not isinstance(manifest, dict):
        return []
    found = [f'unknown field "{path}"' for path in _unknown_of(kind, manifest, custom)]
    if found and level == "Strict":
        problem = f"strict decoding error: {', '.join(found)}"
        what = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
        raise RequestError(400, f"{what}: {problem}")
    return found


def _unknown_of(kind: Kind, manifest: Manifest, custom: Node | None) -> list[str]:
    metadata = manifest.get("metadata")
    named = set(metadata) if isinstance(metadata, dict) else set()
    own = sorted(f"metadata.{name}" for name in named - set(fields_of("meta.ObjectMeta")))
    found = unknown_fields(manifest, custom or declared_schema(kind.name))
    return own + [field.path for field in found]
