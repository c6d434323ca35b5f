"""What is wrong in a configuration or said in vain, as every command finds and tells it."""

from collections.abc import Iterable
from typing import Any

import click

from pumice.actions import ACTIONS
from pumice.api.conf import Problem, SchedulerConf
from pumice.cli.command_lines.plugin_option import PluginSources
from pumice.errors import ConfError
from pumice.framework.conf_check import check_conf, errors_of
from pumice.framework.plugin_loading import load_plugins
from pumice.framework.registry import known_plugins
from pumice.plugins import builtin_plugins


def conf_problems(conf: SchedulerConf, plugins: PluginSources = ()) -> list[Problem]:
    """List everything wrong, in vain or odd in a configuration, in the order of its lines."""
    return check_conf(conf, all_plugins(plugins), ACTIONS)


def warn_of_conf(conf: SchedulerConf, source: str, plugins: PluginSources = ()) -> None:
    """Warn on stderr of what a configuration says in vain, refuse what cannot be meant.

    Raises:
        ConfError: It cannot be used.
    """
    problems = conf_problems(conf, plugins)
    if errors := errors_of(problems):
        raise ConfError(errors, file=source)
    print_warnings(problems, source)


def print_warnings(problems: Iterable[Problem], source: str) -> None:
    """Print on stderr the problems that refuse nothing."""
    for problem in problems:
        if problem.severity != "error":
            in_vain = "; it has no effect" if problem.severity == "ignored" else ""
            click.echo(f"warning: {source}: {problem}{in_vain}", err=True)


def all_plugins(plugins: PluginSources) -> dict[str, Any]:
    """Return all plugins by name: built-in, installed and those that were named."""
    return known_plugins(builtin_plugins(), load_plugins(plugins))
