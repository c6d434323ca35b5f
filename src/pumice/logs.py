"""Log lines of serving processes: like klog's, or one JSON object each, with klog's verbosity.

Used by everything that serves.  ``get`` returns a logger with calls that take values by name;
libraries that log through the standard module come out in the same form.
"""

import fnmatch
import json
import logging
import os
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from pumice.api.shown_text import shown, shown_json, shown_lines

_ROOT: Final = "pumice"
_LETTER: Final = {logging.DEBUG: "I", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E"}
_SEVERITY: Final = {
    logging.DEBUG: "info",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
}


class _Verbosity:
    """How much is logged: one level for all, others for modules by pattern."""

    def __init__(self) -> None:
        self.level = 0
        self.modules: dict[str, int] = {}

    def of(self, name: str) -> int:
        module = name.rpartition(".")[2]
        for pattern, level in self.modules.items():
            if fnmatch.fnmatchcase(module, pattern):
                return level
        return self.level


_VERBOSITY: Final = _Verbosity()


class Logger:
    """A logger of one part of the program; ``v`` returns one that logs only at a verbosity."""

    __slots__ = ("_level", "_logger")

    def __init__(self, logger: logging.Logger, level: int = 0) -> None:
        self._logger = logger
        self._level = level

    def v(self, level: int) -> "Logger":
        """Return this logger for lines from a verbosity on."""
        return Logger(self._logger, level)

    @property
    def enabled(self) -> bool:
        """Whether lines of this verbosity are wanted."""
        return self._level <= _VERBOSITY.of(self._logger.name)

    def info(self, message: str, **values: object) -> None:
        """Log a normal event."""
        if self.enabled:
            self._logger.info(message, extra={"values": values}, stacklevel=2)

    def warning(self, message: str, **values: object) -> None:
        """Log an event that needs attention."""
        self._logger.warning(message, extra={"values": values}, stacklevel=2)

    def error(self, message: str, **values: object) -> None:
        """Log a failure; an exception goes in as ``error``."""
        self._logger.error(message, extra={"values": values}, stacklevel=2)


def get(name: str) -> Logger:
    """Return the logger of a part of the program, such as ``scheduler``."""
    return Logger(logging.getLogger(f"{_ROOT}.{name}"))


def _values(record: logging.LogRecord) -> Mapping[str, object]:
    return getattr(record, "values", {})


class KlogFormatter(logging.Formatter):
    """Lines as klog writes them: ``I0102 15:04:05.000000   12345 file.py:67] message key="value"``.

    Without ``headers`` only the part after the bracket.
    """

    def __init__(self, *, headers: bool = True) -> None:
        super().__init__()
        self._headers = headers

    def format(self, record: logging.LogRecord) -> str:
        """Write one line; newlines within are escaped so that a line stays one."""
        text = shown(record.getMessage())
        for name, value in _values(record).items():
            text += f" {name}={_show(value)}"
        if record.exc_info:
            text += "\n" + shown_lines(self.formatException(record.exc_info))
        if not self._headers:
            return text
        letter = _LETTER.get(record.levelno, "E")
        when = datetime.fromtimestamp(record.created, UTC).astimezone()
        place = f"{record.filename}:{record.lineno}"
        return f"{letter}{when:%m%d %H:%M:%S.%f} {os.getpid():7d} {place}] {text}"


class JsonFormatter(logging.Formatter):
    """Lines as the JSON format of Kubernetes' components: ts, caller, severity, msg and values."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        line: dict[str, Any] = {
            "ts": record.created * 1000,
            "caller": f"{record.filename}:{record.lineno}",
            "severity": _SEVERITY.get(record.levelno, "error"),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        for name, value in _values(record).items():
            plain = isinstance(value, str | int | float | bool | None | list | dict)
            line[name if name not in line else f"{name}_"] = value if plain else str(value)
        if record.exc_info:
            line["stack"] = self.formatException(record.exc_info)
        return shown_json(json.dumps(line, default=str, ensure_ascii=False))


def _show(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    return shown_json(json.dumps(str(value), ensure_ascii=False))


def set_verbosity(level: int, vmodule: Mapping[str, int] | None = None) -> None:
    """Set how much is logged from now on; ``vmodule`` maps patterns of module names to levels."""
    _VERBOSITY.level = level
    _VERBOSITY.modules = dict(vmodule or {})


def set_up(
    *,
    json_lines: bool = False,
    level: int = 0,
    vmodule: Mapping[str, int] | None = None,
    headers: bool = True,
    stream: TextIO | None = None,
) -> None:
    """Send log lines to a stream (standard error by default), in one form."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if json_lines else KlogFormatter(headers=headers))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(_ROOT).setLevel(logging.INFO)
    set_verbosity(level, vmodule)
    threading.excepthook = _log_uncaught


_WARNED: Final[set[str]] = set()


def warn_once(logger: logging.Logger, text: str) -> None:
    """Log a warning unless this process has logged it: several connections have one problem."""
    if text not in _WARNED:
        _WARNED.add(text)
        logger.warning(text)


def _log_uncaught(failure: threading.ExceptHookArgs) -> None:
    """Log the exception that ends a thread, in the same form."""
    if failure.exc_value is not None:
        found = (failure.exc_type, failure.exc_value, failure.exc_traceback)
        logging.getLogger(_ROOT).error("a thread ended", exc_info=found)
