"""What goes wrong while a command runs on, printed as it happens."""

import logging
from typing import Any

from pumice.logs import KlogFormatter


class _OneLine(KlogFormatter):
    """Writes a failure without its traceback."""

    def formatException(self, _: Any) -> str:  # noqa: N802  # the name of the base class
        return ""

    def format(self, record: logging.LogRecord) -> str:
        return f"error: {super().format(record)}".rstrip()


def print_failures() -> None:
    """Print failures from now on, such as of a plugin or a disk."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.ERROR)
    handler.setFormatter(_OneLine(headers=False))
    logging.getLogger("pumice").addHandler(handler)
