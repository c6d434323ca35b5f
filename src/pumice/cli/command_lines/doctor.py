"""The command line of `pumice doctor`."""

from typing import Any

import click

from pumice.cli.command_lines.cluster_options import cluster_options, output_option


def _no_files(_ctx: click.Context, _param: click.Parameter, files: tuple[str, ...]) -> None:
    """Name the commands that check files, since other commands take -f."""
    if files:
        raise click.UsageError(
            "doctor asks a running cluster, since no file has its rights, leases and webhooks; "
            f"ask about files with 'pumice explain -f {files[0]}', "
            f"and check manifests with 'pumice lint {files[0]}'"
        )


@click.command()
@click.option(
    "-f", "--filename", multiple=True, hidden=True, expose_value=False, callback=_no_files
)
@cluster_options
@output_option
def doctor(**given: Any) -> None:
    """Check whether a cluster has what Pumice needs, and show what to do if it does not.

    It asks a running cluster; lint and explain -f check files. Nothing is changed. Exits with 1 if
    something is wrong, or if nothing could be checked.
    """
    from pumice.cli.doctor import doctor as perform

    perform(**given)
