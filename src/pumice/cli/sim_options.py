"""What `pumice sim` and `pumice sweep` share: options, configurations, the folder of results."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pumice.api.conf import SchedulerConf
from pumice.api.times import epoch
from pumice.cli.config import conf_problems
from pumice.cli.entry import INTERRUPTED
from pumice.cli.plugin_option import PluginSources
from pumice.errors import ConfError, InputError
from pumice.sim.inputs import FORMATS
from pumice.sim.options import SimulationOptions

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT_FORMS: Final = ("table", "json", "yaml")
_F = TypeVar("_F", bound=Callable[..., Any])


def _start(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    try:
        return None if text is None else epoch(text)
    except InputError as error:
        raise click.BadParameter(str(error)) from None


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
        help="Let jobs come so many times as fast as in the trace.",
    ),
    click.option(
        "--start",
        metavar="TIME",
        callback=_start,
        help="When the first job comes, RFC 3339.  [default: as the trace states, else 2024-01-01]",
    ),
    click.option(
        "--late-pods",
        is_flag=True,
        help="Make pods only once their job is admitted, as for Volcano's own jobs.",
    ),
    click.option(
        "--evicted",
        type=click.Choice(["requeue", "restart", "lose"]),
        default="requeue",
        show_default=True,
        help="An evicted pod waits again, its broken gang starts anew, or it is gone.",
    ),
    click.option("--parquet", is_flag=True, help="Write the tables as Parquet; needs pyarrow."),
)


def simulation_options(command: _F) -> _F:
    """Add the options that choose how a workload is run; ``as_options`` gathers them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def as_options(chosen: dict[str, Any]) -> SimulationOptions:
    """Gather the options that hold for every run."""
    names = ("period", "evicted", "limit", "speed", "late_pods", "start")
    return SimulationOptions(**{name: chosen[name] for name in names})


@dataclass(frozen=True)
class Output:
    """How the summary is printed, and the folder that files go to."""

    form: str = "table"
    folder: Path | None = None


def _output(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> Output:
    """Tell forms from folders: what is no form names the folder, as it always did."""
    forms = [value for value in values if value in OUTPUT_FORMS]
    folders = [Path(value) for value in values if value not in OUTPUT_FORMS]
    return Output(forms[-1] if forms else "table", folders[-1] if folders else None)


def output_options(command: _F) -> _F:
    """Add the options that say where results go: ``output`` and ``folder``."""
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


def check_configurations(
    confs: Iterable[tuple[str, SchedulerConf]], plugins: PluginSources
) -> None:
    """Refuse configurations that cannot be used; warn of what they say in vain.

    Raises:
        ConfError: One cannot be used.
    """
    for source, conf in confs:
        problems = conf_problems(conf, plugins)
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors:
            raise ConfError(errors, file=source)
        for problem in problems:
            click.echo(f"warning: {source}: {problem}", err=True)


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
            wanted="a folder that can be written to", found=error.strerror, file=where
        ) from None


def _check_parquet() -> None:
    try:
        import pyarrow as pa  # noqa: F401, PLC0415  (an optional library)
    except ImportError:
        raise InputError(
            wanted="pyarrow to write Parquet", found="not installed", hint="leave --parquet out"
        ) from None


@contextmanager
def stoppable(what: str) -> Iterator[None]:
    """End with a sentence and an exit code on Ctrl-C, or if there is too little memory."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nstopped: {what}", err=True)
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
