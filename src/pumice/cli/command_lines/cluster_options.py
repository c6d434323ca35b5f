"""Options that choose the cluster of a command, and the form of its answer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])
_EXISTING = click.Path(exists=True, allow_dash=True, path_type=Path)


_FILES = click.option(
    "-f",
    "--filename",
    "files",
    metavar="FILE",
    multiple=True,
    type=_EXISTING,
    help="Output of 'kubectl get … -o yaml', manifests, a scenario or a snapshot; a file or a "
    "folder, may be given several times; - reads the input.  [default: the running cluster]",
)
_NOW = click.option(
    "--now",
    metavar="TIME",
    help="The time to decide at, RFC 3339.  [default: that of the cluster, or the latest in "
    "the files]",
)
_KUBECONFIG = click.option(
    "-k",
    "--kubeconfig",
    metavar="FILE",
    default="",
    help="The cluster to query.  [default: $KUBECONFIG, a running 'pumice up', ~/.kube/config]",
)
_MASTER = click.option("-s", "--master", metavar="URL", default="", help="Its address.")


def conf_option(
    name: str = "--conf", text: str = "The scheduler configuration."
) -> Callable[[_F], _F]:
    """Make the option that names the configuration a cluster has."""
    return click.option(
        name,
        "conf",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=f"{text}  [default: that of the cluster or the files, else the built-in one]",
    )


def cluster_options(command: _F) -> _F:
    """Add the options that name a running cluster."""
    return _KUBECONFIG(_MASTER(command))


def world_options(command: _F) -> _F:
    """Add the options that name the sources of a cluster."""
    return _FILES(cluster_options(conf_option()(_NOW(command))))


def source_options(command: _F) -> _F:
    """Add the options that name the sources of a cluster, except its configuration."""
    return _FILES(cluster_options(_NOW(command)))


output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to print the answer.",
)
