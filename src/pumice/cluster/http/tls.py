"""TLS settings: trusted authorities, client certificates, and the files of both, reloaded.

Used by clients.  Certificates are replaced on disk while programs run; new connections use the
current files, and a file that cannot be used leaves the settings as they were.
"""

import errno
import logging
import os
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pumice.api.text_files import NO_PASSWORD, read_secret
from pumice.errors import InputError
from pumice.logs import warn_once

log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
"""Maximum rate at which files are checked."""


def tls_context(ca_file: str | None = None, *, verify: bool = True) -> ssl.SSLContext:
    """Make TLS settings: the system's authorities, or only those of a file.

    Raises:
        OSError: the file cannot be read, or holds no certificate.
    """
    context = trusting(read_secret(Path(ca_file))) if ca_file else ssl.create_default_context()
    if not verify:
        text = "certificates are NOT verified: anyone on the network path can read and change all"
        warn_once(log, text)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def trusting(authorities: bytes) -> ssl.SSLContext:
    """Make TLS settings that trust certificates in PEM, and no others.

    Raises:
        OSError: there are none.
    """
    text = authorities.decode("ascii", "ignore")  # notes between certificates are left out
    if not text.strip():
        raise OSError(errno.EINVAL, "no certificates in an empty file")
    return ssl.create_default_context(cadata=text)


def load_client(tls: ssl.SSLContext, pem: bytes) -> None:
    """Use a client certificate, given with its key; the library reads it only from a file.

    Raises:
        OSError: they cannot be read, or do not belong together.
    """
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # readable by its owner alone
        file.write(pem)
        file.flush()
        tls.load_cert_chain(file.name, password=NO_PASSWORD)


class RenewableTls:
    """TLS settings that follow their files; may be used from any thread.

    ``make`` reads the files.  Settings never change once returned: the holder of a connection can
    compare them to see whether it was opened with the current ones.
    """

    def __init__(
        self,
        make: Callable[[], ssl.SSLContext],
        files: Sequence[Path] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the settings.

        Raises:
            OSError, ValueError, InputError: what ``make`` raises.
        """
        self._make = make
        self._files = files
        self._clock = clock
        self._client = b""
        self._lock = threading.Lock()
        self._seen = self._look()
        self._context = make()
        self._next_look = clock() + _LOOK_S
        self._told = ""

    def current(self) -> ssl.SSLContext:
        """Return the settings for a new connection."""
        if self._files and self._clock() >= self._next_look:
            self._follow()
        return self._context

    def look_again(self) -> None:
        """Check the files before the next connection, however recently they were checked."""
        self._next_look = 0.0

    def show(self, pem: bytes) -> None:
        """Use another client certificate from now on, given with its key.

        Raises:
            OSError: it cannot be used; the one before stays.
        """
        with self._lock:
            if pem != self._client:
                self._context = self._made(pem)
                self._client = pem

    def _follow(self) -> None:
        """Make new settings if a file has changed."""
        with self._lock:
            self._next_look = self._clock() + _LOOK_S
            seen = self._look()
            if seen == self._seen:
                return
            try:
                self._context = self._made(self._client)
            except (OSError, ValueError, InputError) as error:
                if str(error) != self._told:
                    log.warning("cannot read certificates, keeping the last ones: %s", error)
                self._told = str(error)
                return
            log.info("certificates changed: %s", ", ".join(map(str, self._files)))
            self._seen, self._told = seen, ""

    def _made(self, client: bytes) -> ssl.SSLContext:
        context = self._make()
        if client:
            load_client(context, client)
        return context

    def _look(self) -> list[tuple[int, ...]]:
        """Return what changes with a file; links are followed, as volumes swap them."""
        return [_state(file) for file in self._files]


def _state(file: Path) -> tuple[int, ...]:
    try:
        found = os.stat(file)  # noqa: PTH116  # the fields
    except (OSError, ValueError):  # none, or a name that no file can have
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
