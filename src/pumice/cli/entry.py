"""Where the command starts and ends: Ctrl-C is handled before anything large is imported."""

import os
import sys

from pumice.cli.interrupts import leave_on_interrupt


def main() -> None:
    """Run the command; Ctrl-C before it starts or after it is done leaves no traceback."""
    leave_on_interrupt()
    from pumice.garbage_collection import collect_rarely

    collect_rarely()
    # NumPy would start a thread for each core, which spins; Pumice multiplies one small matrix
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from pumice.cli.main import main as command

    try:
        command()
    except SystemExit as end:
        leave_on_interrupt()
        _end_at_once(end.code)
        raise
    finally:
        leave_on_interrupt()


def _end_at_once(code: str | int | None) -> None:
    """End the process without freeing each object, which takes a sixth of a command's time.

    Return where the usual end has more to do: threads to wait for, a message to print, output that
    cannot be written.
    """
    import atexit
    import threading

    if threading.active_count() > 1 or isinstance(code, str):
        return
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no other name for it
    streams = (sys.stdout, sys.stderr)
    try:
        for stream in streams:
            if stream is not None:  # None where it is closed
                stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code or 0)
