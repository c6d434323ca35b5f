"""The command lines of `pumice config` and `pumice plugin`."""

from pathlib import Path
from typing import Any

import click

from pumice.cli.command_lines.cluster_options import output_option
from pumice.cli.command_lines.plugin_option import plugin_option


@click.group()
def config() -> None:
    """Check a scheduler configuration."""


@config.command("check")
@click.argument(
    "file",
    metavar="FILE|-",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings too.")
@plugin_option
@output_option
@click.pass_context
def check(ctx: click.Context, /, **given: Any) -> None:
    """Show what a scheduler would refuse or warn about.

    Also shows which plugins decide what.

    FILE may be a scenario, which has its configuration inside; - reads standard input. Exits with 1
    if a scheduler would refuse FILE.
    """
    from pumice.cli.config import check as perform

    perform(ctx, **given)


@click.group()
def plugin() -> None:
    """List and describe plugins."""


@plugin.command("list")
@plugin_option
@output_option
def list_plugins(**given: Any) -> None:
    """List all plugins with one line for each."""
    from pumice.cli.config import list_plugins as perform

    perform(**given)


@plugin.command("show")
@click.argument("name", metavar="NAME")
@plugin_option
@output_option
def show_plugin(**given: Any) -> None:
    """Describe the plugin NAME: its extension points and its arguments."""
    from pumice.cli.config import show_plugin as perform

    perform(**given)
