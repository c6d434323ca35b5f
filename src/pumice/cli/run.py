"""`pumice run`: run one scenario or plain manifests and print the decisions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pumice.api.text_files import STDIN, read_text
from pumice.api.wording import counted
from pumice.cli.inputs import hold_manifests, read_scenario, warn_of_conf
from pumice.cli.options import EXISTING, PluginSources, manifest_options, output_of, plugin_option
from pumice.cli.printing import echo, print_data, print_decisions

if TYPE_CHECKING:
    from pumice.scenarios.scenario import Scenario


_NAMED: Final = 3
"""Refused pods that are named before the rest is only counted."""


@click.command()
@click.argument("files", metavar="[FILE]...", nargs=-1, type=EXISTING)
@manifest_options
@output_of("decisions")
@click.option("--write", is_flag=True, help="Put the decisions into the scenario in FILE.")
@plugin_option
@click.pass_context
def run(
    ctx: click.Context,
    *,
    files: tuple[Path, ...],
    more_files: tuple[Path, ...],
    conf: Path | None,
    now: str | None,
    output: str,
    write: bool,
    plugins: PluginSources,
) -> None:
    """Run the scenario in FILE, or plain manifests, and print the decisions.

    Exits with 1 if a plugin failed; the other plugins still decide.
    """
    from pumice.scenarios.runner import default_scheduler, play
    from pumice.scenarios.writeback import expectations

    given = (*files, *more_files)
    if not given:
        raise click.UsageError("name a scenario, manifests or - for the input")
    if write and (len(given) > 1 or given[0] == STDIN or hold_manifests(given[0])):
        raise click.UsageError("--write needs one file with a scenario")
    scenario = read_scenario(given, conf, now)
    _warn(scenario, plugins)
    played = play(scenario, partial(default_scheduler, plugins=plugins))
    expect = expectations(scenario, played)
    failures = dict.fromkeys(line for cycle in played for line in cycle.decisions.failures)
    if write and not failures:  # before printing, which a closed pipe may end
        _write(scenario.path, expect)
    if output == "table":
        print_decisions([cycle.decisions for cycle in played])
    else:
        print_data(expect, output)
    _note_refused(played[0].refused)
    for line in failures:
        echo(f"error: {line}", err=True)
    if write and failures:
        echo(f"did not write {scenario.path}: a plugin failed", err=True)
    if failures:
        ctx.exit(1)


def _warn(scenario: Scenario, plugins: PluginSources) -> None:
    """Warn on stderr about settings without effect and oddities; refuse errors."""
    from pumice.api.conf import read_conf
    from pumice.scenarios.suspicious_objects import doubts

    warn_of_conf(read_conf(scenario.conf), scenario.conf_source, plugins)
    for number, doubt in doubts(scenario.objects):
        echo(f"warning: {scenario.line(number)}: {doubt}", err=True)


def _note_refused(refused: Mapping[str, str]) -> None:
    """Print which pods an API server would refuse, and in whose words."""
    for pod, words in list(refused.items())[:_NAMED]:
        echo(f"note: pod {pod} is not there: {words}", err=True)
    if len(refused) > _NAMED:
        more = counted(len(refused) - _NAMED, "more pod")
        echo(f"note: an API server would refuse {more}", err=True)


def _write(file: Path, expect: dict[str, object]) -> None:
    from pumice.scenarios.writeback import loses_comments, write_expectations

    lost = file.suffix != ".json" and loses_comments(read_text(file))
    write_expectations(file, expect)
    note = "; comments inside expect were dropped" if lost else ""
    echo(f"wrote expect of {file}, the rest is unchanged{note}", err=True)
