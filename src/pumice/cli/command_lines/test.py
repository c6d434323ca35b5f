"""The command line of `pumice test`."""

from pathlib import Path
from typing import Any

import click

from pumice.cli.command_lines.cluster_options import output_option
from pumice.cli.command_lines.manifest_options import EXISTING, manifest_options
from pumice.cli.command_lines.plugin_option import plugin_option


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=EXISTING)
@manifest_options
@click.option(
    "--expect",
    metavar="FILE",
    type=EXISTING,
    help="What 'pumice run -o yaml' printed; all files together are one case.",
)
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the results as JUnit XML.",
)
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of processes.  [default: number of CPUs]",
)
@click.option("--messages", is_flag=True, help="Also compare condition messages and fit errors.")
@click.option("--nominated", is_flag=True, help="Also compare nominated nodes.")
@click.option("-k", "substring", metavar="SUBSTRING", default="", help="Only paths with this text.")
@click.option("-x", "stop_early", is_flag=True, help="Stop at the first failure.")
@plugin_option
@output_option
@click.pass_context
def test(ctx: click.Context, /, **given: Any) -> None:
    """Run scenario files, or all in a folder, and compare with their expectations.

    Plain manifests are one case with --expect.
    """
    from pumice.cli.test import test as perform

    perform(ctx, **given)
