"""The command line of `pumice doctor`."""

from typing import Any

import click

from pumice.cli.command_lines.cluster_options import cluster_options, output_option


@click.command()
@cluster_options
@output_option
def doctor(**given: Any) -> None:
    """Check a cluster: what Pumice needs, whether it is there, and what to do if it is not.

    Nothing is changed. Exits with 1 if something is wrong.
    """
    from pumice.cli.doctor import doctor as perform

    perform(**given)
