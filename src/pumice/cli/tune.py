"""`pumice tune`: a search for a better configuration on traces and recorded days."""

from __future__ import annotations

from pathlib import Path

import click

from pumice.cli.options import FILE, PluginSources, jobs_option, output_option, plugin_option
from pumice.cli.printing import echo, print_data


@click.command()
@click.argument("space", metavar="SPACE.yaml", type=FILE)
@click.option("--trials", type=click.IntRange(1), help="How many.  [default: as the file states]")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of proposals.")
@plugin_option
@jobs_option
@click.option("--dask", metavar="ADDRESS", default="", help="Measure on this Dask cluster.")
@click.option(
    "--best", metavar="FILE", type=click.Path(path_type=Path), help="Write the best configuration."
)
@click.option(
    "--report", metavar="FILE", type=click.Path(path_type=Path), help="Also as one HTML page."
)
@output_option
@click.pass_context
def tune(
    ctx: click.Context,
    *,
    space: Path,
    trials: int | None,
    seed: int,
    plugins: PluginSources,
    jobs: int | None,
    dask: str,
    best: Path | None,
    report: Path | None,
    output: str,
) -> None:
    """Search weights, factors, switches and tiers for the objective that SPACE.yaml states.

    Exits with 1 if the result breaks a condition on the days that were held out.
    """
    from pumice.api.output_files import write_file
    from pumice.api.text_files import read_text
    from pumice.cli.progress import progress
    from pumice.cli.sim_options import stoppable
    from pumice.tuning.result import configuration, evidence_lines, to_dict, write_page
    from pumice.tuning.search import tune as search
    from pumice.tuning.space import read_space

    total = trials or read_space(space, read_text(space)).trials
    with stoppable("the search is lost"), progress("searching", total, "trials") as shown:
        found = search(
            space,
            trials=trials,
            jobs=jobs or 1,
            dask=dask,
            seed=seed,
            plugins=plugins,
            progress=shown,
        )
    if output == "table":
        for line in evidence_lines(found):
            echo(line)
    else:
        print_data(to_dict(found), output)
    if best is not None:
        write_file(best, configuration(found))
    if report is not None:
        write_page(found, report)
    ctx.exit(1 if found.evidence is not None and found.evidence.broken else 0)
