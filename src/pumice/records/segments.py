"""The files of a record: segments, each a checkpoint and the changes after it.

A segment is written piece by piece and never changed, except that an old one may be thinned to its
checkpoint.  Reading one yields what is whole, and says what is not and where.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pumice.api.output_files import is_temporary, replacing, sync_folder
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

LOCK: Final = "lock"
_NAME: Final = re.compile(r"([0-9]{8})\.jsonl\.gz")
_LARGEST: Final = 2 << 30
"""Bytes of a segment that is read; a recorder begins another one long before."""
_FIRST_BYTES: Final = 1 << 16
"""Bytes that have the first piece of a segment."""

Report = Callable[[str], None]
"""Takes what cannot be read and its place, in words."""


def segment_name(number: int) -> str:
    """Return the name of the file of a segment."""
    return f"{number:08d}.jsonl.gz"


def segment_files(folder: Path) -> dict[int, Path]:
    """Return the files of a record by number, in order."""
    found = {
        int(match[1]): each for each in folder.iterdir() if (match := _NAME.fullmatch(each.name))
    }
    return dict(sorted(found.items()))


def is_record(path: Path) -> bool:
    """Return whether a path is the folder of a record."""
    return path.is_dir() and any(_NAME.fullmatch(each.name) for each in path.iterdir())


def foreign_names(folder: Path) -> list[str]:
    """Name the files in a folder that do not belong to a record."""
    return sorted(
        each.name
        for each in folder.iterdir()
        if each.name != LOCK and not _NAME.fullmatch(each.name) and not is_temporary(each.name)
    )


class SegmentWriter:
    """Appends pieces to a new segment; what was appended is safe after ``sync``."""

    def __init__(self, folder: Path, head: Head) -> None:
        """Make the file.

        Raises:
            OutputError: it cannot be made.
            OSError: the disk is full or broken.
        """
        self.head = head
        self._folder = folder
        self._pieces = 0
        self.size = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        path = folder / segment_name(head.segment)
        self._file = open_own(path, flags)
        try:
            self.append([])
        except OSError:
            self._file.close()
            path.unlink(missing_ok=True)
            raise

    def append(self, lines: Iterable[bytes]) -> None:
        """Append lines as one piece."""
        first = PieceHead(self._pieces) if self._pieces else self.head
        piece = piece_of(first, lines)
        self._file.write(piece)
        self._pieces += 1
        self.size += len(piece)

    def sync(self) -> None:
        """Return when all of it is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Append no more."""
        self._file.close()


def _content(path: Path) -> bytes:
    """Read a segment.

    Raises:
        InputError: it cannot be read, or is too large.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(
                wanted=f"a segment of at most {_LARGEST >> 30} GiB",
                found=Words("a larger one"),
                file=str(path),
            )
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            wanted="a segment of a record", found=Words(error.strerror), file=str(path)
        ) from None


def read_head(path: Path) -> Head:
    """Read the first line of a segment.

    Raises:
        InputError: there is none, or it is of another version.
    """
    try:
        with path.open("rb") as file:
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


def read_pieces(path: Path, report: Report) -> Iterator[Piece]:
    """Yield the whole pieces of a segment; damaged ones are reported and skipped.

    Raises:
        InputError: it cannot be read at all.
    """
    content = _content(path)
    view, place, expected = memoryview(content), 0, 0
    while place < len(content):
        try:
            found = unpacked_piece(view[place:])
            if found is None:
                report(f"{path}: the end from byte {place} on is cut off and left out")
                return
            first, *lines = found[0].removesuffix(b"\n").split(b"\n")
            number = piece_number(first) if place else _first_number(first)
        except ValueError as error:
            following = content.find(MAGIC, place + 1)
            end = following if following > 0 else len(content)
            report(f"{path}: bytes {place} to {end} left out: {error}")
            place = end
            continue
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


def ends_checkpoint(piece: Piece) -> bool:
    """Return whether the checkpoint of a segment is whole with a piece."""
    try:
        return bool(piece.lines) and entry_of(piece.lines[-1]).checkpoint is not None
    except ValueError:
        return False


_THINNED: Final = line_of(Entry(note="thinned: the changes after this checkpoint were dropped"))


def is_thin(rest: bytes) -> bool:
    """Return whether nothing but the note of thinning follows a checkpoint."""
    found = unpacked_piece(memoryview(rest)) if rest else None
    return not rest or (found is not None and found[0].endswith(_THINNED + b"\n"))


def thin(path: Path) -> bool:
    """Keep of a segment its checkpoint only; return whether it had more.

    Raises:
        OutputError: it cannot be written.
        InputError: it cannot be read.
    """
    content, kept = _content(path), None
    for piece in read_pieces(path, lambda _: None):
        if kept is not None:
            break
        if ends_checkpoint(piece):
            kept = piece
    if kept is None or is_thin(content[kept.end :]):
        return False
    with replacing(path, private=True) as file:
        file.write(content[: kept.end])
        file.write(piece_of(PieceHead(kept.number + 1), [_THINNED]))
    return True


def drop(path: Path) -> None:
    """Delete a segment."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)
