"""Errors and settings without effect in a configuration, for every command."""

from collections.abc import Iterable, Mapping

from pumice.actions import ACTIONS
from pumice.api.conf import Problem, SchedulerConf
from pumice.cli.command_lines.plugin_option import PluginSources
from pumice.cli.terminal import echo
from pumice.errors import ConfError
from pumice.framework.conf_check import check_conf, errors_of
from pumice.framework.plugin import Plugin
from pumice.framework.registry import known_plugins, load_plugins
from pumice.plugins import builtin_plugins


def conf_problems(conf: SchedulerConf, plugins: PluginSources = ()) -> list[Problem]:
    """List every error, setting without effect and oddity of a configuration, by line."""
    return check_conf(conf, all_plugins(plugins), ACTIONS)


def warn_of_conf(conf: SchedulerConf, source: str, plugins: PluginSources = ()) -> None:
    """Warn on stderr about settings without effect, refuse a configuration with errors.

    Raises:
        ConfError: It cannot be used.
    """
    problems = conf_problems(conf, plugins)
    if errors := errors_of(problems):
        raise ConfError(errors, file=source)
    print_warnings(problems, source)


def print_warnings(problems: Iterable[Problem], source: str) -> None:
    """Print on stderr the problems that are only warnings."""
    for problem in problems:
        if problem.severity != "error":
            in_vain = "; it has no effect" if problem.severity == "ignored" else ""
            echo(f"warning: {source}: {problem}{in_vain}", err=True)


def all_plugins(plugins: PluginSources) -> Mapping[str, type[Plugin]]:
    """Return all plugins by name: built-in, installed and those named on the command line."""
    return known_plugins(builtin_plugins(), load_plugins(plugins))
