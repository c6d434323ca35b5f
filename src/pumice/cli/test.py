"""`pumice test`: run scenario files, print the differences, sum up."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

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
from pumice.cli.test_results import print_failure, print_mutants, sum_up

if TYPE_CHECKING:
    from pumice.scenarios.compare import CompareOptions
    from pumice.scenarios.runner import CaseResult, ScenarioFile, SchedulerFactory


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
@click.option(
    "--mutate",
    is_flag=True,
    help="Change one line of the configuration at a time; list changes that no test notices.",
)
@click.option("--watch", is_flag=True, help="Run again whenever a file changes, until Ctrl-C.")
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
    mutate: bool,
    watch: bool,
    plugins: PluginSources,
    output: str,
) -> None:
    """Run scenario files, or all in a folder, and compare with their expectations.

    Plain manifests are one case with --expect.
    """
    from pumice.scenarios.compare import CompareOptions
    from pumice.scenarios.runner import default_scheduler

    given = (*paths, *more_files)
    _refuse(given, now=now, expect=expect, repeated=mutate or watch, watch=watch)
    run = _Run(
        given=given,
        substring=substring,
        conf=conf,
        now=now,
        expect=expect,
        junit=junit,
        jobs=1 if STDIN in given else jobs,
        stop_early=stop_early,
        output=output,
        make_scheduler=partial(default_scheduler, plugins=plugins),
        options=CompareOptions(messages=messages, nominated=nominated),
    )
    if watch:
        from pumice.cli.watching import run_on_changes

        also = [Path(each) for each in (conf, *plugins) if each]
        once = run.mutated if mutate else run.once
        run_on_changes(once, lambda: [*given, *also, *run.named_files()])
    ctx.exit(run.mutated() if mutate else run.once())


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What is to be run, and how."""

    given: tuple[Path, ...]
    substring: str
    conf: Path | None
    now: str | None
    expect: Path | None
    junit: Path | None
    jobs: int | None
    stop_early: bool
    output: str
    make_scheduler: SchedulerFactory
    options: CompareOptions

    def _files(self) -> list[ScenarioFile]:
        from pumice.scenarios.runner import find_scenarios

        return find_scenarios(self.given, self.substring, self.conf)

    def named_files(self) -> list[Path]:
        """List the configurations and clusters that the scenarios name."""
        from pumice.scenarios.scenario import files_named_in

        return [named for file in self._files() for named in files_named_in(file.path)]

    def once(self) -> int:
        """Run all, print the results and return the exit code."""
        from pumice.scenarios import runner

        files: list[ScenarioFile] = []
        if self.expect is not None:
            scenario = read_scenario(self.given, self.conf, self.now)
            scenario = with_expectations(scenario, self.expect)
            one = runner.run_scenario(scenario, self.make_scheduler, self.options)
            cases = (each for each in (one,))
        else:
            files = self._files()
            cases = runner.run_files(
                files,
                make_scheduler=self.make_scheduler,
                options=self.options,
                jobs=self.jobs,
                stop_early=self.stop_early,
            )
        results = _printed(cases, self.output)
        if self.junit is not None:
            runner.write_junit(results, self.junit)
        apart = _apart(self.given, self.substring)
        if not results:
            raise _nothing_found(self.given, self.substring, apart)
        others = {each.path for each in files} - {each.path for each in results}
        return sum_up(results, 0 if self.stop_early else len(others), apart, self.output)

    def mutated(self) -> int:
        """Print which changes of the configurations no test notices; return the exit code."""
        from pumice.scenarios.mutating import mutation_results

        found = mutation_results(
            self._files(),
            make_scheduler=self.make_scheduler,
            options=self.options,
            jobs=self.jobs,
        )
        return print_mutants(found, self.output)


def _refuse(
    given: Sequence[Path],
    *,
    now: str | None,
    expect: Path | None,
    repeated: bool,
    watch: bool,
) -> None:
    """Refuse options that make no sense together."""
    if not given:
        raise click.UsageError("name scenarios, a folder of them or - for the input")
    if now is not None and expect is None:
        raise click.UsageError("--now needs --expect; a scenario states its own time")
    if expect is not None and repeated:
        raise click.UsageError("--mutate and --watch take scenarios, not --expect")
    if watch and STDIN in given:
        raise click.UsageError("--watch takes files, not the input")


def _printed(cases: Generator[CaseResult, None, None], output: str) -> list[CaseResult]:
    """Collect the results, and print failures as they come."""
    results = []
    with closing(cases):  # so that Ctrl-C ends the workers
        for result in cases:
            results.append(result)
            if output == "table":  # data for programs comes in the end, whole
                print_failure(result)
    return results


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
