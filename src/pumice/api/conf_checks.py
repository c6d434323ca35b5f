"""Names in a configuration that do not exist, and entries that occur twice.

Used by everything that checks a configuration; receives the existing names.
"""

from collections import Counter
from collections.abc import Collection
from typing import Final

from pumice.api.conf import PluginConf, SchedulerConf
from pumice.api.conf_lines import Problem, Severity
from pumice.api.wording import name_hint
from pumice.errors import Words

_OWN: Final = "install one of your own as a package, or give its file with --plugin"


def check_names(
    conf: SchedulerConf, actions: Collection[str], plugins: Collection[str]
) -> list[Problem]:
    """List the actions and plugins of a configuration that do not exist.

    Arguments for an action that does not exist are only ignored: nothing would run otherwise.
    """
    problems = [
        _unknown("a known action", name, actions, line=conf.actions_line, path="actions")
        for name in conf.actions
        if name not in actions
    ]
    problems += [
        _unknown(
            "a known plugin", plugin.name, plugins, line=plugin.line, path=plugin.path, hint=_OWN
        )
        for tier in conf.tiers
        for plugin in tier.plugins
        if plugin.name not in plugins
    ]
    problems += [
        _unknown(
            "a known action",
            name,
            actions,
            line=conf.configuration_lines.get(name, 0),
            path="configurations",
            severity="ignored",
            hint="no action has this name",
        )
        for name in conf.configurations
        if name not in actions
    ]
    return problems


def check_repeats(conf: SchedulerConf) -> list[Problem]:
    """List actions and plugins that occur twice; each is then run or asked twice."""
    problems = [
        Problem(
            line=conf.actions_line,
            field="actions",
            wanted="each action once",
            found=Words(f"{name} {n} times"),
            hint=f"it runs {n} times in each cycle",
            severity="odd",
        )
        for name, n in Counter(conf.actions).items()
        if n > 1
    ]
    first: dict[str, PluginConf] = {}
    for tier in conf.tiers:
        for plugin in tier.plugins:
            before = first.setdefault(plugin.name, plugin)
            if before is not plugin:
                hint = f"also on line {before.line}; it is asked twice"
                problems.append(
                    Problem(
                        line=plugin.line,
                        field=plugin.path,
                        wanted="each plugin once",
                        found=plugin.name,
                        hint=hint,
                        severity="odd",
                    )
                )
    return problems


def _unknown(
    wanted: str,
    name: str,
    names: Collection[str],
    *,
    line: int,
    path: str,
    severity: Severity = "error",
    hint: str = "",
) -> Problem:
    return Problem(
        line=line,
        field=path,
        wanted=wanted,
        found=name,
        hint=name_hint(name, names) or hint,
        severity=severity,
    )
