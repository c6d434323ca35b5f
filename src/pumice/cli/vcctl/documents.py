"""Files of manifests, read as the original reads them, with its messages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pumice.api.kinds import Manifest
from pumice.api.text_files import MOST_BYTES
from pumice.cli.vcctl.verbs import VerbError
from pumice.errors import ManifestError
from pumice.webhooks.go_types import DecodeError, decode


def read_text(file: str) -> str:
    """Read a file.

    Raises:
        VerbError: it cannot be read.
    """
    try:
        if not file:
            raise FileNotFoundError
        with Path(file).open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise VerbError(f"{file}: more than {MOST_BYTES >> 20:,} MiB")
        return content.decode()
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
    from pumice.api.yaml_text import Builder, compose_all  # noqa: PLC0415  (loads YAML)

    try:
        for node in compose_all(text, "<text>"):
            return Builder("<text>").build(node)
    except ManifestError as error:
        problem = f"error converting YAML to JSON: yaml: {_go_fault(text, error)}"
        raise VerbError(problem) from None
    return None


def _go_fault(text: str, error: ManifestError) -> str:
    """Find what is wrong with a text once more, and report it as Go's reader does."""
    import yaml  # noqa: PLC0415  (loading takes longer than most commands)

    from pumice.api.yaml_text import NOT_YAML  # noqa: PLC0415

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
