"""Ctrl-C: while a command is imported it ends the process, afterwards it raises."""

import os
import signal
import sys
import weakref
from types import FrameType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended: 128 and the number of the signal."""
_SOON_S = 0.01


class _Interrupt(KeyboardInterrupt):
    """Ctrl-C as an exception whose end can be watched."""


_raised: list["weakref.ref[_Interrupt]"] = []
"""The last one, as long as nobody has caught it for good."""


def leave_on_interrupt() -> None:
    """Make Ctrl-C end the process without a traceback; one that ignores it keeps ignoring it."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _raise):  # not with nohup
        signal.signal(signal.SIGINT, _leave)
        _raised.clear()


def raise_on_interrupt() -> None:
    """Make Ctrl-C raise KeyboardInterrupt: everything is imported, and commands may tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, _raise)
        sys.unraisablehook = _keep_quiet


def heed_interrupt() -> None:
    """Note that a KeyboardInterrupt has come to where the command ends because of it."""
    _raised.clear()


def is_interrupted(error: BaseException | None) -> bool:
    """Return whether an error came of a Ctrl-C: Python wraps it while a class is made."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"Aborted!\n")
    os._exit(INTERRUPTED)  # an import that is cut off leaves nothing to tidy up


def _raise(_number: int, _frame: FrameType | None) -> None:
    error = _Interrupt()
    _raised[:] = [weakref.ref(error, _interrupt_again)]
    try:
        raise error
    finally:
        del error  # its traceback has this frame, which would keep it


def _interrupt_again(_: "weakref.ref[_Interrupt]") -> None:
    """Repeat a Ctrl-C that was forgotten, soon and outside of where it was.

    Python cannot raise in callbacks, and libraries in C forget what is raised while they look at an
    object.
    """
    from threading import Timer

    Timer(_SOON_S, os.kill, (os.getpid(), signal.SIGINT)).start()


def _keep_quiet(lost: "UnraisableHookArgs") -> None:
    """Print nothing about a Ctrl-C that hit a callback: it is repeated."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
