"""`pumice config check` and `pumice plugin`: what a configuration says and what it can say."""

import inspect
from pathlib import Path
from typing import Any

import click

from pumice.api.conf import Problem, SchedulerConf, read_conf
from pumice.api.text_files import read_text
from pumice.api.wording import nearest
from pumice.cli.command_lines.plugin_option import PluginSources
from pumice.cli.conf_problems import all_plugins, conf_problems
from pumice.cli.tables import print_rows
from pumice.cluster.usage import usage_source
from pumice.errors import ConfError
from pumice.framework.arguments import describe_arguments
from pumice.framework.plugin import HOOKS, implements
from pumice.framework.registry import deciding_order
from pumice.framework.victim_guards import check_guards


def check(ctx: click.Context, *, file: Path, plugins: PluginSources) -> None:
    """Print what is wrong in a configuration, or which plugins decide what."""
    conf = read_conf(read_text(file))
    problems = sorted([*conf_problems(conf, plugins), *_metrics_problems(conf)], key=_line)
    for problem in problems:
        click.echo(f"{file}: {problem}{_weight(problem)}")
    if problems:
        ctx.exit(1)
    for problem in check_guards(conf, all_plugins(plugins)):
        click.echo(f"warning: {file}: {problem}", err=True)
    click.echo(f"{file}: no problems")
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


def _metrics_problems(conf: SchedulerConf) -> list[Problem]:
    """List what is wrong in the section that says where the use of nodes is measured."""
    try:
        usage_source(conf.metrics)
    except ConfError as error:
        found = error.problems
    else:
        return []
    lines, out = conf.metrics_lines, []
    for each in found:
        key = each.field.removeprefix("metrics.").removeprefix("metrics")
        key = key or str(each.found)
        if key.startswith("tls.") and key not in lines:
            continue  # a file that is there in the pod of a scheduler only
        line = lines.get(key, lines.get("", 0))
        out.append(
            Problem(
                line=line, field=each.field, wanted=each.wanted, found=each.found, hint=each.hint
            )
        )
    return out


def _line(problem: Problem) -> int:
    return problem.line


def _weight(problem: Problem) -> str:
    return "; it has no effect" if problem.severity == "ignored" else ""


def _summary(cls: type[Any]) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]
