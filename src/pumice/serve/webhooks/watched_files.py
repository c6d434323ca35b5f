"""Files the server reads and reads again when they change: its certificate, its configuration.

A change is seen through links, so that a mounted ConfigMap or Secret that is swapped counts.
"""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

import yaml

from pumice import logs
from pumice.errors import InputError
from pumice.webhooks.review import ResourceGroup, read_groups

_T = TypeVar("_T")
_Look = tuple[tuple[int, int, int], ...]
_log = logs.get("webhooks")
CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


class ReloadedFiles(Generic[_T]):
    """What was last made of some files; a bad version is reported and the last good one stays."""

    def __init__(self, paths: Sequence[str], read: Callable[[], _T], first: _T) -> None:
        self._paths = paths
        self._read = read
        self._look: _Look = ()
        self.current = first
        self.refresh()

    def refresh(self) -> None:
        """Look at the files and read them if they are not as they were."""
        try:
            look = tuple(_look(path) for path in self._paths)
            if look == self._look:
                return
            self._look = look
            self.current = self._read()
        except (OSError, ValueError, yaml.YAMLError) as error:
            _log.error("cannot read", files=", ".join(self._paths), error=error)


def _look(path: str) -> tuple[int, int, int]:
    found = Path(path).stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def watch_groups(path: str) -> ReloadedFiles[tuple[ResourceGroup, ...] | None]:
    """Read the resource groups of pods; without a file there are none, and pods stay untouched."""
    if not path:
        return ReloadedFiles((), lambda: None, None)
    return ReloadedFiles(
        (path,), lambda: read_groups(yaml.safe_load(Path(path).read_text(encoding="utf-8"))), None
    )


def watch_certificate(cert_file: str, key_file: str) -> ReloadedFiles[ssl.SSLContext]:
    """Make the rules of TLS; a new certificate holds for connections made after it came.

    Raises:
        InputError: there is no certificate to begin with.
    """
    for flag, path in (("tls-cert-file", cert_file), ("tls-private-key-file", key_file)):
        if not path or not Path(path).is_file():
            raise InputError(field=f"--{flag}", wanted="a file for HTTPS", found=path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    try:
        context.load_cert_chain(cert_file, key_file)
    except (OSError, ValueError) as error:
        hint = str(error)
        raise InputError(
            field="--tls-cert-file", wanted="a certificate and its key", found=cert_file, hint=hint
        ) from None

    def read() -> ssl.SSLContext:
        context.load_cert_chain(cert_file, key_file)
        return context

    return ReloadedFiles((cert_file, key_file), read, context)
