"""`pumice diff`: two configurations side by side, on a cluster and by policy tests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.api.text_files import shown_name
from pumice.cli.inputs import all_plugins, end_if_plugins_failed, read_world
from pumice.cli.options import (
    EXISTING,
    ClusterInput,
    PluginSources,
    files_option,
    now_option,
    output_option,
    plugin_option,
)
from pumice.cli.printing import echo, print_data
from pumice.cli.signoff import Signing, print_breaches, print_tables, signing_options

if TYPE_CHECKING:
    from pumice.diagnosis.cluster_state import ClusterState
    from pumice.diagnosis.conf_diff import ConfDiff
    from pumice.diagnosis.signoff_tables import Table
    from pumice.scenarios.runner import CaseResult

_CONF = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("old", metavar="OLD.conf", type=_CONF)
@click.argument("new", metavar="NEW.conf", type=_CONF)
@click.argument("tests", metavar="[TESTS]...", nargs=-1, type=EXISTING)
@files_option(
    "files",
    "The cluster: manifests, a dump, a snapshot or a record; a file or a folder, may be given "
    "several times. Without it, configurations and tests are compared.",
)
@now_option("cluster")
@click.option(
    "--report",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write everything as one HTML page.",
)
@signing_options
@plugin_option
@output_option
@click.pass_context
def diff(
    ctx: click.Context,
    *,
    old: Path,
    new: Path,
    tests: tuple[Path, ...],
    files: tuple[Path, ...],
    now: str | None,
    report: Path | None,
    signing: Signing,
    plugins: PluginSources,
    output: str,
) -> None:
    """Compare two configurations: who decides what, first cycle, settled outcome, tests.

    Exits with 1 if a test fails under NEW.conf, or NEW.conf breaks a condition of --fail-on.
    """
    from pumice.api.named_files import read_conf_file
    from pumice.diagnosis.conf_diff import diff_confs

    signing.conditions  # noqa: B018  (a mistake is reported before anything runs)
    world = _world(files, old, now, plugins)
    text, source = read_conf_file(new)
    found = diff_confs(world, text, source, all_plugins(plugins), signing.terms())
    verdicts = [*zip(_run(tests, old, plugins), _run(tests, new, plugins), strict=True)]
    breaches = signing.breaches(None if found.outcome is None else found.outcome.signoff)
    tables = _with_tests(found.tables(), verdicts)
    if report is not None:
        _write(report, shown_name(old), shown_name(new), tables, breaches)
    if output == "table":
        _print(old, new, tables, breaches)
    else:
        print_data(_data(found, verdicts, breaches), output)
    end_if_plugins_failed(world)
    if breaches or any(result.outcome != "passed" for _, result in verdicts):
        ctx.exit(1)


def _world(
    files: tuple[Path, ...], conf: Path, now: str | None, plugins: PluginSources
) -> ClusterState:
    """Read the cluster under the old configuration; without files it has no objects."""
    from pumice.api.named_files import read_conf_file
    from pumice.diagnosis.cluster_state import ClusterState
    from pumice.framework.registry import load_plugins

    if files:
        return read_world(ClusterInput(files=files, conf=conf, now=now), plugins, warns=False)
    text, source = read_conf_file(conf)
    own = load_plugins(plugins)
    return ClusterState(objects=(), now=0.0, conf=text, conf_source=source, plugins=own)


def _run(tests: Sequence[Path], conf: Path, plugins: PluginSources) -> list[CaseResult]:
    """Run tests under a configuration, whatever they state themselves."""
    from pumice.scenarios import runner

    make_scheduler = partial(runner.default_scheduler, plugins=plugins)
    files = runner.find_scenarios(tests, conf=conf)
    return list(runner.run_files(files, make_scheduler=make_scheduler))


def _with_tests(
    tables: list[Table], verdicts: Sequence[tuple[CaseResult, CaseResult]]
) -> list[Table]:
    """Add the verdicts of tests: how many fail among the totals, each one in the end."""
    from pumice.diagnosis.signoff_tables import SIGN_OFF, Table

    if not verdicts:
        return tables
    failed = [
        sum(each.outcome != "passed" for each in side) for side in zip(*verdicts, strict=True)
    ]
    total = ("tests that fail", *(f"{number} of {len(verdicts)}" for number in failed))
    if not any(each.title == SIGN_OFF for each in tables):
        tables = [Table(SIGN_OFF, ("", "old", "new"), []), *tables]
    for each in tables:
        if each.title == SIGN_OFF:
            each.rows.append(total)
    rows: list[tuple[str, ...]] = [
        (_case(new), old.outcome, new.outcome, next(iter(new.differences), ""))
        for old, new in verdicts
    ]
    return [*tables, Table("Tests", ("test", "old", "new", "why it fails"), rows)]


def _case(result: CaseResult) -> str:
    words = f" [{result.words}]" if result.words else ""
    return f"{shown_name(result.path)}{words}"


def _data(
    found: ConfDiff, verdicts: Sequence[tuple[CaseResult, CaseResult]], breaches: list[str]
) -> dict[str, Any]:
    tests = [
        {
            "path": str(new.path),
            **({"case": new.words} if new.words else {}),
            "old": old.outcome,
            "new": new.outcome,
            "differences": {"old": list(old.differences), "new": list(new.differences)},
        }
        for old, new in verdicts
    ]
    return found.to_dict() | {"tests": tests, "breaches": breaches}


def _print(old: Path, new: Path, tables: Sequence[Table], breaches: Sequence[str]) -> None:
    if tables:
        print_tables(tables)
    else:
        echo(f"{shown_name(old)} and {shown_name(new)} do the same")
    print_breaches(breaches)


def _write(
    report: Path, old: str, new: str, tables: Sequence[Table], breaches: Sequence[str]
) -> None:
    """Write the page; all that it shows is escaped."""
    from importlib import resources

    from jinja2 import Environment, StrictUndefined

    from pumice.api.output_files import make_folder, write_file

    text = resources.files(__package__).joinpath("diff.html").read_text(encoding="utf-8")
    page = Environment(autoescape=True, undefined=StrictUndefined).from_string(text)
    make_folder(report.parent)
    write_file(report, page.render(old=old, new=new, tables=tables, breaches=breaches))
