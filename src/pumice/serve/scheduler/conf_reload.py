"""The scheduler configuration file while it may change: checked often, read when it differs.

Used by the scheduler's loop, which asks before each cycle.  A file that cannot be used is
reported once and the last good one stays; so it does when the file is gone.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from pumice import logs
from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf, read_conf
from pumice.api.text_files import read_file
from pumice.errors import ConfError, InputError, Words
from pumice.metrics import Metrics

_T = TypeVar("_T")
_Look = tuple[int, int, int, int, int]

_log = logs.get("reload")
_NOTHING: Final[_Look] = (0, 0, 0, 0, 0)


class ConfFile(Generic[_T]):
    """A configuration file and the value made from its last good version.

    ``build`` turns a configuration into the wanted value and refuses it with ConfError if it has
    problems that stop it.  Without a path the built-in configuration is used; so it is if the first
    file is bad, unless ``strict``.

    A ConfigMap is mounted as a link to a folder that is swapped as a whole: the file is checked
    through its links, so that a swap is seen as any other change.
    """

    def __init__(
        self,
        path: str,
        build: Callable[[SchedulerConf], _T],
        *,
        metrics: Metrics | None = None,
        strict: bool = False,
    ) -> None:
        self._path = path
        self._build = build
        self._metrics = metrics
        self._look = _NOTHING
        self._digest = b""
        self._refused: InputError | None = None
        self.text = DEFAULT_CONF
        """The text of the last good file."""
        self.problem: InputError | None = None
        """The problems of the file as it is now."""
        self._current = self._first(strict=strict)

    @property
    def current(self) -> _T:
        """The value made from the last good file."""
        return self._current

    def latest(self) -> _T:
        """Check the file, then return the value made from the last good one."""
        self.poll()
        return self._current

    def poll(self) -> bool:
        """Check the file; return whether there is a new good one."""
        if not self._path:
            return False
        look = self._seen()
        if look == self._look:
            return False
        self._look = look
        try:
            made = self._read()
        except InputError as error:
            self._report(error)
            return False
        if made is None:
            return False
        self._current = made
        self._good()
        return True

    def _first(self, *, strict: bool) -> _T:
        if not self._path:
            if self._metrics is not None:
                self._metrics.conf_good(is_good=True)
            return self._built_in()
        self._look = self._seen()
        try:
            made = self._read()
        except InputError as error:
            if strict:
                raise
            self._report(error, "using the built-in one")
            made = None
        if made is None:
            return self._built_in()
        self._good()
        return made

    def _built_in(self) -> _T:
        return self._build(parse_conf(DEFAULT_CONF, source="built-in configuration"))

    def _seen(self) -> _Look:
        """Return what changes with the file, nothing if it is missing."""
        try:
            found = os.stat(self._path)  # noqa: PTH116  # the fields, at every cycle
        except OSError:
            return _NOTHING
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _read(self) -> _T | None:
        """Read the file and make the value; None if it is unchanged.

        Raises:
            InputError: it is missing or unusable.
        """
        try:
            content = read_file(Path(self._path))
        except OSError as error:
            found = error.strerror or str(error)
            raise InputError(wanted="a readable file", found=found, file=self._path) from error
        digest = hashlib.sha256(content).digest()
        if digest == self._digest:
            if self._refused is not None:
                raise self._refused
            self.problem = None  # it may have been gone, and is back
            return None
        self._digest, self._refused = digest, None
        try:
            text = _text(content)
            made = self._build(read_conf(text))
        except InputError as error:
            self._refused = error
            if isinstance(error, ConfError):
                self._refused = ConfError(error.problems, file=self._path)
            self._refused.file = self._path
            raise self._refused from error
        self.text = text
        return made

    def _good(self) -> None:
        self.problem = None
        _log.info("configuration loaded", file=self._path)
        if self._metrics is not None:
            self._metrics.conf_reloaded(good=True)

    def _report(self, error: InputError, instead: str = "keeping the last good one") -> None:
        if str(error) == str(self.problem):
            return
        self.problem = error
        if isinstance(error, ConfError):
            _log.error(f"configuration not usable, {instead}", file=self._path)
            for each in error.problems:
                _log.error("configuration problem", file=self._path, problem=each)
        else:
            _log.error(f"configuration not usable, {instead}", error=error)
        if self._metrics is not None:
            self._metrics.conf_reloaded(good=False)


def _text(content: bytearray) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            wanted="text in UTF-8", found=Words(f"a bad byte at {error.start}")
        ) from error
