"""Where the command starts: Ctrl-C is handled before anything large is imported."""

from pumice.cli.interrupts import leave_on_interrupt
from pumice.garbage_collection import collect_rarely


def main() -> None:
    """Run the command; Ctrl-C before it starts or after it is done leaves no traceback."""
    leave_on_interrupt()
    collect_rarely()
    from pumice.cli.main import main as command  # noqa: PLC0415 - what Ctrl-C may interrupt

    try:
        command()
    finally:
        leave_on_interrupt()
