"""The command line of `pumice explain`."""

from typing import Any

import click

from pumice.cli.command_lines.cluster_options import output_option, world_options
from pumice.cli.command_lines.plugin_option import plugin_option
from pumice.cli.command_lines.runtime_option import runtime_option, within_option


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001
    if wanted and not context.resilient_parsing:
        from pumice.cli.explain import print_schema

        print_schema()
        context.exit()


@click.command()
@click.argument("job", metavar="[JOB]", required=False)
@world_options
@click.option(
    "--cycles",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of cycles to run before the job is examined.",
)
@click.option("--no-unblock", is_flag=True, help="Do not look for changes that would help.")
@click.option("--no-forecast", is_flag=True, help="Do not compute when the job starts.")
@within_option
@click.option(
    "--ask-extender",
    is_flag=True,
    help="Ask a configured extender about nodes; otherwise its vote is unknown.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON schema of the answer, and exit.",
)
@runtime_option
@plugin_option
@output_option
def explain(**given: Any) -> None:
    """Explain why JOB waits: a pod group, a Volcano job or a pod; without JOB, list waiting jobs.

    Nothing is changed, in the cluster or outside.
    """
    from pumice.cli.explain import explain as perform

    perform(**given)
