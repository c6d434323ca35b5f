"""The command line of `pumice queue order`."""

from typing import Any

import click

from pumice.cli.command_lines.cluster_options import output_option, world_options
from pumice.cli.command_lines.plugin_option import plugin_option


@click.command("order")
@world_options
@plugin_option
@output_option
def order(**given: Any) -> None:
    """Show the order in which queues and jobs are considered, and why."""
    from pumice.cli.queue_order import order as perform

    perform(**given)
