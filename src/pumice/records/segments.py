"""The files of a record: segments, each a checkpoint and the changes after it.

A segment is written piece by piece and never changed, except that an old one may be thinned to its
checkpoint.  Reading one yields what is whole, and says what is not and where.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path
from typing import Final

from pumice.api.output_files import is_temporary, sync_folder, write_file
from pumice.cluster.embedded.data_records import open_own
from pumice.errors import InputError, Words
from pumice.records.entries import (
    MAGIC,
    Entry,
    Head,
    PieceHead,
    entry_of,
    head_of,
    line_of,
    piece_number,
    piece_of,
    unpacked_piece,
)
from pumice.records.stores import GrowingObject, Hold, is_remote, located, put, reaching

LOCK: Final = "lock"
_NAME: Final = re.compile(r"[0-9]{8}\.jsonl\.gz")
_LARGEST: Final = 2 << 30
"""Bytes of a segment that is read; a recorder begins another one long before."""
_AT_ONCE: Final = 16 << 20
_LEAST_TEXT: Final = 256 << 20
_MOST_TEXT: Final = 200
"""Bytes of text that a larger segment may have for each of its own; objects have 10 to 90."""
_LEAST_PARTS: Final = 1_000_000
_MOST_PARTS: Final = 4
"""Mappings and lists, likewise; objects have up to 2."""
_LEAST_LINES: Final = 200_000
_LEAST_OF_A_LINE: Final = 6
"""Bytes that a line takes at least in a larger segment; a change of a pod takes 15."""
_MOST_DAMAGED: Final = 1000
"""Places at which a piece is looked for in vain; each may take long to be found damaged."""
_FIRST_BYTES: Final = 1 << 16
"""Bytes that have the first piece of a segment."""

BACK_S: Final = 2.0
"""By how much times of a segment go back at most; a clock that is put back further ends it."""

Report = Callable[[str], None]
"""Takes what cannot be read and its place, in words."""


def segment_name(number: int) -> str:
    """Return the name of the file of a segment."""
    return f"{number:08d}.jsonl.gz"


def segment_files(folder: Path) -> dict[int, Path]:
    """Return the files of a record by number, in order."""
    found = {int(each.name[:8]): each for each in folder.iterdir() if _is_segment(each)}
    return dict(sorted(found.items()))


def _is_segment(path: Path) -> bool:
    """Return whether a path is a segment by its name, and no pipe or device of that name."""
    return bool(_NAME.fullmatch(path.name)) and (is_remote(path) or path.is_file())


def is_record(path: Path) -> bool:
    """Return whether a path is the folder of a record; one of a store can be nothing else."""
    if ":/" in str(path) and is_remote(path := located(path)):
        return True
    return path.is_dir() and any(map(_is_segment, path.iterdir()))


def foreign_names(folder: Path) -> list[str]:
    """Name the files in a folder that do not belong to a record."""
    return sorted(
        each.name
        for each in folder.iterdir()
        if each.name != LOCK and not _NAME.fullmatch(each.name) and not is_temporary(each.name)
    )


class SegmentWriter:
    """Appends pieces to a new segment; what was appended is safe after ``sync``."""

    def __init__(self, folder: Path, head: Head, hold: Hold | None = None) -> None:
        """Make the file, or with a ``hold`` the object of a store.

        Raises:
            OutputError: it cannot be made.
            OSError: the disk is full or broken.
        """
        self.head = head
        self._pieces = 0
        self.size = self._synced = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self._path = path = folder / segment_name(head.segment)
        self._file = GrowingObject(path, hold) if hold is not None else open_own(path, flags)
        try:
            self.append([])
        except OSError:
            self.discard()
            raise

    def append(self, lines: Iterable[bytes]) -> None:
        """Append lines as one piece."""
        first = PieceHead(self._pieces) if self._pieces else self.head
        piece = piece_of(first, lines)
        self._file.write(piece)
        self._pieces += 1
        self.size += len(piece)

    def sync(self) -> None:
        """Return when all of it is on the disk, or nearly all in the store."""
        if isinstance(self._file, GrowingObject):
            self._file.sync()
        elif self.size > self._synced:
            self._file.flush()
            os.fsync(self._file.fileno())
            if not os.fstat(self._file.fileno()).st_nlink:
                raise FileNotFoundError(ENOENT, "it was deleted", str(self._path))
            self._synced = self.size

    def close(self) -> None:
        """Append no more."""
        self._file.close()

    def discard(self) -> None:
        """Remove it: without a whole checkpoint it is of no use, and not yet in a store."""
        if not isinstance(self._file, GrowingObject):
            with suppress(OSError):
                self._file.close()
            with suppress(OSError):
                drop(self._path)


def _content(path: Path) -> bytearray:
    """Read a segment.

    Raises:
        InputError: it cannot be read, or is too large.
    """
    try:
        with reaching(path), path.open("rb") as file:
            content = bytearray()
            while len(content) <= _LARGEST and (more := file.read(_AT_ONCE)):
                content += more  # a store may not tell the size
    except OSError as error:
        raise InputError(
            wanted="a segment of a record", found=Words(error.strerror), file=str(path)
        ) from None
    if len(content) <= _LARGEST:
        return content
    raise InputError(
        wanted=f"a segment of at most {_LARGEST >> 30} GiB",
        found=Words("a larger one"),
        file=str(path),
    )


def read_head(path: Path) -> Head:
    """Read the first line of a segment.

    Raises:
        InputError: there is none, or it is of another version.
    """
    try:
        with reaching(path), path.open("rb", buffering=_FIRST_BYTES) as file:
            piece = unpacked_piece(memoryview(file.read(_FIRST_BYTES)))
        return head_of(piece[0].partition(b"\n")[0] if piece is not None else b"")
    except OSError as error:
        found = Words(error.strerror)
    except ValueError as error:
        found = Words(str(error))
    raise InputError(wanted="a segment of a record", found=found, file=str(path)) from None


@dataclass(frozen=True)
class Piece:
    """The lines of a piece, where it begins in the file and where it ends."""

    number: int
    lines: list[bytes]
    start: int
    end: int


def _first_number(line: bytes) -> int:
    head_of(line)  # or it is no segment
    return 0


def read_pieces(path: Path, report: Report, after: Piece | None = None) -> Iterator[Piece]:
    """Yield the whole pieces of a segment, or those after one; damaged ones are reported.

    Raises:
        InputError: it cannot be read at all.
    """
    content = _content(path)
    view = memoryview(content)
    place, expected = (0, 0) if after is None else (after.end, after.number + 1)
    most_text = max(_LEAST_TEXT, _MOST_TEXT * len(content))
    most_parts = max(_LEAST_PARTS, _MOST_PARTS * len(content))
    most_lines = max(_LEAST_LINES, len(content) // _LEAST_OF_A_LINE)
    text = parts = n_lines = damaged = 0
    while place < len(content):
        try:
            found = unpacked_piece(view[place:])
            if found is None:
                report(f"{path}: the end from byte {place} on is cut off and left out")
                return
            first, *lines = found[0].removesuffix(b"\n").split(b"\n")
            number = piece_number(first) if place else _first_number(first)
        except ValueError as error:
            damaged += 1
            following = content.find(MAGIC, place + 1) if damaged < _MOST_DAMAGED else -1
            end = following if following > 0 else len(content)
            report(f"{path}: bytes {place} to {end} left out: {error}")
            place = end
            continue
        text += len(found[0])
        parts += found[0].count(b"{") + found[0].count(b"[")
        n_lines += len(lines)
        if text > most_text or parts > most_parts or n_lines > most_lines:
            report(f"{path}: from byte {place} on left out: far too much for the size of the file")
            return
        if number != expected:
            report(f"{path}: byte {place}: pieces {expected} to {number - 1} are missing")
        expected = number + 1
        yield Piece(number, lines, place, place + found[1])
        place += found[1]


def read_entries(path: Path, report: Report) -> Iterator[Entry]:
    """Yield the lines of a segment after its head; bad ones are reported and skipped.

    Raises:
        InputError: it cannot be read at all.
    """
    for piece in read_pieces(path, report):
        yield from entries_of(piece, path, report)


def entries_of(piece: Piece, path: Path, report: Report) -> Iterator[Entry]:
    """Yield the lines of a piece; bad ones are reported and skipped."""
    for line in piece.lines:
        try:
            yield entry_of(line)
        except ValueError as error:
            report(f"{path}: piece {piece.number}: a line left out: {error}")


def checkpoint_of(piece: Piece) -> int | None:
    """Return how many objects the checkpoint has that ends with a piece; None if none does."""
    try:
        return entry_of(piece.lines[-1]).checkpoint if piece.lines else None
    except ValueError:
        return None


_THINNED: Final = line_of(Entry(note="thinned: the changes after this checkpoint were dropped"))


def thin(path: Path) -> int | None:
    """Keep of a segment its checkpoint only; return how many objects that has, if it is whole.

    The empty one with which a run begins is not kept: there were objects, which came right after
    it.  Then the cluster is as it was known before.

    Raises:
        OutputError: it cannot be written.
        InputError: it cannot be read.
    """
    content = _content(path)
    start = kept = count = None
    for piece in read_pieces(path, lambda _: None):
        if piece.lines == [_THINNED]:
            return count or 0
        if kept is not None:
            break
        start = piece if start is None else start
        count = checkpoint_of(piece)
        if count is not None:
            kept = piece if count else start
    if kept is not None and kept.end < len(content):
        note = piece_of(PieceHead(kept.number + 1), [_THINNED])
        _replace(path, bytes(content[: kept.end]) + note)
    return count


def _replace(path: Path, content: bytes) -> None:
    if is_remote(path):
        put(path, content)
    else:
        write_file(path, content, private=True)


def drop(path: Path) -> None:
    """Delete a segment."""
    path.unlink(missing_ok=True)
    if not is_remote(path):
        sync_folder(path.parent)
