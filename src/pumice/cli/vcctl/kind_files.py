"""Files that hold objects of one kind, for the commands in Pumice's own words.

``documents`` reads the same files with the original's messages.
"""

from pathlib import Path
from typing import Any, Final

from pumice.api.kinds import BUILT_IN, Manifest
from pumice.api.wording import EMPTY_FILE, counted
from pumice.errors import ABSENT, ManifestError, Words

_API_VERSIONS: Final = {kind.name: kind.api_version for kind in BUILT_IN}


def read_kind(file: str, kind: str, notation: str) -> list[Manifest]:
    """Read the objects of a file, or of standard input for ``-``, all of one kind.

    An object may leave out ``apiVersion`` and ``kind``: the command has said what it is.

    Raises:
        ManifestError: a file that cannot be read or has no object, one of another kind, or a value
            of the wrong type.
    """
    from pumice.api.manifests import load_documents  # noqa: PLC0415  (loads YAML)
    from pumice.api.text_files import shown_name  # noqa: PLC0415

    if not file:
        raise ManifestError(wanted=f"a file with a {_name(kind)}", field="-f")
    documents = load_documents(Path(file))
    found = [document for document in documents if document.content is not None]
    if not found:
        raise ManifestError(
            wanted=f"a {_name(kind)}", found=EMPTY_FILE, file=shown_name(Path(file))
        )
    return [_typed(document, kind, notation) for document in found]


def read_one(file: str, kind: str, notation: str) -> Manifest:
    """Read the only object of a file.

    Raises:
        ManifestError: as for ``read_kind``, or there are several objects.
    """
    found = read_kind(file, kind, notation)
    if len(found) > 1:
        raise ManifestError(
            wanted=f"one {_name(kind)}", found=Words(counted(len(found), "object")), file=file
        )
    return found[0]


def _name(kind: str) -> str:
    return kind.partition(".")[0]


def _typed(document: Any, kind: str, notation: str) -> Manifest:
    """Return the object of a document as its type holds it."""
    content = document.content
    if not isinstance(content, dict):
        raise ManifestError(
            wanted=f"a {_name(kind)}, a mapping", found=content, file=document.source
        )
    for field, wanted in (("apiVersion", _API_VERSIONS[kind]), ("kind", _name(kind))):
        if content.get(field, wanted) != wanted:
            raise _misplaced(document, (field,), repr(wanted), content[field])
    head = {"apiVersion": _API_VERSIONS[kind], "kind": _name(kind)}
    return _decoded(document._replace(content={**head, **content}), notation)


def _decoded(document: Any, notation: str) -> Manifest:
    from pumice.webhooks.files import value_at  # noqa: PLC0415  (loads the rules of admission)
    from pumice.webhooks.go_types import DecodeError, decode  # noqa: PLC0415
    from pumice.webhooks.review import unreadable  # noqa: PLC0415

    try:
        return decode(document.content, notation, from_yaml=True)
    except DecodeError as error:
        finding = unreadable(error).findings[0]
        path = tuple(error.path)
        wanted = finding.wanted or finding.text
        raise _misplaced(document, path, wanted, value_at(document.content, path)) from None


def _misplaced(
    document: Any, path: tuple[str | int, ...], wanted: str, found: Any = ABSENT
) -> ManifestError:
    from pumice.webhooks.fields import path_text  # noqa: PLC0415
    from pumice.webhooks.files import name_of, resource_name  # noqa: PLC0415

    content = document.content
    named = isinstance(content.get("kind"), str) and name_of(content)
    return ManifestError(
        wanted=wanted,
        found=found,
        field=path_text(path),
        file=document.place_of(path),
        subject=resource_name(content) if named else "",
        path=path,
    )
