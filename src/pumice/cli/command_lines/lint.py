"""The command line of `pumice lint`."""

from typing import Any

import click


class _Output(click.Choice[str]):
    """The outputs of all commands; a table of lines was first called text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return an output by its present name."""
        return super().convert("table" if value == "text" else value, param, ctx)


@click.command()
@click.argument("paths", metavar="FILE|DIR|-...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=_Output(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to print the problems.",
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
