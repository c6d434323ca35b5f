"""The command line of `pumice demo`."""

from pathlib import Path
from typing import Any

import click


@click.command()
@click.option(
    "--report",
    metavar="FILE",
    default="pumice-demo.html",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the report with charts.",
)
def demo(**given: Any) -> None:
    """Play a short story on an embedded cluster and print each decision with its reason.

    Scheduler, controllers and binder are those of a real cluster, on a virtual clock.
    """
    from pumice.cli.demo.command import demo as perform

    perform(**given)
