"""NVIDIA's Unified Fabric Manager: the ports of an InfiniBand fabric, read in the background.

Used by the controller of HyperNodes.  Answers are bounded in size and time and not trusted.
"""

import base64
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from pumice import logs
from pumice.errors import HttpError, PumiceError

_PATH: Final = "/ufmRest/resources/ports"
_TIMEOUT_S: Final = 30.0
_MAX_ANSWER: Final = 64 << 20
"""Maximum bytes of an answer; a port takes about a thousand."""
_RETRY_S: Final = 60.0
"""The longest time after which a failed reading is tried again."""
_log = logs.get("ufm")


class Port(msgspec.Struct, frozen=True, gc=False):
    """One end of a cable, with the fields that show which host is connected to which switch."""

    description: str | None = None
    system_name: str | None = None
    peer_node_name: str | None = None


@dataclass(frozen=True, slots=True)
class UfmAccess:
    """Address, credentials and polling interval of the manager."""

    endpoint: str
    username: str = ""
    password: str = field(default="", repr=False)
    verify: bool = True
    authority: str = field(default="", repr=False)
    """Certificates in PEM to trust; the system's unless given."""
    interval_s: float = 3600.0


class Reading(msgspec.Struct, frozen=True):
    """The last ports that were read, None if there are none yet, and the last problem."""

    ports: list[Port] | None = None
    problem: str = ""


class Fabric(Protocol):
    """A source of the ports of a fabric that never blocks."""

    def latest(self, access: UfmAccess) -> Reading:
        """Return the last reading; a new access is read from now on."""

    def forget(self) -> None:
        """Stop asking."""


def read_ports(access: UfmAccess) -> list[Port]:
    """Ask the manager for all ports.

    Raises:
        HttpError: no answer in time, one that is too long, or an unusable one.
    """
    from pumice.cluster.http.blocking import BlockingClient  # noqa: PLC0415 - few have a manager

    client = BlockingClient(access.endpoint, tls=_tls(access))
    user = base64.b64encode(f"{access.username}:{access.password}".encode()).decode()
    try:
        answer = client.request(
            "GET",
            _PATH,
            headers={"Authorization": f"Basic {user}"},
            deadline=time.monotonic() + _TIMEOUT_S,
            cap=_MAX_ANSWER,
        )
    finally:
        client.close()
    if answer.status != 200:
        raise HttpError(answer.url, f"answered with status {answer.status}")
    try:
        return msgspec.json.decode(answer.content, type=list[Port])
    except (msgspec.DecodeError, RecursionError) as error:
        raise HttpError(answer.url, f"expected a JSON list of ports: {error}") from error


def _tls(access: UfmAccess) -> Any:
    """Return the context of a connection, None for one in plain text."""
    if not access.endpoint.startswith("https:"):
        return None
    import ssl  # noqa: PLC0415 - see above

    from pumice.cluster.http.tls import tls_context  # noqa: PLC0415 - see above

    context = tls_context(verify=access.verify)
    if access.authority and access.verify:
        try:
            context = ssl.create_default_context(cadata=access.authority)
        except (ssl.SSLError, ValueError) as error:
            raise HttpError(access.endpoint, "ca.crt: expected certificates in PEM") from error
    return context


class BackgroundUfm:
    """Reads at the interval of the access in a thread, and returns the last reading at once."""

    def __init__(self, read: Callable[[UfmAccess], list[Port]] = read_ports) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._access: UfmAccess | None = None
        self._reading = Reading()
        self._thread: threading.Thread | None = None

    def latest(self, access: UfmAccess) -> Reading:
        """Return the last reading; a new access is read from now on."""
        with self._lock:
            if access != self._access:
                self._access, self._reading = access, Reading()
                self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ufm", daemon=True)
                self._thread.start()
            return self._reading

    def forget(self) -> None:
        """Stop asking; a reading in progress is discarded."""
        with self._lock:
            self._access, self._reading = None, Reading()

    def _run(self) -> None:
        while True:
            self._wake.clear()
            access = self._access
            self._wake.wait(None if access is None else self._take(access))

    def _take(self, access: UfmAccess) -> float:
        """Read once; return the seconds until the next time."""
        before = self._reading
        try:
            reading, pause_s = Reading(self._read(access)), access.interval_s
        except Exception as error:  # noqa: BLE001  # the next reading may do better
            problem = str(error) if isinstance(error, PumiceError) else repr(error)
            reading, pause_s = Reading(before.ports, problem), min(access.interval_s, _RETRY_S)
            _log.warning("cannot read the fabric", endpoint=access.endpoint, error=problem)
        with self._lock:
            if self._access == access:
                self._reading = reading
        return pause_s
