"""`pumice config check` and `pumice plugin`: what a configuration has and what it may have."""

import inspect
from pathlib import Path
from typing import Any

import click

from pumice.api.conf import SchedulerConf, read_conf
from pumice.api.text_files import read_text
from pumice.api.wording import nearest
from pumice.cli.command_lines.plugin_option import PluginSources
from pumice.cli.conf_problems import all_plugins, conf_problems, print_warnings
from pumice.cli.tables import print_rows
from pumice.framework.arguments import describe_arguments
from pumice.framework.conf_check import errors_of
from pumice.framework.plugin import HOOKS, implements
from pumice.framework.registry import deciding_order


def check(ctx: click.Context, *, file: Path, strict: bool, plugins: PluginSources) -> None:
    """Print what a scheduler would refuse or warn about, and which plugins decide what."""
    conf = read_conf(read_text(file))
    problems = conf_problems(conf, plugins)
    errors = errors_of(problems)
    for problem in errors:
        click.echo(f"{file}: {problem}")
    print_warnings(problems, str(file))
    if not errors:
        _print_deciding(file, conf, plugins, verdict="no errors" if problems else "no problems")
    if errors or (strict and problems):
        ctx.exit(1)


def _print_deciding(file: Path, conf: SchedulerConf, plugins: PluginSources, verdict: str) -> None:
    click.echo(f"{file}: {verdict}")
    click.echo(f"actions: {', '.join(conf.actions)}")
    rows = [
        (hook, flag, rule, ", then ".join(tiers))
        for hook, flag, rule, tiers in deciding_order(conf, all_plugins(plugins))
    ]
    print_rows(("hook", "switch", "rule", "plugins in order"), rows)


def list_plugins(*, plugins: PluginSources) -> None:
    """Print all plugins with one line for each."""
    rows = [(name, _summary(cls)) for name, cls in sorted(all_plugins(plugins).items())]
    print_rows(("plugin", "what it does"), rows)


def show_plugin(*, name: str, plugins: PluginSources) -> None:
    """Print the extension points and arguments of a plugin."""
    known = all_plugins(plugins)
    if name not in known:
        near = nearest(name, known)
        hint = f"did you mean '{near}'?" if near else "see 'pumice plugin list'"
        raise click.UsageError(f"no plugin is named '{name}'; {hint}")
    click.echo(f"{name}\n\n{inspect.getdoc(known[name]) or ''}\n")
    hooks = [
        (hook.name, hook.volcano, hook.switch, hook.rule.words)
        for hook in HOOKS.values()
        if implements(known[name], hook.name)
    ]
    print_rows(("hook", "in Volcano", "switch", "how answers are joined"), hooks)
    click.echo()
    rows = [
        (row.key, row.type, row.default, row.bounds, row.doc)
        for row in describe_arguments(known[name])
    ]
    if rows:
        print_rows(("argument", "type", "default", "bounds", "what it does"), rows)
    else:
        click.echo("no arguments")


def _summary(cls: type[Any]) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]
