"""The command lines of `pumice snapshot`."""

from pathlib import Path
from typing import Any

import click

from pumice.cli.command_lines.cluster_options import cluster_options, conf_option, output_option

_SOURCE = click.Path(exists=True, path_type=Path)
_CONF = conf_option()


@click.group()
def snapshot() -> None:
    """Save, show and compare clusters."""


@snapshot.command("save")
@click.argument("sources", metavar="[FROM]...", nargs=-1, type=_SOURCE)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="The file to write: JSON if its name ends in .json, else YAML.",
)
@_CONF
@click.option("--now", metavar="TIME", help="The time it was taken at, RFC 3339.")
@cluster_options
def save(**given: Any) -> None:
    """Put a cluster into one file: the running one, or FROM.

    FROM are manifests, 'kubectl get -o yaml' output or scenarios.  Environment variables, commands
    and arguments of containers are left out.  The file is a scenario: 'pumice run' plays it, and
    'pumice run --write' makes a test of it.
    """
    from pumice.cli.snapshot import save as perform

    perform(**given)


@snapshot.command("show")
@click.argument("sources", metavar="[FILE]...", nargs=-1, type=_SOURCE)
@_CONF
@cluster_options
@output_option
def show(**given: Any) -> None:
    """Sum up a snapshot or the running cluster.

    Prints nodes, what is free, queues, and jobs by phase.
    """
    from pumice.cli.snapshot import show as perform

    perform(**given)


@snapshot.command("diff")
@click.argument("left", metavar="OLD", type=_SOURCE)
@click.argument("right", metavar="[NEW]", type=_SOURCE, required=False)
@_CONF
@cluster_options
@output_option
@click.pass_context
def diff(ctx: click.Context, /, **given: Any) -> None:
    """Compare two snapshots.

    Compares objects, and what the next cycle decides on them.
    Without NEW the running cluster is compared.  Exits with 1 if they differ.
    """
    from pumice.cli.snapshot import diff as perform

    perform(ctx, **given)
