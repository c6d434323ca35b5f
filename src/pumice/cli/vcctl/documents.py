"""Files of manifests, read with the messages of the original or in the words of Pumice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pumice.api.kinds import BUILT_IN, Manifest
from pumice.api.text_files import read_file
from pumice.api.wording import EMPTY_FILE, counted
from pumice.cli.vcctl.verbs import VerbError
from pumice.errors import ABSENT, ManifestError, Words


def read_text(file: str) -> str:
    """Read a file.

    Raises:
        VerbError: it cannot be read.
    """
    try:
        if not file:
            raise FileNotFoundError
        return read_file(Path(file)).decode()
    except UnicodeDecodeError as error:
        raise VerbError(f"{file}: not UTF-8 at byte {error.start}") from None
    except OSError as error:
        verb = "read" if isinstance(error, IsADirectoryError) else "open"
        raise VerbError(f"{verb} {file}: {go_reason(error)}") from None


def go_reason(error: OSError) -> str:
    """Return why a file cannot be used, as Go writes it: in lower case."""
    reason = error.strerror or "no such file or directory"
    return reason[0].lower() + reason[1:]


def split_documents(text: str) -> Iterator[str]:
    """Split a file into its documents; dashes inside values cut as well."""
    for part in text.split("---"):
        if part.strip():
            yield part.strip()


def shape(manifest: Any, notation: str) -> Manifest:
    """Return a manifest as the original holds and writes it.

    Raises:
        VerbError: a value of the wrong type.
    """
    from pumice.webhooks.go_types import DecodeError, decode

    try:
        return decode(manifest, notation, from_yaml=True)
    except DecodeError as error:
        raise VerbError(str(error)) from None


def parse_manifest(text: str, notation: str) -> Manifest:
    """Read the first document of a text as an object of a declared type.

    Raises:
        VerbError: not YAML, or a value of the wrong type.
    """
    found = _first_document(text)
    try:
        return shape(found, notation)
    except VerbError as error:
        problem = f"error unmarshaling JSON: while decoding JSON: {error.message}"
        raise VerbError(problem) from None


def _first_document(text: str) -> Any:
    from pumice.api.yaml_text import Builder, compose_all

    try:
        for node in compose_all(text, "<text>"):
            return Builder("<text>").build(node)
    except ManifestError as error:
        problem = f"error converting YAML to JSON: yaml: {_go_fault(text, error)}"
        raise VerbError(problem) from None
    return None


def _go_fault(text: str, error: ManifestError) -> str:
    """Find what is wrong with a text once more, and report it as Go's reader does."""
    import yaml

    from pumice.api.yaml_text import NOT_YAML

    if error.wanted != NOT_YAML:
        return str(error)
    try:
        next(iter(yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))))
    except yaml.MarkedYAMLError as fault:
        line = next(
            (mark.line for mark in (fault.context_mark, fault.problem_mark) if mark and mark.line),
            0,
        )
        if line and isinstance(fault, yaml.scanner.ScannerError):
            line += 1
        return (f"line {line}: " if line else "") + str(fault.problem)
    except (yaml.YAMLError, StopIteration):
        pass
    return str(error)


_API_VERSIONS: Final = {kind.name: kind.api_version for kind in BUILT_IN}


def read_kind(file: str, kind: str, notation: str) -> list[Manifest]:
    """Read the objects of a file, or of standard input for ``-``, all of one kind.

    An object may leave out ``apiVersion`` and ``kind``: the command has said what it is.

    Raises:
        ManifestError: a file that cannot be read or has no object, one of another kind, or a value
            of the wrong type.
    """
    from pumice.api.manifests import load_documents
    from pumice.api.text_files import shown_name

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
    from pumice.webhooks.files import value_at
    from pumice.webhooks.go_types import DecodeError, decode
    from pumice.webhooks.review import unreadable

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
    from pumice.webhooks.fields import path_text
    from pumice.webhooks.files import name_of, resource_name

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
