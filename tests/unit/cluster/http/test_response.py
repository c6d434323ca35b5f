"""Reading responses: the same in one piece and byte by byte; nothing but a plain one is read."""

import tracemalloc

import pytest

from pumice.cluster.http.response import ResponseHead, ResponseParser, read_head

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LONGEST_HEAD = 1 << 16
LONGEST_SIZE = 256


def fed(*pieces: bytes) -> ResponseParser:
    parser = ResponseParser()
    for piece in pieces:
        parser.feed(piece)
    return parser


def bytewise(text: bytes) -> list[bytes]:
    return [text[i : i + 1] for i in range(len(text))]


def test_content_in_tiny_chunks_takes_little_more_than_its_size() -> None:
    tracemalloc.start()
    try:
        parser = fed(CHUNKED, b"2\r\nhi\r\n" * 200_000)
        assert tracemalloc.get_traced_memory()[0] < 4_000_000
    finally:
        tracemalloc.stop()
    assert parser.take() == b"hi" * 200_000


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (OK + b"Content-Length: 2\r\n\r\nhi", b"hi"),
        (OK + b"Content-Length: 0\r\n\r\n", b""),
        (OK + b"X-Content-Length: 9\r\ncontent-LENGTH:2 \r\n\r\nhi", b"hi"),
        (CHUNKED + b"0\r\n\r\n", b""),
        (CHUNKED + b"1\r\nh\r\n0\r\n\r\n", b"h"),
        (CHUNKED + b"2 ;a=b\r\nhi\r\n1\r\n!\r\n0\r\n\r\n", b"hi!"),
        (CHUNKED + b"A\r\n0123456789\r\n00\r\n\r\n", b"0123456789"),
        (CHUNKED + b"4\r\n\r\n\r\n\r\n0\r\n\r\n", b"\r\n\r\n"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", b""),
    ],
)
@pytest.mark.parametrize("in_one_piece", [True, False])
def test_a_response_is_complete_with_its_last_byte(
    text: bytes, content: bytes, in_one_piece: bool
) -> None:
    parser = fed(*([text] if in_one_piece else bytewise(text)))
    assert parser.complete
    assert parser.started
    assert (parser.ready, parser.held) == (len(content), len(content))
    assert parser.take() == content
    assert (parser.ready, parser.held) == (0, 0)
    assert parser.take() == b""
    assert parser.end() == ""
    assert not fed(text[:-1]).complete
    with pytest.raises(ValueError, match="more bytes arrived than announced"):
        parser.feed(b"x")
    with pytest.raises(ValueError, match="more bytes arrived than announced"):
        fed(text + b"x")


def test_content_without_a_length_ends_with_the_connection() -> None:
    parser = fed(OK + b"\r\nhi", b" you")
    assert not parser.complete
    assert parser.take() == b"hi you"
    assert parser.end() == ""
    assert parser.complete


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (b"", "the connection was closed without an answer"),
        (OK, "the connection was closed without an answer"),
        (OK + b"Content-Length: 3\r\n\r\nhi", "announced 3 bytes and sent 2"),
        (CHUNKED + b"2\r\nhi\r\n", "the connection was closed in the middle of an answer"),
    ],
)
def test_what_is_missing_when_the_connection_ends(text: bytes, missing: str) -> None:
    parser = fed(text)
    assert parser.started == bool(text)
    assert parser.end() == missing
    assert not parser.complete


@pytest.mark.parametrize("in_one_piece", [True, False])
def test_headers_may_be_so_long_and_no_longer(in_one_piece: bool) -> None:
    def head(length: int) -> bytes:
        start = OK + b"Content-Length: 2\r\nX: "
        return start + b"x" * (length - len(start)) + b"\r\n\r\n"

    def read(text: bytes) -> ResponseParser:
        return fed(text) if in_one_piece else fed(text[:-6], text[-6:])

    assert read(head(LONGEST_HEAD) + b"hi").take() == b"hi"
    with pytest.raises(ValueError, match="its headers are too long"):
        read(head(LONGEST_HEAD + 1) + b"hi")
    assert not fed(b"x" * LONGEST_HEAD).complete
    with pytest.raises(ValueError, match="its headers are too long"):
        fed(b"x" * (LONGEST_HEAD + 1))


