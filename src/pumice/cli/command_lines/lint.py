"""The command line of `pumice lint`."""

from typing import Any

import click


@click.command()
@click.argument("paths", metavar="FILE|DIR|-...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    help="Output format.",
)
@click.option(
    "--queue",
    "queues",
    metavar="NAME",
    multiple=True,
    help="A queue that exists in the cluster; those in the files always count.",
)
@click.pass_context
def lint(ctx: click.Context, /, **given: Any) -> None:
    """Check jobs, queues and the like before a cluster does; - reads standard input."""
    from pumice.cli.lint import lint as perform

    perform(ctx, **given)
