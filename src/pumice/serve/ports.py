"""The ports of health and metrics: bound at the start, answered from the first connection on.

What answers takes longer to load than all that binds a pod, and nothing waits for it.
"""

import selectors
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Final, Self

from pumice import logs
from pumice.api.text_files import NO_PASSWORD
from pumice.errors import ServiceError
from pumice.serve.options import ProcessOptions, split_address

_BACKLOG: Final = 128
_log = logs.get("endpoints")


@dataclass(frozen=True)
class Port:
    """An address of a process."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    metrics: bool = False
    """Whether metrics are served beside health."""

    def listen(self) -> list[socket.socket]:
        """Bind every address that the host stands for.

        Raises:
            ServiceError: one of them cannot be used.
        """
        with ExitStack() as stack:
            try:
                found = socket.getaddrinfo(
                    self.host or None, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
                )
                bound = [
                    stack.enter_context(_bound(family, address))
                    for family, _, _, _, address in dict.fromkeys(found)
                ]
            except OSError as error:
                problem = f"cannot be listened on: {error.strerror}"
                raise ServiceError(f"{self.host or '*'}:{self.port}", problem) from error
            stack.pop_all()
        return bound


def _bound(family: int, address: tuple[object, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def ports_of(options: ProcessOptions) -> list[Port]:
    """Return the ports as configured, one for both if the address is the same."""
    common, leader = options.common, options.leader
    found: dict[tuple[str, int], Port] = {}
    if common.enable_healthz:
        host, port = split_address(common.healthz_address, "healthz-address")
        tls = tls_context(common.ca_cert_file, common.tls_cert_file, common.tls_private_key_file)
        found[host, port] = Port(host, port, tls)
    if leader is not None and leader.enable_metrics:
        host, port = split_address(leader.listen_address, "listen-address")
        tls = found[host, port].tls if (host, port) in found else None
        found[host, port] = Port(host, port, tls, metrics=True)
    return [*found.values()]


def tls_context(ca_file: str, cert_file: str, key_file: str) -> ssl.SSLContext | None:
    """Serve over TLS if certificate, key and authority are all given, as Volcano does."""
    if not (ca_file and cert_file and key_file):
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cert_file, key_file, NO_PASSWORD)
    return context


Listening = Sequence[tuple[Port, Sequence[socket.socket]]]


class FirstConnection:
    """Listens at once, and starts a server with the first connection; a context manager."""

    def __init__(
        self,
        ports: Sequence[Port],
        serve: Callable[[Listening], AbstractContextManager[object]],
    ) -> None:
        """``serve`` makes the server; it takes the sockets over, with the connections on them."""
        self._ports = ports
        self._serve = serve
        self._stack = ExitStack()
        self._stopping = False
        self._thread = threading.Thread(target=self._wait, name="first-connection", daemon=True)
        self.listening: Listening = ()

    def __enter__(self) -> Self:
        """Listen.

        Raises:
            ServiceError: an address that cannot be used.
        """
        with ExitStack() as stack:
            found = [(port, port.listen()) for port in self._ports]
            for sock in (each for _, sockets in found for each in sockets):
                stack.enter_context(sock)
            self._end, self._wake = socket.socketpair()
            stack.enter_context(self._end)
            stack.enter_context(self._wake)
            self.listening = found
            self._stack = stack.pop_all()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._wake.send(b"x")
        self._thread.join()
        self._stack.close()

    def _wait(self) -> None:
        with selectors.DefaultSelector() as selector:
            for sock in (each for _, sockets in self.listening for each in sockets):
                selector.register(sock, selectors.EVENT_READ)
            selector.register(self._end, selectors.EVENT_READ)
            selector.select()
        if not self._stopping:
            try:
                self._stack.enter_context(self._serve(self.listening))
            except Exception as error:  # noqa: BLE001  # whoever asks for health gets no answer
                _log.error("cannot serve", error=repr(error))
