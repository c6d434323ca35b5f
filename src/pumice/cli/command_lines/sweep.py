"""The command line of `pumice sweep`."""

from typing import Any

import click

from pumice.cli.command_lines.plugin_option import plugin_option
from pumice.cli.command_lines.simulation_options import FILE, output_options, simulation_options

_MOST_SEEDS = 100_000


def _seeds(_ctx: click.Context, _param: click.Parameter, text: str) -> tuple[int, ...]:
    """Read seeds as people write them: ``7``, ``1,2,5`` or ``0-9``."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _is_seed(first) or (dash and not _is_seed(last)):
            raise click.BadParameter(f"wanted numbers such as 7, 1,2,5 or 0-9, found {text!r}")
        several = range(int(first), int(last if dash else first) + 1)
        if len(found) + len(several) > _MOST_SEEDS:
            raise click.BadParameter(f"wanted at most {_MOST_SEEDS:,} seeds, found {text!r}")
        found += several
    if not found:
        raise click.BadParameter(f"wanted at least one seed, found {text!r}")
    return tuple(found)


def _is_seed(text: str) -> bool:
    return text.isdecimal() and len(text) <= 15


@click.command()
@click.option(
    "--conf",
    "confs",
    metavar="FILE",
    multiple=True,
    type=FILE,
    help="A scheduler configuration; may be given several times.  [default: the built-in one]",
)
@click.option(
    "--trace",
    "traces",
    metavar="FILE",
    multiple=True,
    required=True,
    type=FILE,
    help="A workload, as for 'pumice sim'; may be given several times.",
)
@click.option(
    "--seeds",
    "--seed",
    default="0",
    show_default=True,
    callback=_seeds,
    help="Numbers and ranges, such as 7, 1,2,5 or 0-9.",
)
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of processes.  [default: number of CPUs]",
)
@click.option(
    "--dask",
    "address",
    metavar="ADDRESS",
    help="Run on this Dask cluster, such as tcp://host:8786, instead of in processes here.",
)
@simulation_options
@output_options
@plugin_option
@click.pass_context
def sweep(ctx: click.Context, /, **given: Any) -> None:
    """Simulate every configuration on every trace with every seed.

    Each configuration is compared with the first, on the same trace with the same seed.
    """
    from pumice.cli.sweep import sweep as perform

    perform(ctx, **given)
