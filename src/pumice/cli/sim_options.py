"""What `pumice sim` and `pumice sweep` share: the options of a run, the folder of results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from pumice.api.output_files import check_writable, make_folder
from pumice.cli.interrupts import INTERRUPTED
from pumice.cli.terminal import echo
from pumice.errors import InputError, Words
from pumice.sim.options import SimulationOptions


def as_options(chosen: dict[str, Any]) -> SimulationOptions:
    """Gather the options that hold for every run."""
    names = ("period", "evicted", "limit", "speed", "late_pods", "start")
    return SimulationOptions(**{name: chosen[name] for name in names})


def prepare_folder(folder: Path, files: Sequence[str], *, parquet: bool) -> None:
    """Make the folder, and find out before the work whether files can be written there.

    Raises:
        OutputError: They cannot.
        InputError: Nothing is installed that writes Parquet.
    """
    if parquet:
        _check_parquet()
    make_folder(folder)
    for name in files:
        check_writable(folder / name)


def _check_parquet() -> None:
    try:
        import pyarrow as pa  # noqa: F401, PLC0415  (an optional library)
    except ImportError:
        raise InputError(
            wanted="pyarrow to write Parquet",
            found=Words("not installed"),
            hint="leave --parquet out",
        ) from None


@contextmanager
def stoppable(what: str) -> Iterator[None]:
    """End with a sentence and an exit code on Ctrl-C, or if there is too little memory."""
    try:
        yield
    except KeyboardInterrupt:
        echo(err=True)
        echo(f"stopped: {what}", err=True)
        raise SystemExit(INTERRUPTED) from None
    except MemoryError:
        raise click.ClickException("out of memory; try --limit") from None
