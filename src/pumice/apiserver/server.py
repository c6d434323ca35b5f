"""The API on a socket: HTTP/1.1 on loopback, a thread for each connection.

There is no token, since kubectl sends none without TLS: whoever may connect to the machine's own
address is admitted, but for web pages, which a browser tells by Origin or by a foreign Host.
"""

import select
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from pumice.apiserver.failures import status
from pumice.apiserver.http_messages import JSON, Answer, Request
from pumice.apiserver.rest import RestApi

LOOPBACK: Final = "127.0.0.1"
_NAMES: Final = frozenset({LOOPBACK, "localhost", "[::1]"})
"""What a client may call this machine."""
_BIGGEST: Final = 16 << 20  # bytes of a request


class ApiServer(ThreadingHTTPServer):
    """Serves one API; port 0 takes a free one."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, api: RestApi, *, port: int = 0) -> None:
        self.api = api
        super().__init__((LOOPBACK, port), _Handler)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://{LOOPBACK}:{self.server_port}"

    def start(self) -> None:
        """Serve in a thread of its own."""
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.05}, name="pumice-api"
        )
        self._thread.daemon = True
        self._thread.start()

    def stop(self) -> None:
        """End watches, take no more requests, give the port back."""
        self.api.watches.stop()
        if self._thread is not None:
            self.shutdown()
            self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet about clients that leave in the middle."""


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: ApiServer
    protocol_version = "HTTP/1.1"
    server_version = "pumice"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
        """Write no log."""

    def do_GET(self) -> None:
        """Answer any request; the other methods are the same."""
        request = self._read()
        if request is None:
            return
        answer = self._refuse() or self._answer(request)
        if answer.stream is None:
            self._send(answer)
        else:
            self._send_stream(answer.stream)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815  # names of the base class

    def _read(self) -> Request | None:
        """Read the request with its body, None if that cannot be done."""
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            length = -1
        chunked = "chunked" in (self.headers.get("Transfer-Encoding") or "").lower()
        if chunked or not 0 <= length <= _BIGGEST:
            self.close_connection = True
            said = f"wanted a body of known length up to {_BIGGEST} bytes"
            self._send(Answer(413, status(413, "RequestEntityTooLarge", said)))
            return None
        split = urlsplit(self.path)
        return Request(
            self.command,
            split.path,
            dict(parse_qsl(split.query, keep_blank_values=True)),
            self.headers.get("Accept") or JSON,
            self.headers.get("Content-Type") or JSON,
            self.rfile.read(length) if length else b"",
        )

    def _refuse(self) -> Answer | None:
        """Give the refusal of a request that a web page sent."""
        host = (self.headers.get("Host") or LOOPBACK).rpartition(":")
        name = host[0] if host[2].isdecimal() else "".join(host)
        if name in _NAMES and not self.headers.get("Origin"):
            return None
        return Answer(403, status(403, "Forbidden", "web pages are not served"))

    def _answer(self, request: Request) -> Answer:
        try:
            return self.server.api.answer(request)
        except Exception as error:  # noqa: BLE001  # a fault must not cut the connection
            said = f"{type(error).__name__}: {error}"
            return Answer(500, status(500, "InternalError", said))

    def _send(self, answer: Answer) -> None:
        content = answer.content
        data = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
        self.send_response(answer.code)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _send_stream(self, stream: Iterator[bytes]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", JSON)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for piece in stream:
            if piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            elif self._has_left():
                return
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _has_left(self) -> bool:
        """Say whether the client closed the connection."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
