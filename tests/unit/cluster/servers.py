"""Servers on loopback for the tests beside it: one that answers, one that misbehaves."""

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TLS = Path(__file__).parents[2] / "data" / "tls"
CA_FILE = str(TLS / "cert.pem")
OK = b"HTTP/1.1 200 OK\r\n"


class _Server(ThreadingHTTPServer):
    """Records its requests; ``url`` is its address."""

    daemon_threads, block_on_close = True, False

    def __init__(self, answer: Any) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.asked: list[Any] = []
        self.connections: set[Any] = set()
        self.answer = answer
        self.url = ""


class _Answering(BaseHTTPRequestHandler):
    """Answers as configured, and records its requests."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits for an acknowledgement

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server = self.server
        assert isinstance(server, _Server)
        server.asked.append((self.path, dict(self.headers), body))
        server.connections.add(self.client_address)
        status, answer = server.answer(self.path, self.headers)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        if self.path == "/once":
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = answer  # noqa: N815  the names that http.server looks for

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(answer: Any, *, tls: bool = False) -> Iterator[Any]:
    """Run a server; `answer` makes status and bytes from a path and headers."""
    with _Server(answer) as server:
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CA_FILE, TLS / "key.pem")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def saying(*pieces: Any, hang: bool = False, pause_s: float = 0.0) -> Iterator[Any]:
    """Accept connections, read a little, send raw bytes, and hang or hang up; yield its address."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.settimeout(5)
                    _receive(connection)
                    try:
                        for piece in pieces:
                            connection.sendall(piece)
                            done.wait(pause_s)
                        if hang:
                            done.wait(5)
                    except OSError:
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            done.set()
            with socket.socket() as wake:
                wake.connect(server.getsockname())
                wake.shutdown(socket.SHUT_RDWR)
            server.close()
            thread.join()


def _receive(connection: Any) -> None:
    """Read one request whole: hanging up on unread bytes would reset the connection."""
    head, end, body = connection.recv(65536).partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head) if end else None
    missing = int(length[1]) - len(body) if length else 0
    while missing > 0 and (more := connection.recv(missing)):
        missing -= len(more)


def unused_port() -> Any:
    """Return a port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]
