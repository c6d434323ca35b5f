"""What `pumice sim` and `pumice sweep` share: the options of a run, the folder of results."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

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
        InputError: They cannot, or nothing is installed that writes Parquet.
    """
    if parquet:
        _check_parquet()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        for name in files:
            if (path := folder / name).exists():
                path.open("ab").close()
    except OSError as error:
        where = str(error.filename or folder)
        raise InputError(
            wanted="a folder that can be written to", found=Words(error.strerror), file=where
        ) from None


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


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """End with a sentence if files cannot be written."""
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        raise click.ClickException(f"cannot write {where}: {error.strerror or error}") from None
