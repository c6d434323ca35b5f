"""The command line of `pumice up`."""

from pathlib import Path
from typing import Any

import click

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_MOST_NODES = 10_000


@click.command()
@click.option(
    "--nodes",
    "count",
    metavar="N",
    type=click.IntRange(0, _MOST_NODES),
    help="How many equal nodes to start with.  [default: 3, none with --nodes-file]",
)
@click.option("--node-cpu", metavar="AMOUNT", default="8", show_default=True, help="CPU of each.")
@click.option("--node-memory", metavar="AMOUNT", default="32Gi", show_default=True, help="Memory.")
@click.option("--nodes-file", metavar="FILE", type=_FILE, help="Manifests to start with.")
@click.option("--conf", metavar="FILE", type=_FILE, help="The scheduler configuration.")
@click.option(
    "--default-scheduler",
    is_flag=True,
    help="Schedule pods that name no scheduler, too, such as those of kubectl run.",
)
@click.option("--port", metavar="P", type=click.IntRange(0, 65535), default=0, help="Port to use.")
@click.option("--ui/--no-ui", "with_ui", default=True, help="Serve the dashboard.  [default: on]")
@click.option("--ui-port", metavar="P", type=click.IntRange(0, 65535), default=0, help="Its port.")
@click.option("--allow-actions", is_flag=True, help="Let its pages change jobs and queues.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the kubeconfig.  [default: where 'pumice job' and other commands look]",
)
@click.option(
    "--data",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep all objects in this directory, and resume from them.  [default: in memory only]",
)
@click.option(
    "--speed",
    metavar="X",
    type=click.FloatRange(0.001, 1000),
    default=1.0,
    show_default=True,
    help="How many times faster than real time its clock runs.",
)
def up(**given: Any) -> None:
    """Start a cluster in this process and serve it until Ctrl-C.

    No containers run: pods start, last as long as their annotation pumice.dev/run-seconds states,
    and end.  Scheduler and controllers are the real ones.
    """
    from pumice.cli.up import up as perform

    perform(**given)
