"""Ctrl-C: while a command is imported it ends the process, afterwards it raises."""

import os
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended: 128 and the number of the signal."""
_SOON_S = 0.01


def leave_on_interrupt() -> None:
    """Make Ctrl-C end the process without a traceback; one that ignores it keeps ignoring it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not with nohup
        signal.signal(signal.SIGINT, _leave)


def raise_on_interrupt() -> None:
    """Make Ctrl-C raise KeyboardInterrupt: everything is imported, and commands may tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _interrupt_again


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"Aborted!\n")
    os._exit(INTERRUPTED)  # an import that is cut off leaves nothing to tidy up


def _interrupt_again(lost: "UnraisableHookArgs") -> None:
    """Repeat a Ctrl-C that hit a callback, in which Python cannot raise; soon, outside of it."""
    if lost.exc_type is KeyboardInterrupt:
        threading.Timer(_SOON_S, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(lost)
