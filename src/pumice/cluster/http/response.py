"""One HTTP/1.1 response, read from bytes that arrive in any pieces.

Used by connections.  Does no input or output; anything but a plain response is a ValueError.
"""

import re
from typing import Final

import msgspec

_LONGEST_HEAD: Final = 1 << 16
_MOST_HEADERS: Final = 100
_LONGEST_SIZE: Final = 256  # of the line before a chunk, extensions included
_END: Final = b"\r\n\r\n"
_CODING: Final = b"\r\ntransfer-encoding:"
_CONNECTION: Final = b"\r\nconnection:"
_LENGTH: Final = b"\r\ncontent-length:"
_DATE: Final = b"\r\ndate:"
_RETRY_AFTER: Final = b"\r\nretry-after:"
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n]*)?")


class ResponseHead(msgspec.Struct, frozen=True):
    """Status line and headers; without a length the content ends with its connection."""

    status: int
    length: int | None
    chunked: bool
    close: bool
    retry_after_s: float
    date: bytes = b""
    """When the answer was sent, by the server's clock, as it is written there in small letters."""


class ResponseParser:
    """Reads the bytes of one response and returns its content, decoded."""

    __slots__ = ("_buffer", "_content", "_left", "_size", "_taken", "complete", "head")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._content = bytearray()  # not a list: a server may send two bytes at a time
        self._left: int | None = None
        self._size = 0
        self._taken = 0
        self.head: ResponseHead | None = None
        self.complete = False

    @property
    def started(self) -> bool:
        """Whether any bytes have arrived."""
        return self.head is not None or bool(self._buffer)

    @property
    def ready(self) -> int:
        """Bytes of content that can be taken."""
        return self._size - self._taken

    @property
    def held(self) -> int:
        """Bytes of content that have arrived and were not taken, also those of half a chunk."""
        return self.ready + max(len(self._buffer) - _LONGEST_SIZE, 0)

    def feed(self, data: bytes) -> None:
        """Read the next bytes.

        Raises:
            ValueError: this cannot become a response.
        """
        if self.head is None and not self._buffer and self._read_whole(data):
            return
        self._buffer += data
        if self.head is None and not self._read_head():
            return
        if self.head is not None and self.head.chunked and not self.complete:
            self._read_chunks()
        else:
            self._read_plain()

    def end(self) -> str:
        """Record the end of the connection; return what is missing, nothing if all is there."""
        head = self.head
        if head is None:
            return "the connection was closed without an answer"
        if head.length is not None and not self.complete:
            return f"announced {head.length} bytes and sent {self._size}"
        if head.chunked and not self.complete:
            return "the connection was closed in the middle of an answer"
        self.complete = True
        return ""

    def take(self) -> bytes:
        """Return the content decoded since the last call."""
        self._taken = self._size
        content = bytes(self._content)
        self._content.clear()
        return content

    def _read_whole(self, data: bytes) -> bool:
        """Read a response that arrived in one piece, as most do; return whether it is one."""
        end = data.find(_END)
        if not 0 <= end <= _LONGEST_HEAD:
            return False
        head, content = read_head(data[:end]), data[end + len(_END) :]
        if head.length != len(content):
            return False
        self.head, self.complete, self._left = head, True, 0
        self._add(content)
        return True

    def _read_head(self) -> bool:
        """Read status line and headers; return whether they are complete."""
        end = self._buffer.find(_END)
        if end > _LONGEST_HEAD or (end < 0 and len(self._buffer) > _LONGEST_HEAD):
            raise ValueError("its headers are too long")
        if end < 0:
            return False
        self.head = read_head(bytes(self._buffer[:end]))
        self._left = self.head.length
        del self._buffer[: end + len(_END)]
        return True

    def _read_plain(self) -> None:
        """Take everything as content, up to the length announced."""
        if self._left is not None:
            self._left -= len(self._buffer)
            if self._left < 0:
                raise ValueError("more bytes arrived than announced")
            self.complete = self._left == 0
        self._add(self._buffer)
        self._buffer.clear()

    def _read_chunks(self) -> None:
        """Take those chunks that are whole."""
        buffer, start = self._buffer, 0
        while (end := buffer.find(b"\r\n", start, start + _LONGEST_SIZE)) >= 0:
            found = _CHUNK_SIZE.fullmatch(buffer, start, end)
            if found is None:
                raise ValueError("a chunk without a length")
            stop = end + 2 + int(found[1], 16)
            if len(buffer) < stop + 2:
                break
            if buffer[stop : stop + 2] != b"\r\n":
                raise ValueError("a chunk longer than announced")
            self._add(buffer[end + 2 : stop])
            start = stop + 2
            if stop == end + 2:  # the last one is empty
                self.complete, self._left = True, 0
                break
        else:
            if len(buffer) - start >= _LONGEST_SIZE:
                raise ValueError("a chunk without a length")
        del buffer[:start]
        if self.complete and buffer:
            raise ValueError("more bytes arrived than announced")

    def _add(self, piece: bytes | bytearray) -> None:
        self._content += piece
        self._size += len(piece)


def read_head(text: bytes) -> ResponseHead:
    """Read status line and headers.

    Raises:
        ValueError: they are not those of a final HTTP/1.x response.
    """
    if not text.startswith(b"HTTP/1.") or not text[9:12].isdigit():
        raise ValueError("it is not HTTP")
    if text.count(b"\r\n") > _MOST_HEADERS:
        raise ValueError("it has too many headers")
    status = int(text[9:12])
    if status < 200:
        raise ValueError("it is an informational response")
    text = text.lower()  # names and the values used here are the same in any case
    coding = _header(text, _CODING) if _CODING in text else None
    if coding not in (None, b"chunked"):
        raise ValueError("it has an unknown encoding")
    is_empty = status in (204, 304)
    has_length = _LENGTH in text and not coding and not is_empty
    retry_after = _header(text, _RETRY_AFTER) if _RETRY_AFTER in text else b""
    is_last = _CONNECTION in text and _header(text, _CONNECTION) == b"close"
    return ResponseHead(
        status,
        0 if is_empty else _length(_header(text, _LENGTH)) if has_length else None,
        coding is not None and not is_empty,
        is_last or text.startswith(b"http/1.0"),
        float(retry_after) if retry_after.isdigit() else 0.0,
        _header(text, _DATE) if _DATE in text else b"",
    )


def _header(text: bytes, name: bytes) -> bytes:
    """Return the value of a header that there is, the last one if it is repeated."""
    start = text.rfind(name) + len(name)
    end = text.find(b"\r\n", start)
    return text[start : end if end >= 0 else len(text)].strip()


def _length(text: bytes) -> int:
    if not text.isdigit():
        raise ValueError("its length is not a number")
    return int(text)
