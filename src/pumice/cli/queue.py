"""`pumice queue`: look at queues, make, open, close and delete them."""

import click


@click.group()
def queue() -> None:
    """Look at queues, make, open, close and delete them."""
