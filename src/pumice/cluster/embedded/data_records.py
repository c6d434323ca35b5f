"""Records of a data directory: lines of a checksum and JSON, in plain files of the owner alone.

Used by the data directory, which knows what they mean.  The files may have been damaged, replaced
or made by anybody; reading one returns records of the right form or raises an InputError.
"""

import errno
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from pumice.api.json_text import parse_json
from pumice.api.kinds import Manifest
from pumice.errors import InputError, OutputError, Words

FORMAT: Final = 1
_LONGEST_LINE: Final = 64 << 20
"""Bytes of a record; a request has at most a quarter of it."""
_LAST_SECOND: Final = 253_402_300_799
"""The end of the year 9999, after which there are no dates."""
_DIGITS: Final = re.compile(r"[0-9]{1,18}")


def open_own(path: Path, flags: int) -> BinaryIO:
    """Open a file of a data directory to write it: its owner's alone, and never through a link.

    Raises:
        OutputError: it cannot be opened, or is no plain file.
    """
    try:
        handle = _plain_file(path, flags)
    except OSError as error:
        raise OutputError(error.errno, error.strerror, str(path), "a plain file") from None
    return open(handle, "wb")  # noqa: PTH123  # a descriptor has no path


def _plain_file(path: Path, flags: int) -> int:
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "something else")
    return handle


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers; what has no end is cut into pieces.

    Raises:
        InputError: it cannot be read, or is no plain file.
    """
    try:
        handle = _plain_file(path, os.O_RDONLY)
    except OSError as error:
        found = "a link" if error.errno == errno.ELOOP else error.strerror
        hint = "name another directory"
        raise InputError(
            wanted="a plain file", found=Words(found), file=str(path), hint=hint
        ) from None
    with open(handle, "rb") as file:  # noqa: PTH123
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            yield number, line


def known_head(first: tuple[int, bytes], file: Path) -> dict[str, Any]:
    """Return the head of a snapshot.

    Raises:
        InputError: there is none, or it names another format.
    """
    head = decoded(first[1])
    if not isinstance(head, dict) or "format" not in head:
        raise damaged(file, 1)
    if head["format"] != FORMAT:
        raise InputError(
            wanted=f"data of format {FORMAT}",
            found=Words(f"format {str(head['format'])[:20]}"),
            file=str(file),
            hint="another version of Pumice wrote it; use that one, or name another directory",
        )
    if not (_is_version(head.get("version")) and _is_time(head.get("now"))
            and _is_version(head.get("starts"))):  # fmt: skip
        raise damaged(file, 1)
    return head


def damaged(file: Path, line: int) -> InputError:
    """Return the error about a record that is not what was written."""
    return InputError(
        wanted="a record with its checksum",
        found=Words("something else"),
        file=f"{file}:{line}",
        hint="the file is damaged, or not of 'pumice up --data'; restore it from a copy or start "
        "with another directory",
    )


def _is_version(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= _LAST_SECOND


def is_stored(value: Any) -> bool:
    """Return whether a record is an object as the cluster stores it; its fields may be odd."""
    metadata = _metadata(value)
    owners = metadata.get("ownerReferences") or ()
    return (
        bool(metadata)
        and _is_text(metadata.get("uid"))
        and isinstance(owners, list | tuple)
        and all(isinstance(owner, dict) and _is_text(owner.get("uid")) for owner in owners)
    )


def _metadata(value: Any) -> dict[str, Any]:
    """Return the metadata of an object, empty if it does not say what and where it is."""
    if not (
        isinstance(value, dict) and all(_is_text(value.get(k)) for k in ("apiVersion", "kind"))
    ):
        return {}
    metadata = value.get("metadata")
    if not (isinstance(metadata, dict) and _is_text(metadata.get("name"))):
        return {}
    version, namespace = metadata.get("resourceVersion"), metadata.get("namespace", "")
    if not (isinstance(namespace, str) and isinstance(version, str)):
        return {}
    return metadata if _DIGITS.fullmatch(version) else {}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def log_object(record: Any) -> Manifest | None:
    """Return the object of a record of the log; None if it is no such record."""
    if not (isinstance(record, dict) and _is_time(record.get("at"))):
        return None
    found, what = record.get("object"), record.get("type")
    if what == "DELETED":
        return found if _metadata(found) else None
    return found if what in ("ADDED", "MODIFIED") and is_stored(found) else None


def place_of(manifest: Manifest) -> Manifest:
    """Return the parts needed to find an object that is gone."""
    metadata = manifest["metadata"]
    kept = {
        key: metadata[key] for key in ("name", "namespace", "resourceVersion") if key in metadata
    }
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": kept}


def key_of(manifest: Manifest) -> tuple[str, ...]:
    """Return what tells an object from all others."""
    metadata = manifest["metadata"]
    place = metadata.get("namespace", ""), metadata["name"]
    return manifest["apiVersion"], manifest["kind"], *place


def encoded(content: Any) -> bytes:
    """Write a record as a line."""
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def decoded(line: bytes) -> Any:
    """Read a line; None if it is cut off or its checksum does not fit, no text if not JSON."""
    text = line[9:-1]
    if line[-1:] != b"\n" or line[:9] != b"%08x " % zlib.crc32(text):
        return None
    try:
        found = parse_json(text.decode(), "", unique=False)
    except ValueError:
        return ""
    return "" if found is None else found
