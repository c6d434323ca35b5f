"""Options that `pumice sim`, `pumice sweep` and `pumice trace` share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pumice.sim.options import FORMATS

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT_FORMS: Final = ("table", "json", "yaml")
_F = TypeVar("_F", bound=Callable[..., Any])


def _start(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    from pumice.api.times import epoch
    from pumice.errors import InputError

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
_OPTIONS: Final = (
    click.option(
        "--nodes",
        metavar="FILE",
        type=FILE,
        help="The cluster: manifests, or openb nodes.  [default: sized for the trace]",
    ),
    click.option(
        "--format",
        "trace_format",
        type=click.Choice(FORMATS),
        help="The kind of trace.  [default: recognised by its content]",
    ),
    click.option(
        "--period",
        metavar="SECONDS",
        type=click.FloatRange(min=0, min_open=True),
        default=1.0,
        show_default=True,
        help="Simulated seconds between two cycles, at least.",
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


def simulation_options(command: _F) -> _F:
    """Add the options that choose how a workload is run; ``as_options`` gathers them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


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


def output_options(command: _F) -> _F:
    """Add the options that choose where results go: ``output`` and ``folder``."""
    form = click.option(
        "-o",
        "--output",
        metavar="[table|json|yaml|DIR]",
        multiple=True,
        callback=_output,
        help="How to print the summary; any other value is DIR.  [default: table]",
    )
    folder = click.option(
        "-d",
        "--dir",
        "folder",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where report and tables are written.",
    )
    return form(folder(command))
