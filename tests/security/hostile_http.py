"""Requests that are written to do harm, sent byte by byte as they stand."""

import gzip
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

METHODS: Final = (
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "FOO",
    "PROPFIND", "QUERY", "M-SEARCH", "*",
)  # fmt: skip
SUFFIXES: Final = (
    "/", "//", "/.", "/..", "/../../../../etc/passwd", "//etc/passwd", "/%2fetc%2fpasswd",
    "/%2e%2e/%2e%2e/etc/passwd", "%00", "%00.js", "%ff", "%c0%ae", "%u0041", "%", "%zz", "%25%30",
    "\\..\\..", ";a=b", "?", "?at=", "?at=" + "9" * 5000, "?at=-1", "?at=%ff", "?limit=-1",
    "?limit=" + "9" * 5000, "?watch=1&resourceVersion=" + "9" * 5000 + "&labelSelector=a",
    "?watch=1&timeoutSeconds=1", "?continue=" + "W" * 4000, "?continue=%00",
    "?labelSelector=" + "(" * 3000, "?fieldSelector=a%3Db%2C" * 200, "?cpu=" + "9" * 5000,
    "?cpu=1e999999999", "?a=b" * 500, "?token=x&access_token=x", "?deep&deep&deep", "#x",
    "?%00=%00", "/" + "a" * 7000, "/a" * 2000, "?verbose=" + "x" * 7000,
)  # fmt: skip
HEADERS: Final[tuple[tuple[str, bytes], ...]] = (
    ("bytes in a token", b"Authorization: Bearer \xff\xfe"),
    ("bytes in a cookie", b"Cookie: pumice_session=\xff\xfe"),
    ("bytes in the token of a page", b"X-Pumice-Csrf: \xff"),
    ("bytes in a type", b"Content-Type: \xff/\xfe"),
    ("bytes in what is accepted", b"Accept: \xff"),
    ("basic", b"Authorization: Basic Og=="),
    ("no token", b"Authorization: Bearer"),
    ("only a scheme", b"Authorization: \t"),
    ("many cookies", b"Cookie: " + b"a=b; " * 1500),
    ("odd cookie", b'Cookie: pumice_session="\\"; ;;=; =x'),
    ("a tag", b'If-None-Match: W/"x", *, "'),
    ("ranges", b"Range: bytes=0-0,1-1,-9,99999999999999999999-"),
    ("another method", b"X-HTTP-Method-Override: DELETE"),
    ("another address", b"X-Original-URL: /etc/passwd\r\nX-Rewrite-URL: /etc/passwd"),
    ("a proxy", b"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: evil\r\nForwarded: for=x"),
    ("a socket", b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13"),
    ("HTTP/2", b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM"),
    ("an expectation", b"Expect: 200-maybe"),
    ("one long header", b"X-Long: " + b"a" * 20_000),
    ("many headers", b"\r\n".join(b"X-%d: a" % i for i in range(500))),
    ("types", b"Accept: " + b"application/json;as=Table;v=v1;g=meta.k8s.io," * 100),
    ("folded", b"X-Folded: a\r\n b"),
    ("no name", b": x"),
    ("a space before the colon", b"X-Space : x"),
    ("a lone line break", b"X-Lone: a\nX-Other: b"),
    ("NUL", b"X-Nul: a\x00b"),
)  # fmt: skip
FOREIGN: Final[tuple[tuple[str, bytes], ...]] = (
    ("another host", b"Host: evil.example"),
    ("a host that looks like ours", b"Host: 127.0.0.1.evil.example"),
    ("an address of all", b"Host: 0.0.0.0"),
    ("two hosts", b"Host: localhost\r\nHost: evil.example"),
    ("a login in the host", b"Host: localhost:1@evil.example"),
    ("no host", b""),
    ("another origin", b"Host: localhost\r\nOrigin: https://evil.example"),
    ("no origin", b"Host: localhost\r\nOrigin: null"),
    ("another site", b"Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors"),
    ("another port", b"Host: localhost\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors"),
)
"""Requests that a page of another site makes a browser send."""
_CHUNKED: Final = b"Transfer-Encoding: chunked"
FRAMES: Final[tuple[tuple[str, bytes, bytes], ...]] = (
    ("a negative length", b"Content-Length: -1", b"{}"),
    ("a length in words", b"Content-Length: two", b"{}"),
    ("a signed length", b"Content-Length: +2", b"{}"),
    ("a huge length", b"Content-Length: " + b"9" * 30, b"{}"),
    ("two lengths", b"Content-Length: 2\r\nContent-Length: 20", b"{}"),
    ("a length and chunks", b"Content-Length: 4\r\n" + _CHUNKED, b"0\r\n\r\nGET /x HTTP/1.1\r\n"),
    ("chunks twice", _CHUNKED + b", chunked", b"0\r\n\r\n"),
    ("unknown encoding", b"Transfer-Encoding: xchunked", b"0\r\n\r\n"),
    ("hidden encoding", b"Transfer-Encoding:\x0bchunked", b"0\r\n\r\n"),
    ("a negative chunk", _CHUNKED, b"-1\r\nx\r\n0\r\n\r\n"),
    ("a huge chunk", _CHUNKED, b"f" * 20 + b"\r\nx\r\n"),
    ("a chunk with words", _CHUNKED, b"2;" + b"a" * 9000 + b"\r\n{}\r\n0\r\n\r\n"),
    ("no chunk", _CHUNKED, b"zz\r\n"),
    ("long trailers", _CHUNKED, b"2\r\n{}\r\n0\r\nX: " + b"a" * 20_000 + b"\r\n\r\n"),
)  # fmt: skip
"""Bodies whose ends are unclear: servers before and behind could disagree on them."""


def _deep(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


BODIES: Final[tuple[tuple[str, bytes, bytes], ...]] = (
    ("nothing", b"application/json", b""),
    ("no JSON", b"application/json", b"{'a': 1"),
    ("another value", b"application/json", b"[]"),
    ("null", b"application/json", b"null"),
    ("a number", b"application/json", b"9" * 5000),
    ("large numbers", b"application/json", b'{"a": 1e999, "b": -0.0, "c": 1E-999}'),
    ("no numbers", b"application/json", b'{"a": NaN, "b": Infinity}'),
    ("half a character", b"application/json", b'{"token": "\\ud800", "job": "\\udfff"}'),
    ("NUL", b"application/json", b'{"token": "\\u0000", "action": "\\u0000"}'),
    ("bytes", b"application/json", b"\xff\xfe\x00"),
    ("deep", b"application/json", _deep(200_000)),
    ("wide", b"application/json", b"{" + b",".join(b'"%d":0' % i for i in range(50_000)) + b"}"),
    ("wrong types", b"application/json", json.dumps({
        "token": {"a": 1}, "action": [], "job": 5, "remedy": {}, "drain": [1], "settings": "x",
        "apiVersion": [], "kind": {}, "metadata": 5, "spec": [], "request": 5,
    }).encode()),
    ("another type", b"text/html", b"<script>alert(1)</script>"),
    ("YAML", b"application/yaml", b"a: &a [*a, *a]"),
    ("a bomb of YAML", b"application/yaml", b"a0: &a0 [x]\n" + b"".join(
        b"a%d: &a%d [%s]\n" % (i + 1, i + 1, b", ".join([b"*a%d" % i] * 9)) for i in range(12))),
    ("protobuf", b"application/vnd.kubernetes.protobuf", b"k8s\x00" + b"\xff" * 500),
    ("a JSON patch", b"application/json-patch+json", json.dumps(
        [{"op": "copy", "from": "", "path": f"/x{i}"} for i in range(60)]).encode()),
    ("a merge patch", b"application/merge-patch+json", b'{"spec": null, "metadata": null}'),
    ("a strategic patch", b"application/strategic-merge-patch+json",
     b'{"$patch": "replace", "metadata": {"$retainKeys": 5}}'),
    ("an apply", b"application/apply-patch+yaml", b"- 1"),
    ("a form", b"application/x-www-form-urlencoded", b"token=x&action=delete"),
    ("parts", b"multipart/form-data; boundary=", b"--\r\n\r\n--"),
    ("too large", b"application/json", b'{"a": "' + b"x" * (4 << 20) + b'"}'),
)  # fmt: skip
"""Name, content type and content."""
_SMALL: Final = 10_000
ZIPPED: Final = gzip.compress(b" " * (8 << 20))


@dataclass(frozen=True)
class Sent:
    """One request as bytes; ``head`` are lines beside host and length."""

    path: str
    method: str = "GET"
    host: bytes = b"Host: localhost"
    head: bytes = b""
    body: bytes = b""
    frame: bytes | None = None
    """What states the length of the body; the right one unless given."""

    def data(self) -> bytes:
        """Return it as it is sent."""
        frame = self.frame
        if frame is None:
            frame = b"Content-Length: %d" % len(self.body) if self.body else b""
        lines = (self.host, b"Connection: close", self.head, frame)
        head = b"\r\n".join(line for line in lines if line)
        target = self.path.encode("latin-1")
        return b"%s %s HTTP/1.1\r\n%s\r\n\r\n%s" % (self.method.encode(), target, head, self.body)


def attacks(path: str, method: str, base: Sent) -> Iterator[tuple[str, Sent]]:
    """Yield the names and requests of all attacks on one route."""
    right = replace(base, path=path, method=method)
    for other in METHODS:
        yield f"method {other}", replace(right, method=other)
    for suffix in SUFFIXES:
        yield f"path {suffix:.40}", replace(right, path=f"{path}{suffix}")
    yield "a whole address", replace(right, path=f"http://evil.example{path}")
    yield "no path", replace(right, path="*")
    for name, head in HEADERS:
        yield name, replace(right, head=base.head + b"\r\n" + head if base.head else head)
    writes = replace(right, method=method if method != "GET" else "POST")
    for one in {right.method: right, writes.method: writes}.values():
        for name, frame, body in FRAMES:
            yield name, replace(one, frame=frame, body=body)
        for name, kind, body in BODIES:
            head = b"Content-Type: " + kind
            yield (
                name,
                replace(one, head=base.head + b"\r\n" + head if base.head else head, body=body),
            )
    zipped = b"Content-Type: application/json\r\nContent-Encoding: gzip"
    yield "a bomb", replace(writes, head=zipped, body=ZIPPED)


def small_bodies(path: str, method: str, base: Sent) -> Iterator[tuple[str, Sent]]:
    """Yield the attacks that reach what is behind a route whose server stands all others."""
    right = replace(base, path=path, method=method)
    yield "as it should be", right
    for name, kind, body in BODIES:
        if len(body) < _SMALL:
            yield name, replace(right, head=b"Content-Type: " + kind, body=body)


def send(port: int, request: Sent, tls: ssl.SSLContext | None = None) -> tuple[int, bytes]:
    """Return status and body of the answer, 0 if the connection was closed without one.

    Of an answer that goes on only the first part is read.
    """
    received = b""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=30)) as plain:
        client: Any = plain if tls is None else tls.wrap_socket(plain)
        with suppress(OSError):
            client.sendall(request.data())
        with suppress(ConnectionError):
            while piece := client.recv(1 << 16):
                received += piece
                if len(received) > 8 << 20 or b"text/event-stream" in received:
                    break
    line, _, rest = received.partition(b"\r\n")
    return int(line.split()[1]) if line else 0, rest.partition(b"\r\n\r\n")[2]
