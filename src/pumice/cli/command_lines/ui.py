"""The command line of `pumice ui`."""

from pathlib import Path
from typing import Any

import click

from pumice.cli.command_lines.cluster_options import world_options
from pumice.cli.command_lines.plugin_option import plugin_option
from pumice.cli.command_lines.serving_options import serving_options


@click.command()
@world_options
@click.option("--demo", is_flag=True, help="Show a demo cluster with changing work.")
@click.option(
    "--sim",
    "folders",
    metavar="DIR",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder that 'pumice sim --dir' wrote, or one with such folders; repeatable.",
)
@plugin_option
@serving_options
def ui(**given: Any) -> None:
    """Serve the dashboard until Ctrl-C.

    It shows the running cluster, or the given files.  Nothing is written to it, unless
    --allow-actions lets users act.
    """
    from pumice.cli.ui import ui as perform

    perform(**given)
