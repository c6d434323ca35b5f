"""`pumice test`: run scenario files, print the differences, sum up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.api.text_files import STDIN, shown_name
from pumice.api.wording import counted, first_of
from pumice.cli.inputs import read_scenario, with_expectations
from pumice.cli.options import (
    EXISTING,
    PluginSources,
    jobs_option,
    manifest_options,
    output_option,
    plugin_option,
)
from pumice.cli.printing import Row, print_data, print_summary
from pumice.cli.terminal import echo

if TYPE_CHECKING:
    from pumice.scenarios.runner import CaseResult


_SHOWN_DIFFERENCES = 10
_APART = ".scenario"
"""Ends the names of scenarios that only make sense with a plugin of their own."""


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=EXISTING)
@manifest_options
@click.option(
    "--expect",
    metavar="FILE",
    type=EXISTING,
    help="What 'pumice run -o yaml' printed; all files together are one case.",
)
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the results as JUnit XML.",
)
@jobs_option
@click.option("--messages", is_flag=True, help="Also compare condition messages and fit errors.")
@click.option("--nominated", is_flag=True, help="Also compare nominated nodes.")
@click.option("-k", "substring", metavar="SUBSTRING", default="", help="Only paths with this text.")
@click.option("-x", "stop_early", is_flag=True, help="Stop at the first failure.")
@plugin_option
@output_option
@click.pass_context
def test(
    ctx: click.Context,
    *,
    paths: tuple[Path, ...],
    more_files: tuple[Path, ...],
    conf: Path | None,
    now: str | None,
    expect: Path | None,
    junit: Path | None,
    jobs: int | None,
    messages: bool,
    nominated: bool,
    substring: str,
    stop_early: bool,
    plugins: PluginSources,
    output: str,
) -> None:
    """Run scenario files, or all in a folder, and compare with their expectations.

    Plain manifests are one case with --expect.
    """
    from pumice.scenarios import runner
    from pumice.scenarios.compare import CompareOptions

    given = (*paths, *more_files)
    if not given:
        raise click.UsageError("name scenarios, a folder of them or - for the input")
    if now is not None and expect is None:
        raise click.UsageError("--now needs --expect; a scenario states its own time")
    make_scheduler = partial(runner.default_scheduler, plugins=plugins)
    options = CompareOptions(messages=messages, nominated=nominated)
    files = [] if expect else runner.find_scenarios(given, substring, conf)
    results: list[CaseResult] = []
    if expect is not None:
        scenario = with_expectations(read_scenario(given, conf, now), expect)
        cases = (runner.run_scenario(scenario, make_scheduler, options) for _ in (scenario,))
    else:
        jobs = 1 if STDIN in given else jobs
        cases = runner.run_files(
            files, make_scheduler=make_scheduler, options=options, jobs=jobs, stop_early=stop_early
        )
    with closing(cases):  # so that Ctrl-C ends the workers
        for result in cases:
            results.append(result)
            if output == "table":  # data for programs comes in the end, whole
                _print_failure(result)
    if junit is not None:
        runner.write_junit(results, junit)
    skipped = 0 if stop_early or expect else len(files) - len(results)
    apart = _apart(given, substring)
    if not results:
        raise _nothing_found(given, substring, apart)
    ctx.exit(_sum_up(results, skipped, apart, output))


def _nothing_found(given: Sequence[Path], substring: str, apart: str) -> click.UsageError:
    names = ", ".join(map(shown_name, given))
    chosen = f" with {substring!r} in its path" if substring else ""
    return click.UsageError(f"{names}: no scenario found{chosen}{f'; {apart}' if apart else ''}")


def _apart(given: Sequence[Path], substring: str) -> str:
    """Describe the scenarios of folders that are run only by name: they need a plugin each."""
    folders = [path for path in given if path.is_dir()]
    found = {one for folder in folders for one in folder.rglob(f"*{_APART}") if one.is_file()}
    found = {one for one in found if substring in str(one)} - {*given}
    if not found:
        return ""
    files = counted(len(found), f"{_APART} file")
    shown = first_of([str(one) for one in sorted(found)], 2)
    return f"{files} not run: {shown}; name one, with its --plugin"


def _sum_up(results: list[CaseResult], skipped: int, apart: str, output: str) -> int:
    """Print the results; return the exit code, 2 if nothing could be run."""
    passed, failed, errors = _counts(results)
    if output == "table":
        print_summary(_by_folder(results))
    else:
        print_data(_to_data(results), output)
    if skipped:
        echo(f"{skipped} other files in these folders are not scenarios", err=True)
    if output == "table":
        more = f", {counted(errors, 'error')}" if errors else ""
        echo(f"{passed} passed, {failed} failed{more}")
    if apart:
        echo(f"note: {apart}", err=True)
    if errors == len(results):
        return 2
    return 0 if passed == len(results) else 1


def _counts(results: Sequence[CaseResult]) -> list[int]:
    """Count the cases that passed, that failed and that could not be run."""
    return [
        sum(result.outcome == outcome for result in results)
        for outcome in ("passed", "failed", "error")
    ]


def _to_data(results: list[CaseResult]) -> dict[str, Any]:
    cases = [
        {
            "path": str(result.path),
            "outcome": result.outcome,
            "differences": list(result.differences),
            "seconds": round(result.seconds, 4),
            "warnings": list(result.warnings),
            **_details(result),
        }
        for result in results
    ]
    passed, failed, errors = _counts(results)
    return {"passed": passed, "failed": failed, "errors": errors, "cases": cases}


def _details(result: CaseResult) -> dict[str, Any]:
    """Return what a case that did not pass tells besides."""
    if result.outcome == "passed":
        return {}
    return {"name": result.name, "failures": [each.to_data() for each in result.failures]}


def _print_failure(result: CaseResult) -> None:
    for warning in result.warnings:
        echo(f"warning: {warning}", err=True)
    if result.outcome == "passed":
        return
    name = f": {result.name}" if result.name else ""
    echo(f"{'FAIL ' if result.outcome == 'failed' else 'ERROR'} {result.path}{name}")
    told: set[str] = set()
    reasons = [each.because for each in result.failures] or [()] * len(result.differences)
    shown = zip(result.differences[:_SHOWN_DIFFERENCES], reasons, strict=False)
    for difference, because in shown:
        echo(f"      {difference}")
        for reason in because:
            if reason not in told:
                echo(f"        because {reason}")
        told.update(because)
    hidden = len(result.differences) - _SHOWN_DIFFERENCES
    if hidden > 0:
        echo(f"      … and {hidden} more")


def _by_folder(results: Sequence[CaseResult]) -> Iterator[Row]:
    """Sum up the results of each folder."""
    folders: dict[Path, list[CaseResult]] = {}
    for result in results:
        folders.setdefault(result.path.parent, []).append(result)
    for folder, inside in folders.items():
        numbers = _counts(inside)
        seconds = sum(result.seconds for result in inside)
        cells = (str(folder), *map(str, numbers), f"{seconds:.2f} s")
        yield Row(cells, is_bad=any(numbers[1:]))
