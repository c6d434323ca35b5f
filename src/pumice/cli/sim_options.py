"""What `pumice sim`, `pumice sweep` and `pumice trace` share: options, the folder of results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from pumice.api.output_files import check_writable, make_folder
from pumice.api.times import epoch
from pumice.cli.interrupts import INTERRUPTED, heed_interrupt
from pumice.cli.options import FILE, OUTPUT_FORMS, together
from pumice.cli.printing import echo
from pumice.errors import InputError, Words
from pumice.sim.options import FORMATS, SimulationOptions


def _start(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    try:
        return None if text is None else epoch(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


seed_option: Final = click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of everything random.",
)
format_option: Final = click.option(
    "--format",
    "trace_format",
    type=click.Choice(FORMATS),
    help="The kind of trace.  [default: recognised by its content]",
)
simulation_options: Final = together(
    click.option(
        "--nodes",
        metavar="FILE",
        type=FILE,
        help="The cluster: manifests, or openb nodes.  [default: sized for the trace]",
    ),
    format_option,
    click.option(
        "--period",
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        default=1.0,
        show_default=True,
        help="Simulated seconds between two cycles, at least; 0: a cycle begins with each event.",
    ),
    click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N jobs."),
    click.option(
        "--speed",
        metavar="TIMES",
        type=click.FloatRange(min=0, min_open=True),
        default=1.0,
        show_default=True,
        help="How many times faster than in the trace jobs arrive.",
    ),
    click.option(
        "--start",
        metavar="TIME",
        callback=_start,
        help="When the first job arrives, RFC 3339.  [default: as in the trace, else 2024-01-01]",
    ),
    click.option(
        "--late-pods",
        is_flag=True,
        help="Create pods only once their job is admitted, as for Volcano's own jobs.",
    ),
    click.option(
        "--evicted",
        type=click.Choice(["requeue", "restart", "lose"]),
        default="requeue",
        show_default=True,
        help="An evicted pod waits again, its broken gang restarts, or the pod is lost.",
    ),
    click.option("--parquet", is_flag=True, help="Write the tables as Parquet; needs pyarrow."),
)
"""How a workload is run; ``as_options`` gathers them."""


@dataclass(frozen=True)
class Output:
    """How the summary is printed, and the folder that files go to."""

    form: str = "table"
    folder: Path | None = None


def _output(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> Output:
    """Distinguish forms from folders: any other value names the folder, as it always did.

    A misspelt format is refused, unless there is a folder of that name.
    """
    from pumice.api.wording import nearest

    forms = [value for value in values if value in OUTPUT_FORMS]
    folders = [Path(value) for value in values if value not in OUTPUT_FORMS]
    for folder in folders:
        form = nearest(str(folder), OUTPUT_FORMS)
        if form is not None and not folder.exists():
            text = f"'{folder}' is no format; did you mean '{form}'? (--dir names a folder)"
            raise click.BadParameter(text)
    return Output(forms[-1] if forms else "table", folders[-1] if folders else None)


output_options: Final = together(
    click.option(
        "-o",
        "--output",
        metavar="[table|json|yaml|DIR]",
        multiple=True,
        callback=_output,
        help="How to print the summary; any other value is DIR.  [default: table]",
    ),
    click.option(
        "-d",
        "--dir",
        "folder",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where report and tables are written.",
    ),
)
"""Where results go."""


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
        import pyarrow as pa  # noqa: F401  (an optional library)
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
        heed_interrupt()
        echo(err=True)
        echo(f"stopped: {what}", err=True)
        raise SystemExit(INTERRUPTED) from None
    except MemoryError:
        raise click.ClickException("out of memory; try --limit") from None
