"""The command line of `pumice sim`."""

from typing import Any

import click

from pumice.cli.command_lines.plugin_option import plugin_option
from pumice.cli.command_lines.simulation_options import (
    FILE,
    output_options,
    seed_option,
    simulation_options,
)


@click.command()
@click.option(
    "--trace",
    metavar="FILE",
    required=True,
    type=FILE,
    help="The workload: a trace, a table of jobs, manifests or a synthetic description.",
)
@click.option(
    "--conf",
    "confs",
    metavar="FILE",
    multiple=True,
    type=FILE,
    help="A scheduler configuration; give several to compare them.  [default: the built-in one]",
)
@seed_option
@simulation_options
@output_options
@plugin_option
def sim(**given: Any) -> None:
    """Run a workload to its end on a virtual clock, and write a report.

    Several configurations are compared with the first.
    """
    from pumice.cli.sim import sim as perform

    perform(**given)
