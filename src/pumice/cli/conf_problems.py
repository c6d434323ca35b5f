"""What is wrong in a configuration or said in vain, as every command finds and tells it."""

from typing import Any

import click

from pumice.actions import ACTIONS
from pumice.api.conf import Problem, SchedulerConf
from pumice.cli.command_lines.plugin_option import PluginSources
from pumice.errors import ConfError
from pumice.framework.plugin_loading import load_plugins
from pumice.framework.registry import check_conf, known_plugins
from pumice.plugins import builtin_plugins


def conf_problems(conf: SchedulerConf, plugins: PluginSources = ()) -> list[Problem]:
    """List everything wrong or ignored in a configuration, in the order of its lines."""
    problems = check_conf(conf, all_plugins(plugins), ACTIONS)
    return sorted(problems, key=lambda problem: problem.line)


def warn_of_conf(conf: SchedulerConf, source: str, plugins: PluginSources = ()) -> None:
    """Warn of what a configuration says in vain, refuse what cannot be meant.

    Raises:
        ConfError: It cannot be used.
    """
    problems = conf_problems(conf, plugins)
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise ConfError(errors, file=source)
    for problem in problems:
        click.echo(f"warning: {source}: {problem}", err=True)


def all_plugins(plugins: PluginSources) -> dict[str, Any]:
    """Return all plugins by name: built-in, installed and those that were named."""
    return known_plugins(builtin_plugins(), load_plugins(plugins))
