"""`pumice config check` and `pumice plugin`: what a configuration has and what it may have."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec.structs import asdict

from pumice.api.conf import Problem, SchedulerConf, read_conf
from pumice.api.manifests import load_values
from pumice.api.named_files import read_conf_file
from pumice.api.wording import nearest
from pumice.cli.command_lines.plugin_option import PluginSources
from pumice.cli.conf_problems import all_plugins, conf_problems, print_warnings
from pumice.cli.printing import print_data
from pumice.cli.tables import print_rows
from pumice.cli.terminal import echo, echo_lines
from pumice.errors import ManifestError
from pumice.framework.arguments import ArgumentRow, describe_arguments
from pumice.framework.conf_check import errors_of
from pumice.framework.plugin import HOOKS, implements
from pumice.framework.registry import deciding_order
from pumice.scenarios.scenario import conf_of, is_scenario

_Deciding = tuple[str, str, str, list[str]]
"""A hook, its switch, how answers are joined, and the plugins that decide, tier by tier."""


def check(
    ctx: click.Context, *, file: Path, strict: bool, plugins: PluginSources, output: str
) -> None:
    """Print what a scheduler would refuse or warn about, and which plugins decide what."""
    text, source = _conf_text(file)
    conf = read_conf(text)
    problems = conf_problems(conf, plugins)
    errors = errors_of(problems)
    deciding = [] if errors else deciding_order(conf, all_plugins(plugins))
    if output == "table":
        _print_check(source, conf, problems, deciding)
    else:
        print_data(_checked(source, conf, problems, deciding), output)
    if errors or (strict and problems):
        ctx.exit(1)


def _conf_text(file: Path) -> tuple[str, str]:
    """Return the text of a configuration and its place; a scenario has its own inside."""
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
    errors = errors_of(problems)
    for problem in errors:
        echo(f"{source}: {problem}")
    print_warnings(problems, source)
    if errors:
        return
    echo(f"{source}: {'no errors' if problems else 'no problems'}")
    echo(f"actions: {', '.join(conf.actions)}")
    rows = [(hook, flag, rule, ", then ".join(tiers)) for hook, flag, rule, tiers in deciding]
    print_rows(("hook", "switch", "rule", "plugins in order"), rows)


def list_plugins(*, plugins: PluginSources, output: str) -> None:
    """Print all plugins with one line for each."""
    rows = [(name, _summary(cls)) for name, cls in sorted(all_plugins(plugins).items())]
    if output == "table":
        print_rows(("plugin", "what it does"), rows)
    else:
        print_data([{"name": name, "summary": summary} for name, summary in rows], output)


def show_plugin(*, name: str, plugins: PluginSources, output: str) -> None:
    """Print the extension points and arguments of a plugin."""
    known = all_plugins(plugins)
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean '{near}'?" if near else "see 'pumice plugin list'"
        raise click.UsageError(f"no plugin is named '{name}'; {hint}")
    text = _description(known[name])
    hooks = [
        (hook.name, hook.volcano, hook.switch, hook.rule.words)
        for hook in HOOKS.values()
        if implements(known[name], hook.name)
    ]
    arguments = describe_arguments(known[name])
    if output == "table":
        _print_plugin(name, text, hooks, arguments)
        return
    named = [dict(zip(("name", "volcano", "switch", "rule"), hook, strict=True)) for hook in hooks]
    shown = [asdict(row) for row in arguments]
    print_data({"name": name, "text": text, "hooks": named, "arguments": shown}, output)


def _print_plugin(
    name: str, text: str, hooks: Sequence[Sequence[str]], arguments: Sequence[ArgumentRow]
) -> None:
    echo(name)
    echo_lines(f"\n{text}\n\n")
    print_rows(("hook", "in Volcano", "switch", "how answers are joined"), hooks)
    echo()
    rows = [(row.key, row.type, row.default, row.bounds, row.doc) for row in arguments]
    if rows:
        print_rows(("argument", "type", "default", "bounds", "what it does"), rows)
    else:
        echo("no arguments")


def _summary(cls: type[Any]) -> str:
    return _description(cls).partition("\n")[0]


def _description(cls: type) -> str:
    """Return the docstring of a class, without the marks of code that a terminal would show."""
    return (inspect.getdoc(cls) or "").replace("``", "")
