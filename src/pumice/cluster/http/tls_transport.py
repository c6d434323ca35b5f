"""TLS on a socket of an event loop: encrypted bytes go from the library to the socket and back.

Used for connections to servers.  asyncio's own TLS copies them through buffers in Python, which
costs more than the rest of a request.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final, TypeVar

_P = TypeVar("_P", bound=asyncio.Protocol)

_RECORD: Final = 1 << 14
"""Maximum bytes of a TLS record: a read of as many leaves nothing behind in the library."""
_MOST_RECORDS: Final = 64
"""How many of a long answer are read before other connections have their turn."""


async def open_tls(
    make: Callable[[], _P], host: str, port: int, tls: ssl.SSLContext, server_name: str
) -> _P:
    """Open a connection whose certificate must carry ``server_name``.

    Raises:
        OSError, ValueError: it cannot be opened, or the certificate is not accepted.
    """
    plain = await _connect(host, port)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock = tls.wrap_socket(plain, server_hostname=server_name, do_handshake_on_connect=False)
    except BaseException:
        plain.close()
        raise
    try:
        await _shake_hands(sock)
    except BaseException:
        sock.close()
        raise
    protocol = make()
    TlsTransport(sock, protocol)
    return protocol


class TlsTransport(asyncio.Transport):
    """One connection after its handshake."""

    def __init__(self, sock: ssl.SSLSocket, protocol: asyncio.Protocol) -> None:
        super().__init__({"socket": sock})
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._protocol = protocol
        self._unsent = bytearray()
        self._reads = self._open = True
        self._most_records = 1
        """How many are read at a time: most answers are one, and one in vain costs as much."""
        protocol.connection_made(self)
        self._loop.add_reader(sock.fileno(), self._receive)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes now, and those that the system does not take yet when it does."""
        if not self._open:
            return
        self._most_records = 1
        if not self._unsent:
            data = self._sent(data)
        if data:
            self._unsent += data

    def is_closing(self) -> bool:
        """Return whether it is closed."""
        return not self._open

    def is_reading(self) -> bool:
        """Return whether received bytes are delivered."""
        return self._reads and self._open

    def pause_reading(self) -> None:
        """Leave further bytes with the system, where records gather."""
        if self.is_reading():
            self._reads = False
            self._loop.remove_reader(self._sock.fileno())

    def resume_reading(self) -> None:
        """Deliver bytes again."""
        if self._open and not self._reads:
            self._reads = True
            self._loop.add_reader(self._sock.fileno(), self._receive)

    def close(self) -> None:
        """End the connection at once; nobody waits for bytes that are not sent yet."""
        self._end(None)

    def abort(self) -> None:
        """End the connection at once."""
        self._end(None)

    def _receive(self) -> None:
        pieces: list[bytes] = []
        ended, error = False, None
        try:
            while len(pieces) < self._most_records and not ended:
                pieces.append(self._sock.recv(_RECORD))
                ended = not pieces[-1]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError as found:
            ended, error = True, found
        self._most_records = _MOST_RECORDS  # what follows belongs to a long answer
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if data:
            self._protocol.data_received(data)
        if ended:
            self._end(error)

    def _sent(self, data: bytes | bytearray | memoryview) -> bytes | bytearray | memoryview:
        """Send bytes, a record at a time; return those that the system does not take yet."""
        try:
            while data:
                data = data[self._sock.send(data) :]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            self._loop.add_writer(self._sock.fileno(), self._send_rest)
        except OSError as error:
            self._end(error)
            return b""
        return data

    def _send_rest(self) -> None:
        self._loop.remove_writer(self._sock.fileno())
        self._unsent = bytearray(self._sent(self._unsent))

    def _end(self, error: Exception | None) -> None:
        if not self._open:
            return
        self._open = False
        self._loop.remove_reader(self._sock.fileno())
        self._loop.remove_writer(self._sock.fileno())
        self._sock.close()
        self._loop.call_soon(self._protocol.connection_lost, error)


async def _connect(host: str, port: int) -> socket.socket:
    """Connect to the first address of a host that answers."""
    loop = asyncio.get_running_loop()
    try:  # a number needs no thread that waits for a name server
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failures: list[OSError] = []
    for family, kind, number, _, address in found:
        sock = socket.socket(family, kind, number)
        sock.settimeout(0.0)
        try:
            await loop.sock_connect(sock, address)
        except OSError as error:
            sock.close()
            failures.append(error)
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failures[0]


async def _shake_hands(sock: ssl.SSLSocket) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            sock.do_handshake()
        except ssl.SSLWantReadError:
            watch, ignore = loop.add_reader, loop.remove_reader
        except ssl.SSLWantWriteError:
            watch, ignore = loop.add_writer, loop.remove_writer
        else:
            return
        ready = asyncio.Event()
        watch(sock.fileno(), ready.set)
        try:
            await ready.wait()
        finally:
            ignore(sock.fileno())
