"""Files as text: UTF-8 of a bounded size, or one sentence on what is wrong with them.

Used by everything that reads a file written by a user.
"""

import errno
import io
import os
import select
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pumice.errors import InputError, Words

STDIN: Final = Path("-")
"""Names standard input in place of a file."""
_SHOWN_STDIN: Final = Path("<stdin>")
"""Names it in messages; what finds the line of a fault reads it by this name again."""
NO_PASSWORD: Final = ""
"""What private keys are loaded with: OpenSSL asks for the password of an encrypted one otherwise,
on the terminal of a server."""
MOST_BYTES: Final = 1 << 30
"""The largest file that is read; `kubectl get -o yaml` of 100,000 pods takes half of it."""
MOST_STREAMED: Final = 256 << 20
"""The most that is read from what has no size: a pipe, a device or standard input may never end."""
_AT_ONCE: Final = 4 << 20
_WRITER_S: Final = 2.0
"""How long a pipe may be without a writer."""
_PAUSE_S: Final = 0.02
_FOREIGN: Final = (
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"\x1f\x8b", "a file packed by gzip"),
)


def shown_name(path: Path) -> str:
    """Return the name of a file, or of standard input, for messages."""
    return str(_SHOWN_STDIN if is_stdin(path) else path)


def is_stdin(path: Path) -> bool:
    """Return whether a path names standard input."""
    return path in (STDIN, _SHOWN_STDIN)


def read_text(path: Path, error: type[InputError] = InputError) -> str:
    """Read a file, or standard input for ``-``, as UTF-8 text; a byte order mark is left out.

    Raises:
        InputError: it cannot be read, is too large or is not such text; raised as ``error``.
    """
    name = shown_name(path)
    try:
        content = _STANDARD_INPUT.read() if is_stdin(path) else read_file(path)
    except (OSError, ValueError) as fault:
        found = getattr(fault, "strerror", None) or str(fault)
        raise error(wanted="a readable file", found=Words(found), file=name) from None
    return decoded(content, name, error)


def read_file(path: Path, most: int = MOST_BYTES, *, is_text: bool = True) -> bytearray:
    """Read a file, or a pipe once something writes to it; of a text, up to a null character.

    Raises:
        OSError: it cannot be read, or is too large.
        ValueError: its name has a null character.
    """
    with open_at_once(path) as file:
        facts = os.fstat(file.fileno())
        most = most if stat.S_ISREG(facts.st_mode) else min(most, MOST_STREAMED)
        if facts.st_size > most:
            raise _too_large(most)
        return _joined(_arriving(file, facts.st_mode), most, is_text=is_text)


def open_at_once(path: Path) -> io.FileIO:
    """Open a file for reading, without waiting; to read yields None where nothing has come yet."""

    def opened(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK | os.O_NOCTTY)

    return open(path, "rb", buffering=0, opener=opened)


def _too_large(most: int) -> OSError:
    """Make the error of a file with more bytes than are read."""
    return OSError(errno.EFBIG, f"more than {most >> 20:,} MiB")


def _joined(pieces: Iterable[bytes], most: int, *, is_text: bool) -> bytearray:
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > most:
            raise _too_large(most)
        if is_text and b"\0" in piece:  # the rest may be without end
            break
    return content


def _arriving(file: io.FileIO, mode: int) -> Iterator[bytes]:
    """Yield what a file holds as it comes; of a pipe without a writer nothing ever does."""
    patience = time.monotonic() + _WRITER_S if stat.S_ISFIFO(mode) else 0.0
    ready = select.poll()
    ready.register(file, select.POLLIN)
    while (piece := file.read(_AT_ONCE)) or piece is None or patience:
        if piece:
            yield piece
        elif piece is None and stat.S_ISREG(mode):
            raise OSError(errno.EAGAIN, "nothing to read yet")  # /proc has such files
        elif piece is None:
            ready.poll()
        elif time.monotonic() > patience:
            raise OSError(errno.EPIPE, "a pipe without a writer")
        else:
            time.sleep(_PAUSE_S)
            continue
        patience = 0.0


def decoded(content: bytes | bytearray, name: str, error: type[InputError] = InputError) -> str:
    """Return bytes as the text they are; ``name`` is the file for the message."""
    text = ""
    try:
        text = content.decode("utf-8-sig")
        place = content.find(b"\0")  # no text has it, and what reads tables takes it for a letter
    except UnicodeDecodeError as fault:
        place = fault.start
    if place >= 0:
        foreign = (kind for mark, kind in _FOREIGN if content.startswith(mark))
        line = content.count(b"\n", 0, place) + 1
        found = next(foreign, None) or f"byte 0x{content[place]:02x}"
        raise error(wanted="UTF-8 text", found=Words(found), file=f"{name}:{line}")
    return text.replace("\r\n", "\n") if "\r" in text else text  # to look for one is quick


class _StandardInput:
    """Standard input, which can be read once only and is kept for the next reader."""

    def __init__(self) -> None:
        self._stream: object = None
        self._content = bytearray()

    def read(self) -> bytearray:
        """Return its bytes; a test may have put another stream in its place."""
        if self._stream is not sys.stdin:
            stream: Any = getattr(sys.stdin, "buffer", sys.stdin)
            pieces = iter(lambda: stream.read(_AT_ONCE), b"")
            self._content = _joined(pieces, MOST_STREAMED, is_text=True)
            self._stream = sys.stdin
        return self._content


_STANDARD_INPUT: Final = _StandardInput()


MOST_SECRET_BYTES: Final = 4 << 20
"""A bundle of all authorities of the world takes a quarter of a megabyte."""


def read_secret(path: Path) -> bytes:
    """Read a token, a certificate or a key.

    Raises:
        OSError: it cannot be read, is no file, or is too large.
    """
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "Not a file", str(path))
        content = file.read(MOST_SECRET_BYTES + 1)
    if len(content) > MOST_SECRET_BYTES:
        raise OSError(errno.EFBIG, f"More than {MOST_SECRET_BYTES >> 20} MiB", str(path))
    return content