def test_there_may_be_so_many_headers_and_no_more() -> None:
    assert read_head(OK + b"\r\n".join([b"X: y"] * 100)).status == 200
    with pytest.raises(ValueError, match="it has too many headers"):
        read_head(OK + b"\r\n".join([b"X: y"] * 101))


@pytest.mark.parametrize("before", [b"", b"2\r\nhi\r\n"])
def test_the_line_before_a_chunk_may_be_so_long_and_no_longer(before: bytes) -> None:
    def line(length: int) -> bytes:
        return b"1;" + b"x" * (length - 2)

    end = b"\r\n!\r\n0\r\n\r\n"
    assert fed(CHUNKED + before + line(LONGEST_SIZE - 2) + end).complete
    with pytest.raises(ValueError, match="a chunk without a length"):
        fed(CHUNKED + before + line(LONGEST_SIZE - 1) + end)
    assert not fed(CHUNKED + before + line(LONGEST_SIZE - 1)).complete
    with pytest.raises(ValueError, match="a chunk without a length"):
        fed(CHUNKED + before + line(LONGEST_SIZE))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"hello\r\n\r\n", "it is not HTTP"),
        (b"XTTP/1.1 200 OK\r\n\r\n", "it is not HTTP"),
        (b"HTTP/1.1 2x0 OK\r\n\r\n", "it is not HTTP"),
        (b"HTTP/1.1 199 no\r\n\r\n", "it is an informational response"),
        (OK + b"Content-Length: 2x\r\n\r\nhi", "its length is not a number"),
        (OK + b"Content-Length: 2\nX: y\r\n\r\nhi", "its length is not a number"),
        (OK + b"Content-Length: 2\rX: y\r\n\r\nhi", "its length is not a number"),
        (OK + b"Transfer-Encoding: gzip\r\n\r\n", "it has an unknown encoding"),
        (CHUNKED + b"zz\r\n", "a chunk without a length"),
        (CHUNKED + b"-2\r\n", "a chunk without a length"),
        (CHUNKED + b"2\r\nhi!\r\n", "a chunk longer than announced"),
        (CHUNKED + b"2\r\nhi\n\n", "a chunk longer than announced"),
    ],
)
def test_anything_else_is_refused_with_its_problem(text: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        fed(text)
    with pytest.raises(ValueError, match=problem):
        fed(*bytewise(text))


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (OK[:-2], ResponseHead(200, None, False, False, 0.0)),
        (b"HTTP/1.0 200 OK", ResponseHead(200, None, False, True, 0.0)),
        (OK + b"Connection: Close", ResponseHead(200, None, False, True, 0.0)),
        (OK + b"Connection: keep-alive", ResponseHead(200, None, False, False, 0.0)),
        (OK + b"CONTENT-LENGTH:\t7 ", ResponseHead(200, 7, False, False, 0.0)),
        (OK + b"Transfer-Encoding: chunked", ResponseHead(200, None, True, False, 0.0)),
        (
            OK + b"Transfer-Encoding: chunked\r\nContent-Length: 7",
            ResponseHead(200, None, True, False, 0.0),
        ),
        (b"HTTP/1.1 429 no\r\nRetry-After: 3", ResponseHead(429, None, False, False, 3.0)),
        (b"HTTP/1.1 429 no\r\nRetry-After: soon", ResponseHead(429, None, False, False, 0.0)),
        (OK + b"Date: Thu, 01", ResponseHead(200, None, False, False, 0.0, b"thu, 01")),
        (b"HTTP/1.1 204 no\r\nContent-Length: 7", ResponseHead(204, 0, False, False, 0.0)),
        (b"HTTP/1.1 205 no\r\nContent-Length: 7", ResponseHead(205, 7, False, False, 0.0)),
        (b"HTTP/1.1 305 no\r\nContent-Length: 7", ResponseHead(305, 7, False, False, 0.0)),
    ],
)
def test_a_head_shows_how_its_content_ends(text: bytes, head: ResponseHead) -> None:
    assert read_head(text) == head
