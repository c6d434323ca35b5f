"""Records at a URL: folders of every store that fsspec reaches, such as S3.

Such a folder is a path of universal-pathlib, which reads as a `Path` does.  A store has no way to
append: the segment that is being written is put there again and again, whole.
"""

import io
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOENT
from pathlib import Path
from typing import Final, cast

from pumice.api.shown_text import without_secrets
from pumice.api.wording import extra_hint
from pumice.errors import InputError, Words

PUT_S: Final = 10.0
"""How often a segment is put into a store while it grows; a large one less often."""
_LARGE: Final = 10 << 20
_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*(?:::[a-z][a-z0-9+.-]*)*):/{1,2}(.*)")
"""As a text has it, or as a `Path` keeps it: with one slash."""
_DISK: Final = frozenset({"file", "local"})
_BUCKETS: Final = frozenset(
    {"abfs", "abfss", "adl", "az", "gcs", "gs", "hdfs", "memory", "oci", "oss", "s3", "s3a"}
)
"""Stores that the user's own credentials or settings locate."""
_SERVERS: Final = frozenset(
    {"ftp", "github", "hf", "http", "https", "sftp", "smb", "ssh", "webdav+http", "webdav+https"}
)
"""Those that are wherever an address says; what else fsspec knows may load code or other files."""
_PASSWORD: Final = re.compile(r"[^/]*:[^/]*@")


def is_url(text: str) -> bool:
    """Return whether a text names a folder of a store rather than one of this machine."""
    return _URL.fullmatch(text) is not None


def is_remote(folder: Path) -> bool:
    """Return whether a folder is one of a store."""
    return not isinstance(folder, Path)


def beside(folder: Path, name: str) -> Path:
    """Return the place that a file in a folder names: a URL, or a path from there.

    The file may be a stranger's, and is not to choose a server that this machine asks.

    Raises:
        InputError: it is the URL of one.
    """
    parts = _URL.fullmatch(name)
    if parts is None:
        return Path(folder.absolute(), name)
    if parts[1] in _SERVERS:
        hint = "name it on the command line, or copy the record"
        raise _no_store(_shown(*parts.groups()), "a server that a file chooses", hint)
    return Path(name)


def located(folder: Path) -> Path:
    """Return a folder at a URL as a path of its store, and others as they are.

    Raises:
        InputError: there is no such store, or what reaches it is not installed.
    """
    parts = _URL.fullmatch(str(folder)) if not is_remote(folder) else None
    if parts is None:
        return folder
    scheme, rest = parts.groups()
    if scheme in _DISK:
        return Path("/", rest)
    url = f"{scheme}://{rest}"
    if scheme not in _BUCKETS | _SERVERS or "::" in rest:
        raise _no_store(_shown(scheme, rest), f"{scheme}://", _KNOWN)
    if _PASSWORD.match(rest):
        hint = "the package of the store finds its credentials itself"
        raise _no_store(_shown(scheme, rest), "a password in it", hint)
    try:
        from upath import UPath  # noqa: PLC0415  (an extra)
    except ImportError:
        raise _no_store(url, "universal-pathlib is not installed", extra_hint("remote")) from None
    try:
        place = UPath(url)
        place.fs.invalidate_cache()
    except ImportError as error:
        raise _no_store(url, str(error), "install the package that it names") from None
    except Exception as error:
        raise _no_store(url, str(error), _KNOWN) from error
    return cast("Path", place)


_KNOWN: Final = "such as s3://, gs://, abfs://, sftp:// or https://, one alone"


def _shown(scheme: str, rest: str) -> str:
    return without_secrets(f"{scheme}://{rest}")


def _no_store(url: str, found: str, hint: str) -> InputError:
    wanted = "a directory, or the URL of one in a store"
    return InputError(wanted=wanted, found=Words(found), file=url, hint=hint)


@contextmanager
def reaching(folder: Path) -> Iterator[None]:
    """Turn every failure of a store into an OSError, as that of a disk is.

    Raises:
        OSError: something failed.
    """
    try:
        yield
    except Exception as error:
        if not is_remote(folder) or (isinstance(error, OSError) and error.strerror):
            raise
        if isinstance(error, FileNotFoundError | NotADirectoryError):  # it states the path alone
            raise FileNotFoundError(ENOENT, "nothing", str(folder)) from None
        # the libraries of stores have errors of their own, such as for missing credentials
        raise OSError(None, f"{type(error).__name__}: {error}", str(folder)) from error


def put(path: Path, content: bytes) -> None:
    """Write an object of a store, whole.

    Raises:
        OSError: it cannot be written.
    """
    with reaching(path):
        path.write_bytes(content)


class Hold:
    """The permission to record to a folder of a store: that of the last recorder counts."""

    def __init__(self, path: Path) -> None:
        """Take it.

        Raises:
            OSError: the store cannot be written to.
        """
        self._path = path
        self._token = secrets.token_hex(8).encode()
        with reaching(path):
            path.parent.mkdir(exist_ok=True)  # no bucket is made
        put(path, self._token)

    def check(self) -> None:
        """Return if nobody else has taken it since.

        Raises:
            OSError: somebody has, or the store cannot be read.
        """
        with reaching(self._path):
            if self._path.read_bytes() != self._token:
                raise OSError(None, "another process has begun to record here", str(self._path))

    def close(self) -> None:
        """Return it."""
        with suppress(OSError):
            self.check()
            with reaching(self._path):
                self._path.unlink(missing_ok=True)


class GrowingObject:
    """An object of a store that is written piece by piece, in memory until it is put there."""

    def __init__(self, path: Path, hold: Hold) -> None:
        """Begin one.

        Raises:
            OSError: somebody else records there.
        """
        self._path = path
        self._hold = hold
        self._content = io.BytesIO()
        self._put_at = self._n_put = 0.0
        hold.check()

    def write(self, piece: bytes) -> None:
        """Append."""
        self._content.write(piece)

    def sync(self, *, is_end: bool = False) -> None:
        """Put all of it into the store, if the last time is long enough ago.

        Raises:
            OSError: somebody else records there, or the store cannot be written to.
        """
        size = self._content.tell()
        wait_s = PUT_S * max(1.0, size / _LARGE)
        if size > self._n_put and (is_end or time.monotonic() - self._put_at >= wait_s):
            self._hold.check()
            put(self._path, self._content.getvalue())
            self._put_at, self._n_put = time.monotonic(), size

    def close(self) -> None:
        """Put the rest and end."""
        self.sync(is_end=True)
