"""`pumice test`: run scenario files, tell the differences, sum up."""

from functools import partial
from pathlib import Path

import click

from pumice.cli.plugin_option import PluginSources, plugin_option
from pumice.cli.tables import print_summary
from pumice.scenarios.compare import CompareOptions
from pumice.scenarios.runner import CaseResult, default_scheduler, find_scenarios, run_files

_SHOWN_DIFFERENCES = 10


@click.command()
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the results as JUnit XML.",
)
@click.option(
    "-j",
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Number of processes.  [default: number of CPUs]",
)
@click.option("--messages", is_flag=True, help="Also compare condition messages and fit errors.")
@click.option("--nominated", is_flag=True, help="Also compare nominated nodes.")
@click.option("-k", "substring", metavar="SUBSTRING", default="", help="Only paths with this text.")
@click.option("-x", "stop_early", is_flag=True, help="Stop at the first failure.")
@plugin_option
@click.pass_context
def test(
    ctx: click.Context,
    *,
    paths: tuple[Path, ...],
    junit: Path | None,
    jobs: int | None,
    messages: bool,
    nominated: bool,
    substring: str,
    stop_early: bool,
    plugins: PluginSources,
) -> None:
    """Run scenario files, or all in a folder, and compare with their expectations."""
    results: list[CaseResult] = []
    files = find_scenarios(paths, substring)
    for result in run_files(
        files,
        make_scheduler=partial(default_scheduler, plugins=plugins),
        options=CompareOptions(messages=messages, nominated=nominated),
        jobs=jobs,
        stop_early=stop_early,
    ):
        results.append(result)
        _print_failure(result)
    if junit is not None:
        from pumice.scenarios.junit import write_junit  # noqa: PLC0415  (rarely asked for)

        write_junit(results, junit)
    if not results:
        raise click.UsageError("no scenario found")
    print_summary(results)
    skipped = len(files) - len(results)
    if skipped and not stop_early:
        click.echo(f"{skipped} other files in these folders are not scenarios", err=True)
    passed = sum(result.outcome == "passed" for result in results)
    click.echo(f"{passed} passed, {len(results) - passed} failed")
    ctx.exit(0 if passed == len(results) else 1)


def _print_failure(result: CaseResult) -> None:
    if result.outcome == "passed":
        return
    click.echo(f"{'FAIL ' if result.outcome == 'failed' else 'ERROR'} {result.path}")
    for difference in result.differences[:_SHOWN_DIFFERENCES]:
        click.echo(f"      {difference}")
    hidden = len(result.differences) - _SHOWN_DIFFERENCES
    if hidden > 0:
        click.echo(f"      … and {hidden} more")
