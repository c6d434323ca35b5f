"""Options that several commands share; nothing here loads what a command does.

Help, completion and mistyped words are answered at once: a command's file imports at its top what
is light, and inside its functions what decides, serves or draws.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pumice.api.times import epoch
from pumice.api.wording import value_of

_F = TypeVar("_F", bound=Callable[..., Any])
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


class _Place(click.Path):
    """A path that exists, or the URL of a record."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and "://" in value:
            return Path(value)
        return super().convert(value, param, ctx)


EXISTING: Final = _Place(exists=True, allow_dash=True, path_type=Path)
SOURCE: Final = _Place(exists=True, path_type=Path)
RECORD: Final = _Place(exists=True, file_okay=False, path_type=Path)
OUTPUT_FORMS: Final = ("table", "json", "yaml")


def together(*options: Callable[[_F], _F]) -> Callable[[_F], _F]:
    """Join options to one decorator, in the order in which help lists them."""

    def decorate(command: _F) -> _F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# The cluster of a command, and the form of its answer


def files_option(name: str, text: str) -> Callable[[_F], _F]:
    """Make the option for the files of a cluster."""
    return click.option(
        "-f", "--filename", name, metavar="FILE", multiple=True, type=EXISTING, help=text
    )


def now_option(default: str) -> Callable[[_F], _F]:
    """Make the option for the time of a cluster."""
    text = f"The time to decide at, RFC 3339.  [default: that of the {default}, or the latest in "
    more = " Of a record, the moment to open: 03:10, -2h and dates in UTC, too."
    return click.option("--now", "--at", "now", metavar="TIME", help=f"{text}the files]{more}")


def conf_option(
    name: str = "--conf",
    text: str = "The scheduler configuration.",
    default: str = "that of the cluster or the files",
) -> Callable[[_F], _F]:
    """Make the option that names the configuration a cluster has."""
    words = f"{text}  [default: {default}, else the built-in one]"
    return click.option(name, "conf", metavar="FILE", type=FILE, help=words)


def output_of(what: str) -> Callable[[_F], _F]:
    """Make the option for the form in which something is printed."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(OUTPUT_FORMS),
        default="table",
        show_default=True,
        help=f"How to print the {what}.",
    )


output_option: Final = output_of("answer")
cluster_options: Final = together(
    click.option(
        "-k",
        "--kubeconfig",
        metavar="FILE",
        default="",
        help="The cluster to query.  [default: $KUBECONFIG, a running 'pumice up', ~/.kube/config]",
    ),
    click.option("-s", "--master", metavar="URL", default="", help="Its address."),
)
_FILES: Final = files_option(
    "files",
    "Output of 'kubectl get … -o yaml', manifests, a scenario, a snapshot or a record; a file or a "
    "folder, may be given several times; - reads the input.  [default: the running cluster]",
)
_NOW: Final = now_option("cluster")


@dataclass(frozen=True)
class ClusterInput:
    """Where the cluster of a command is read: files, else a running one."""

    files: tuple[Path, ...] = ()
    conf: Path | None = None
    now: str | None = None
    kubeconfig: str = ""
    master: str = ""


def world_options(conf: Callable[[Any], Any] | None = None) -> Callable[[_F], _F]:
    """Add the options that name a cluster; the command receives them as ``source``."""
    chosen = (conf_option(), _NOW) if conf is None else (_NOW, conf)

    def decorate(command: _F) -> _F:
        @wraps(command)
        def gathered(*args: Any, **given: Any) -> Any:
            names = ("files", "conf", "now", "kubeconfig", "master")
            source = ClusterInput(**{name: given.pop(name) for name in names})
            return command(*args, source=source, **given)

        return together(_FILES, cluster_options, *chosen)(gathered)

    return decorate


manifest_options: Final = together(
    files_option(
        "more_files",
        "Output of 'kubectl get … -o yaml' or manifests, a file or a folder; may be given several "
        "times; - reads the input.",
    ),
    conf_option(default="that of the scenario or of a ConfigMap among the files"),
    now_option("scenario"),
)
"""Manifests, their configuration and the time."""


def time_of(text: str | None, option: str = "--now") -> float | None:
    """Read the time that an option names; None without one.

    Raises:
        InputError: it is no time.
    """
    with value_of(option):
        return epoch(text) if text else None


def moment_of(text: str | None, files: Sequence[Path]) -> float | None:
    """Read the time that an option names; of a record among the files it may be relative.

    Raises:
        InputError: it is no time.
    """
    from pumice.records.segments import is_record

    records = [file for file in files if is_record(file)]
    if not text or not records:
        return time_of(text)
    from pumice.records.history import History

    with value_of("--at"):
        return History(records[0]).time(text)


# Plugins of the user's own

PluginSources = tuple[str, ...]
"""Files with absolute paths, or modules.

A command passes the texts along; the code that makes a scheduler, here or in another process,
loads the classes with ``load_plugins``.
"""


def _check(_ctx: click.Context, _param: click.Parameter, sources: PluginSources) -> PluginSources:
    """Load the plugins, so that a mistake is reported before anything runs.

    Raises:
        InputError: a text names no plugin, or one with a built-in name.
    """
    if not sources:
        return ()
    from pumice.errors import InputError
    from pumice.framework.registry import load_plugins, whole_source
    from pumice.plugins import builtin_plugins

    builtin = builtin_plugins()
    load_plugins(sources)
    for source in sources:
        for name in load_plugins([source]):
            if name in builtin:
                raise InputError(
                    wanted="a name that no built-in plugin has", found=name, file=source
                )
    return tuple(whole_source(source) for source in sources)


plugin_option: Final = click.option(
    "--plugin",
    "plugins",
    metavar="FILE.py|MODULE[:CLASS]",
    multiple=True,
    callback=_check,
    help="A plugin of your own that the configuration may name; may be given several times. "
    "It is code that runs with your permissions: name only files that you trust.",
)


# Durations


def _seconds(_ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Read the duration.

    Raises:
        InputError: not a duration, or less than nothing.
    """
    if text is None:
        return None
    from pumice.api.duration import parse_duration
    from pumice.errors import InputError

    with value_of(param.opts[0]):
        seconds = parse_duration(text)
        if seconds < 0:
            raise InputError(wanted="0 or more", found=text)
    return seconds


runtime_option: Final = click.option(
    "--default-runtime",
    metavar="DURATION",
    callback=_seconds,
    help="Run time of pods that state none, such as 90m, for the forecast.  [default: for ever]",
)
within_option: Final = click.option(
    "--within",
    metavar="DURATION",
    callback=_seconds,
    help="Answer within this time, such as 5s, with what is known by then.  [default: no limit]",
)
jobs_option: Final = click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of processes.  [default: number of CPUs]",
)
