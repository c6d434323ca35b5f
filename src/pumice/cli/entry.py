"""Where the command starts: Ctrl-C is looked after before anything large is imported."""

from pumice.cli.interrupts import leave_on_interrupt


def main() -> None:
    """Run the command; Ctrl-C during its imports ends the process without a traceback."""
    leave_on_interrupt()
    from pumice.cli.main import main as command  # noqa: PLC0415 - what Ctrl-C may interrupt

    command()
