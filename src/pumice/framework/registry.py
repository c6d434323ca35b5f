"""Names to plugin and action classes: the built-ins, what entry points add, what a caller adds.

A registry is a value handed to the scheduler; nothing registers itself on import.
"""

from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

from pumice.api.conf import PluginConf, Problem, SchedulerConf
from pumice.api.conf_checks import check_names, check_repeats
from pumice.api.conf_lines import summary
from pumice.framework.action_arguments import ACTION_ARGUMENTS, NoArguments
from pumice.framework.arguments import bind_arguments
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import HOOKS, Plugin

GROUP = "pumice.plugins"


def known_plugins(
    builtin: Mapping[str, type[Plugin]], more: Mapping[str, type[Plugin]]
) -> dict[str, type[Plugin]]:
    """Return all plugins by name: an installed one goes before a built-in, ``more`` before both."""
    return {**builtin, **installed_plugins(), **more}


def installed_plugins() -> dict[str, type[Plugin]]:
    """Load plugins that other distributions offer under the entry-point group.

    One that cannot be loaded is stood in for by a class that says so when it is configured.
    """
    return {entry.name: _load(entry) for entry in metadata.entry_points(group=GROUP)}


def _load(entry: metadata.EntryPoint) -> type[Plugin]:
    try:
        cls = entry.load()
    except Exception as error:  # noqa: BLE001  # a plugin is foreign code
        return _broken(entry, f"{type(error).__name__}: {error}")
    if isinstance(cls, type) and issubclass(cls, Plugin):
        return cls
    return _broken(entry, "it is no subclass of pumice.plugin.Plugin")


def _broken(entry: metadata.EntryPoint, why: str) -> type[Plugin]:
    class Broken(Plugin, name=entry.name):
        __doc__ = f"Of no use: {entry.value} cannot be loaded: {why}."
        trouble = f"{entry.value} cannot be loaded: {why}"

    return Broken


def build_tiers(
    conf: SchedulerConf, plugins: Mapping[str, type[Plugin]]
) -> tuple[list[list[Enabled]], list[Problem]]:
    """Make a fresh instance of every configured plugin; say what was ignored on the way."""
    problems: list[Problem] = []
    tiers = []
    for tier in conf.tiers:
        entries = []
        for entry in tier.plugins:
            cls = plugins[entry.name]
            fields, found = bind_arguments(cls, entry.arguments, entry.argument_lines)
            problems += found
            tree = entry.switches.get("enableHierarchy", False)
            entries.append(Enabled(cls(**fields, hierarchy=tree), dict(entry.switches)))
        tiers.append(entries)
    return tiers, problems


def check_conf(
    conf: SchedulerConf, plugins: Mapping[str, type[Plugin]], actions: Mapping[str, Any]
) -> list[Problem]:
    """List everything wrong or ignored in a configuration."""
    problems = [*conf.problems, *check_names(conf, list(actions), list(plugins))]
    problems += check_repeats(conf)
    for tier in conf.tiers:
        for entry in tier.plugins:
            if entry.name in plugins:
                problems += _check_arguments(entry, plugins[entry.name])
    for action, arguments in conf.configurations.items():
        if action in actions:
            declared = ACTION_ARGUMENTS.get(action, NoArguments)
            lines = conf.configuration_argument_lines.get(action, {})
            problems += bind_arguments(declared, arguments, lines)[1]
    return problems


def _check_arguments(entry: PluginConf, cls: type[Plugin]) -> Iterator[Problem]:
    """List what is wrong with the arguments of a plugin, by their types and by its own word."""
    if cls.trouble:
        yield Problem(
            line=entry.line,
            field=entry.path,
            wanted="a plugin that can be loaded",
            found=entry.name,
            hint=cls.trouble,
        )
        return
    fields, problems = bind_arguments(cls, entry.arguments, entry.argument_lines)
    yield from problems
    for fault in cls(**fields).faults():
        yield Problem(
            line=entry.argument_lines.get(fault.key, entry.line),
            field=fault.key,
            wanted=fault.wanted,
            found=summary(fault.found),
            hint=fault.hint,
            severity=fault.severity,
        )


def deciding_order(
    conf: SchedulerConf, plugins: Mapping[str, type[Plugin]]
) -> list[tuple[str, str, str, list[str]]]:
    """Say per hook which plugins decide, in order: (hook, switch, rule, plugin names)."""
    tiers, _ = build_tiers(conf, plugins)
    rows = []
    for hook in HOOKS.values():
        names = [
            " + ".join(entry.plugin.name for entry in tier if entry.offers(hook.name))
            for tier in tiers
        ]
        deciding = [name for name in names if name]
        if deciding:
            rows.append((hook.name, hook.switch, hook.rule.words, deciding))
    return rows
