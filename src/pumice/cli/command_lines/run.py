"""The command line of `pumice run`."""

from typing import Any

import click

from pumice.cli.command_lines.manifest_options import EXISTING, manifest_options
from pumice.cli.command_lines.plugin_option import plugin_option


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1, type=EXISTING)
@manifest_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to print the decisions.",
)
@click.option("--write", is_flag=True, help="Put the decisions into the scenario in FILE.")
@plugin_option
@click.pass_context
def run(ctx: click.Context, /, **given: Any) -> None:
    """Run the scenario in FILE, or plain manifests, and print the decisions.

    Exits with 1 if a plugin failed; the other plugins still decide.
    """
    from pumice.cli.run import run as perform

    perform(ctx, **given)
