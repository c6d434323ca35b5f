"""The command line of `pumice whatif`."""

from pathlib import Path
from typing import Any

import click

from pumice.cli.command_lines.cluster_options import conf_option, output_option, source_options
from pumice.cli.command_lines.plugin_option import plugin_option
from pumice.cli.command_lines.runtime_option import runtime_option


@click.command()
@source_options
@conf_option("--current-conf", "The current configuration.")
@click.option(
    "--job",
    metavar="FILE|NAME",
    default="",
    help="The job to ask about: a manifest that is not applied yet, or a name.",
)
@click.option(
    "--new-conf",
    "--conf",
    "new_conf",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Try this configuration in place of the current one.",
)
@click.option(
    "--set",
    "settings",
    metavar="KIND/NAME.FIELD=VALUE",
    multiple=True,
    help="Set a field, as in queue/NAME.capability.cpu=20.",
)
@click.option(
    "--add-nodes",
    metavar="N[=NODE]",
    multiple=True,
    help="Add N nodes like NODE, or like the largest.",
)
@click.option(
    "--remove-node", "removed", metavar="NAME", multiple=True, help="Remove a node and its pods."
)
@click.option(
    "--drain",
    "drained",
    metavar="NAME",
    multiple=True,
    help="Cordon a node and remove its pods.",
)
@click.option(
    "--changes",
    "lists",
    metavar="FILE",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="What if all changes of a list were made, JSON or YAML, as explain -o json gives them; "
    "- reads the input.",
)
@runtime_option
@plugin_option
@output_option
def whatif(**given: Any) -> None:
    """Try a job or a change on a copy of the cluster and show what would be different.

    The time at which pods end is read from the annotation pumice.dev/run-seconds of pods or pod
    groups.
    """
    from pumice.cli.whatif import whatif as perform

    perform(**given)
