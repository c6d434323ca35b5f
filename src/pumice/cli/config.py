"""`pumice config check` and `pumice plugin`: what a configuration has and what it may have."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.api.wording import nearest
from pumice.cli.inputs import all_plugins, conf_problems, print_warnings
from pumice.cli.options import (
    SOURCE,
    PluginSources,
    moment_of,
    now_option,
    output_option,
    plugin_option,
)
from pumice.cli.printing import echo, echo_lines, print_data, print_findings, print_rows
from pumice.errors import ManifestError

if TYPE_CHECKING:
    from pumice.api.conf import Problem, SchedulerConf
    from pumice.diagnosis.cluster_state import ClusterState
    from pumice.framework.arguments import ArgumentRow


_Deciding = tuple[str, str, str, list[str]]
"""A hook, its switch, how answers are joined, and the plugins that decide, tier by tier."""


@click.group()
def config() -> None:
    """Check a scheduler configuration."""


@config.command("check")
@click.argument(
    "file",
    metavar="[FILE|-]",
    required=False,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option(
    "--cluster",
    "files",
    metavar="FILE",
    multiple=True,
    type=SOURCE,
    help="The cluster that it is for: manifests, a dump, a snapshot or a record, a file or a "
    "folder; may be given several times. Without FILE, its configuration is checked.",
)
@now_option("cluster")
@click.option("--strict", is_flag=True, help="Exit with 1 on warnings too.")
@plugin_option
@output_option
@click.pass_context
def check(
    ctx: click.Context,
    *,
    file: Path | None,
    files: tuple[Path, ...],
    now: str | None,
    strict: bool,
    plugins: PluginSources,
    output: str,
) -> None:
    """Show what a scheduler would refuse or warn about.

    Also shows which plugins decide what. With --cluster, queues, priorities and nodes are looked
    at together with it, and each warning has the smallest change that helps.

    FILE may be a scenario, which has its configuration inside; - reads standard input. Exits with 1
    if a scheduler would refuse FILE.
    """
    from pumice.api.conf import read_conf
    from pumice.framework.conf_check import errors_of
    from pumice.framework.registry import deciding_order

    if file is None and not files:
        raise click.UsageError("nothing to check; name a configuration, or a --cluster that has it")
    world = _cluster(files, now)
    text, source = _conf_text(file) if file is not None else (world.conf, world.conf_source)
    conf = read_conf(text)
    problems = conf_problems(conf, plugins)
    errors = errors_of(problems)
    if files and not errors:
        from pumice.diagnosis.conf_in_cluster import check_in_cluster

        problems += check_in_cluster(conf, all_plugins(plugins), world)
    deciding = [] if errors else deciding_order(conf, all_plugins(plugins))
    if output == "table":
        _print_check(source, conf, problems, deciding)
    else:
        print_data(_checked(source, conf, problems, deciding), output)
    if errors or (strict and problems):
        ctx.exit(1)


@click.group()
def plugin() -> None:
    """List and describe plugins."""


@plugin.command("list")
@plugin_option
@output_option
def list_plugins(*, plugins: PluginSources, output: str) -> None:
    """List all plugins with one line for each."""
    rows = [(name, _summary(cls)) for name, cls in sorted(all_plugins(plugins).items())]
    if output == "table":
        print_rows(("plugin", "what it does"), rows)
    else:
        print_data([{"name": name, "summary": summary} for name, summary in rows], output)


@plugin.command("show")
@click.argument("name", metavar="NAME")
@plugin_option
@output_option
def show_plugin(*, name: str, plugins: PluginSources, output: str) -> None:
    """Describe the plugin NAME: its extension points and its arguments."""
    from msgspec.structs import asdict

    from pumice.framework.arguments import describe_arguments
    from pumice.framework.plugin import HOOKS, implements

    known = all_plugins(plugins)
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean '{near}'?" if near else "see 'pumice plugin list'"
        raise click.UsageError(f"unknown plugin '{name}'; {hint}")
    cls = known[name]
    text = _description(cls)
    hooks = [
        (hook.name, hook.volcano, hook.switch, hook.rule.words, _summary(getattr(cls, hook.name)))
        for hook in HOOKS.values()
        if implements(cls, hook.name)
    ]
    arguments = describe_arguments(cls)
    if output == "table":
        _print_plugin(name, text, hooks, arguments)
        return
    keys = ("name", "volcano", "switch", "rule", "text")
    named = [dict(zip(keys, hook, strict=True)) for hook in hooks]
    shown = [asdict(row) for row in arguments]
    print_data({"name": name, "text": text, "hooks": named, "arguments": shown}, output)


def _cluster(files: Sequence[Path], now: str | None) -> ClusterState:
    """Read the cluster that a configuration is for."""
    from pumice.diagnosis.cluster_state import ClusterState
    from pumice.diagnosis.sources import load_world

    if not files:
        return ClusterState(objects=(), now=0.0)
    return load_world(files, None, moment_of(now, files))


def _conf_text(file: Path) -> tuple[str, str]:
    """Return the text of a configuration and its place; a scenario has its own inside."""
    from pumice.api.manifests import load_values
    from pumice.api.named_files import read_conf_file
    from pumice.scenarios.scenario import conf_of, is_scenario

    text, source = read_conf_file(file)
    try:
        values = load_values(f"{text}\n")
    except ManifestError:  # the check of the configuration names the line
        return text, source
    if len(values) == 1 and is_scenario(values[0]):
        return conf_of(Path(source), values[0])
    return text, source


def _checked(
    source: str, conf: SchedulerConf, problems: Sequence[Problem], deciding: Sequence[_Deciding]
) -> dict[str, Any]:
    """Return the result of a check as plain data."""
    from pumice.framework.conf_check import errors_of

    found = [
        {
            "line": one.line,
            "field": one.path,
            "severity": one.severity,
            "message": one.message,
            "hint": one.hint,
        }
        for one in problems
    ]
    return {
        "file": source,
        "usable": not errors_of(problems),
        "problems": found,
        "actions": list(conf.actions),
        "hooks": [
            {"hook": hook, "switch": switch, "rule": rule, "plugins": tiers}
            for hook, switch, rule, tiers in deciding
        ],
    }


def _print_check(
    source: str, conf: SchedulerConf, problems: Sequence[Problem], deciding: Sequence[_Deciding]
) -> None:
    from pumice.framework.conf_check import errors_of

    errors = errors_of(problems)
    print_findings(f"{source}: {problem}" for problem in errors)
    print_warnings(problems, source)
    if errors:
        return
    echo(f"{source}: {'no errors' if problems else 'no problems'}")
    echo(f"actions: {', '.join(conf.actions)}")
    rows = [(hook, flag, rule, ", then ".join(tiers)) for hook, flag, rule, tiers in deciding]
    print_rows(("hook", "switch", "rule", "plugins in order"), rows)


def _print_plugin(
    name: str, text: str, hooks: Sequence[Sequence[str]], arguments: Sequence[ArgumentRow]
) -> None:
    echo(name)
    echo_lines(f"\n{text}\n\n")
    print_rows(("hook", "what it decides"), [(hook[0], hook[-1]) for hook in hooks])
    echo()
    print_rows(("hook", "in Volcano", "switch", "how answers are joined"), [h[:-1] for h in hooks])
    echo()
    rows = [(row.key, row.type, row.default, row.bounds, row.doc) for row in arguments]
    if rows:
        print_rows(("argument", "type", "default", "bounds", "what it does"), rows)
    else:
        echo("no arguments")


def _summary(documented: object) -> str:
    return _description(documented).partition("\n")[0]


def _description(documented: object) -> str:
    """Return a docstring without the marks of code that a terminal would show."""
    return (inspect.getdoc(documented) or "").replace("``", "")
