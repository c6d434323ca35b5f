"""The options with which a dashboard is served."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option(
        "--listen",
        metavar="ADDRESS",
        default="127.0.0.1",
        show_default=True,
        help="Address to serve at.",
    ),
    click.option(
        "--port",
        metavar="P",
        type=click.IntRange(0, 65535),
        default=0,
        help="Its port.  [default: a free one]",
    ),
    click.option(
        "--host",
        "hosts",
        metavar="NAME",
        multiple=True,
        help="A host name under which it is reached.",
    ),
    click.option("--tls-cert", metavar="FILE", type=_FILE, help="Certificate to serve with."),
    click.option("--tls-key", metavar="FILE", type=_FILE, help="Its key."),
    click.option(
        "--token-file",
        metavar="FILE",
        type=_FILE,
        help="Anyone with the token in this file may look.",
    ),
    click.option(
        "--cluster-login",
        is_flag=True,
        help="Users log in with cluster tokens and see the namespaces they may read.",
    ),
    click.option(
        "--allow-actions",
        is_flag=True,
        help="Let pages suspend, resume and end jobs, and open and close queues.",
    ),
)


def serving_options(command: _F) -> _F:
    """Add the options; their names are those of ``ServingOptions``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
