"""The line of the wrong field, for errors that only name the line of its object.

Used where errors reach a user: what reads objects knows where each begins, not its fields.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pumice.api.json_text import starts_like_json
from pumice.api.manifests import Document, yaml_documents
from pumice.api.text_files import is_stdin, read_text
from pumice.errors import InputError, ManifestError

_MOST_BYTES = 1 << 20
"""Larger files are not read again for the line of a field: as YAML that takes seconds."""
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@contextmanager
def pointing_to_fields() -> Iterator[None]:
    """Make errors of manifests name the line of the field."""
    try:
        yield
    except ManifestError as error:
        point_to_field(error)
        raise


def point_to_field(error: ManifestError) -> None:
    """Make an error name the line of its field, if it names that of a whole object."""
    name, _, line = error.file.rpartition(":")
    path = error.path or _steps(error.field)
    if not (path and line.isdigit() and _is_small(Path(name))):
        return
    try:
        text = read_text(Path(name))
        documents = list(yaml_documents(text, name))
    except InputError:
        return
    named = [one for one in documents if _is_about(error.subject, one)]
    found = [one for one in named or documents if one.source == error.file] or named
    is_sure = named or len(documents) == 1 or not starts_like_json(text)
    if len(found) == 1 and is_sure:  # all items of a list in JSON were read as of one line
        error.file = found[0].place_of(path)


def _is_small(file: Path) -> bool:
    """Return whether something is a file, or was standard input, that is soon read again."""
    if is_stdin(file):
        return len(read_text(file)) <= _MOST_BYTES
    return file.is_file() and file.stat().st_size <= _MOST_BYTES


def _steps(field: str) -> tuple[str | int, ...]:
    """Take a field apart: ``spec.tasks[0].replicas``."""
    return tuple(int(index) if index else key for index, key in _STEP.findall(field))


def _is_about(subject: str, document: Document) -> bool:
    """Return whether an error names the object of a document, as in ``Job default/train``."""
    content: Any = document.content
    metadata = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(metadata, dict):
        return False
    name, namespace = metadata.get("name"), metadata.get("namespace") or "default"
    kind = content.get("kind")
    return subject in (f"{kind} {name}", f"{kind} {namespace}/{name}")
