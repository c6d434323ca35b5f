"""Where the command starts: Ctrl-C is looked after before anything large is imported."""

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended: 128 and the number of the signal."""


def main() -> None:
    """Run the command; Ctrl-C during its imports ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not with nohup
        signal.signal(signal.SIGINT, _leave)
    from pumice.cli.main import main as command  # noqa: PLC0415 - what Ctrl-C may interrupt

    command()


def raise_on_interrupt() -> None:
    """Let Ctrl-C raise KeyboardInterrupt: everything is imported, and commands may tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"Aborted!\n")
    os._exit(INTERRUPTED)  # an import that is cut off leaves nothing to tidy up
