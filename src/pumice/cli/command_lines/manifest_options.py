"""Options that name manifests, their configuration and the time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])
EXISTING = click.Path(exists=True, allow_dash=True, path_type=Path)

_FILES = click.option(
    "-f",
    "--filename",
    "more_files",
    metavar="FILE",
    multiple=True,
    type=EXISTING,
    help="Output of 'kubectl get … -o yaml' or manifests, a file or a folder; may be given several "
    "times; - reads the input.",
)
_CONF = click.option(
    "--conf",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The scheduler configuration.  [default: that of the scenario or of a ConfigMap among "
    "the files, else the built-in one]",
)
_NOW = click.option(
    "--now",
    metavar="TIME",
    help="The time to decide at, RFC 3339.  [default: that of the scenario, or the latest in "
    "the files]",
)


def manifest_options(command: _F) -> _F:
    """Add the options that name manifests, their configuration and the time."""
    return _FILES(_CONF(_NOW(command)))
