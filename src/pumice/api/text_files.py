"""Files as text: UTF-8 of a bounded size, or one sentence on what is wrong with them.

Used by everything that reads a file written by a user.
"""

import errno
import os
import stat
import sys
from pathlib import Path
from typing import Any, Final

from pumice.errors import InputError, Words

STDIN: Final = Path("-")
"""Names standard input in place of a file."""
_SHOWN_STDIN: Final = Path("<stdin>")
"""Names it in messages; what finds the line of a fault reads it by this name again."""
MOST_BYTES: Final = 1 << 30
"""The largest file that is read; `kubectl get -o yaml` of 100,000 pods takes half of it."""
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
        if is_stdin(path):
            content = _STANDARD_INPUT.read()
        else:
            with path.open("rb") as file:
                content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as fault:
        found = getattr(fault, "strerror", None) or str(fault)
        raise error(wanted="a readable file", found=Words(found), file=name) from None
    if len(content) > MOST_BYTES:
        raise error(wanted=f"at most {MOST_BYTES >> 20:,} MiB", found=Words("more"), file=name)
    return decoded(content, name, error)


def decoded(content: bytes, name: str, error: type[InputError] = InputError) -> str:
    """Return bytes as the text they are; ``name`` is the file for the message."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        foreign = (kind for mark, kind in _FOREIGN if content.startswith(mark))
        line = content.count(b"\n", 0, fault.start) + 1
        found = next(foreign, None) or f"byte 0x{content[fault.start]:02x}"
        raise error(wanted="UTF-8 text", found=Words(found), file=f"{name}:{line}") from None
    return text.replace("\r\n", "\n") if "\r" in text else text  # to look for one is quick


class _StandardInput:
    """Standard input, which can be read once only and is kept for the next reader."""

    def __init__(self) -> None:
        self._stream: object = None
        self._content = b""

    def read(self) -> bytes:
        """Return its bytes; a test may have put another stream in its place."""
        if self._stream is not sys.stdin:
            stream: Any = getattr(sys.stdin, "buffer", sys.stdin)
            self._content = stream.read(MOST_BYTES + 1)
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
