"""The command line of `pumice doctor`."""

from typing import Any

import click

from pumice.cli.command_lines.cluster_options import cluster_options, output_option


@click.command()
@cluster_options
@output_option
def doctor(**given: Any) -> None:
    """Check whether a cluster has what Pumice needs, and show what to do if it does not.

    Nothing is changed. Exits with 1 if something is wrong, or if nothing could be checked.
    """
    from pumice.cli.doctor import doctor as perform

    perform(**given)
