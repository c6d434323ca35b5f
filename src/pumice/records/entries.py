"""The lines of a record and how they are written: JSON, in pieces that gzip compresses.

docs/record-format.md describes them for other programs.
"""

import zlib
from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec

from pumice.api.json_text import check_depth, is_surely_shallow
from pumice.api.kinds import DEFAULT_QUEUE, SCHEDULER_NAME, Manifest

FORMAT: Final = "pumice-record"
VERSION: Final = 1
MAGIC: Final = b"\x1f\x8b\x08"
"""The first bytes of each piece, as of every gzip file."""
_GZIP: Final = 31
"""The window of zlib that reads and writes gzip."""
_LEVEL: Final = 6
_STEP: Final = 1 << 16
_LAST_SECOND: Final = 253_402_300_799
"""The end of the year 9999, after which there are no dates."""
LARGEST_PIECE: Final = 64 << 20
"""Bytes of a piece once it is taken apart; writers stay far below."""

Place = tuple[str, str, str]
"""Kind, namespace and name of an object."""


class Head(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The first line of a segment."""

    format: str
    version: int
    segment: int
    run: str
    """The same for all segments that one recorder wrote without a break."""
    at: float
    """When the checkpoint was taken that the segment begins with."""
    by: str = ""
    """What wrote it: "scheduler", or "observer" beside one."""
    pumice: str = ""


class Conf(msgspec.Struct, frozen=True, omit_defaults=True):
    """The scheduler configuration from a moment on."""

    text: str
    source: str = ""


class Settings(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Options of a scheduler, besides its configuration, that decide with it."""

    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    names: tuple[str, ...] = (SCHEDULER_NAME,)
    agents: tuple[str, ...] = ()
    assume: bool = False
    """Whether it takes its own writes for done before the cluster shows them."""
    default_queue: str = DEFAULT_QUEUE
    node_selector: tuple[str, ...] = ()
    queue_gates: bool = False
    started_at: float | None = None


class CycleEntry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One cycle of a scheduler: its inputs besides objects, and its decisions."""

    now: float
    steady: float = 0.0
    """The clock that measures how long writes take."""
    binds: dict[str, str] = {}
    evictions: dict[str, str] = {}
    """Pod to the action that evicted it."""
    beneficiaries: dict[str, str] = {}
    """Evicted pod to the one that it makes room for, if any."""
    pipelined: dict[str, str] = {}
    phases: dict[str, str] = {}
    """Pod group to its phase, where it changed."""
    results: list[tuple[str, str, str, str]] = []
    """Writes whose result came with this cycle: what, of which object, its uid, the error."""
    dropped: bool = False
    """Whether nothing of it was written."""
    arriving: list[str] = []
    """Jobs about which nothing was written: their pods were still being created."""
    figures: bool = True
    """Whether the figures of queues were written, if they changed."""
    digest: str = ""
    """Of all decisions, for comparison."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line: what happened at a time.  One of the other fields is set."""

    at: float = 0.0
    put: Manifest | None = None
    """An object as it is from then on."""
    of: Place | None = None
    """The object that ``patch`` changes."""
    patch: dict[str, Any] | None = None
    """A JSON merge patch (RFC 7386)."""
    gone: Place | None = None
    """An object that was deleted."""
    conf: Conf | None = None
    usage: dict[str, dict[str, float] | None] | None = None
    """Measured use of the nodes for which it changed; null for one without."""
    hidden: dict[str, str] | None = None
    """Kinds that the recorder could not read, with the reason."""
    settings: Settings | None = None
    cycle: CycleEntry | None = None
    checkpoint: int | None = None
    """The end of a checkpoint, with how many objects it has."""
    next: int | None = None
    """The segment that has all from here on, if it is whole."""
    note: str = ""
    """What went wrong with the recording, in words."""


class PieceHead(msgspec.Struct, frozen=True):
    """The first line of a piece other than the first one."""

    piece: int


_encoder: Final = msgspec.json.Encoder()
_heads: Final = msgspec.json.Decoder(Head)
_piece_heads: Final = msgspec.json.Decoder(PieceHead)
_entries: Final = msgspec.json.Decoder(Entry)


def line_of(content: Entry | Head | PieceHead) -> bytes:
    """Write a line."""
    return _encoder.encode(content)


def piece_of(first: Head | PieceHead, lines: Iterable[bytes]) -> bytes:
    """Join lines to a piece: a whole gzip member."""
    text = b"\n".join([line_of(first), *lines, b""])
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(text) + packer.flush()


def unpacked_piece(content: memoryview) -> tuple[bytes, int] | None:
    """Return the text of the piece that bytes begin with, and its length; None if it is cut off.

    Raises:
        ValueError: it is no piece.
    """
    opener, texts, room, at = zlib.decompressobj(_GZIP), list[bytes](), LARGEST_PIECE, 0
    while not opener.eof:
        if at >= len(content):
            return None
        step = content[at : at + _STEP]  # what is behind the piece is copied
        at += len(step)
        try:
            texts.append(opener.decompress(step, room))
        except zlib.error as error:
            raise ValueError(str(error)) from None
        room -= len(texts[-1])
        if room <= 0:
            raise ValueError(f"a piece of more than {LARGEST_PIECE >> 20} MiB")
    return b"".join(texts), at - len(opener.unused_data)


def head_of(line: bytes) -> Head:
    """Read the first line of a segment.

    Raises:
        ValueError: it is something else, or of another version.
    """
    try:
        head = _heads.decode(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"not the beginning of a record ({error})") from None
    if head.format != FORMAT:
        raise ValueError(f"a file of format {head.format[:40]!r}, not {FORMAT!r}")
    if head.version != VERSION:
        raise ValueError(f"version {head.version} of the format; this Pumice reads {VERSION}")
    _check_time(head.at)
    return head


def _check_time(at: float) -> None:
    if not 0 <= at <= _LAST_SECOND:
        raise ValueError("a time outside of the years 1970 to 9999")


def piece_number(line: bytes) -> int:
    """Read the first line of a later piece.

    Raises:
        ValueError: it is something else.
    """
    try:
        return _piece_heads.decode(line).piece
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"not the beginning of a piece ({error})") from None


def entry_of(line: bytes) -> Entry:
    """Read any other line.

    Raises:
        ValueError: it is something else.
    """
    try:
        if not is_surely_shallow(line):
            check_depth(line.decode(), "a line")
        entry = _entries.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    _check_time(entry.at)
    if entry.cycle is not None:
        _check_time(entry.cycle.now)
    if entry.settings is not None:
        _check_time(entry.settings.started_at or 0.0)
    if entry.put is not None and not is_object(entry.put):
        raise ValueError("an object without apiVersion, kind or name")
    return entry


def is_object(manifest: Manifest) -> bool:
    """Return whether a mapping says what it is and how it is called."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("namespace") or "", str):
        return False
    words = manifest.get("apiVersion"), manifest.get("kind"), metadata.get("name")
    return all(isinstance(word, str) and word for word in words)
