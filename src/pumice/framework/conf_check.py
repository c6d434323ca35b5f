"""The one check of a configuration, for ``pumice config check`` and every start.

Errors refuse a configuration.  Everything else is a warning: what Volcano ignores has no
effect here either, and odd settings work as written.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pumice.api.conf import PluginConf, Problem, SchedulerConf
from pumice.api.conf_checks import check_names, check_repeats
from pumice.api.conf_lines import summary
from pumice.api.usage_conf import read_usage_conf
from pumice.api.wording import first_of, listing
from pumice.errors import Words
from pumice.framework.arguments import (
    ACTION_ARGUMENTS,
    UNKNOWN,
    NoArguments,
    bind_arguments,
    describe_arguments,
    own_names,
)
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin, implements
from pumice.framework.registry import build_tiers

EVICTING_HOOKS: Final = {
    "preempt": "preemptable",
    "reclaim": "reclaimable",
    "gangpreempt": "gang_evictable",
    "gangreclaim": "gang_evictable",
}
"""Actions that evict, and the hook by which they ask for victims."""


def check_guards(conf: SchedulerConf, plugins: Mapping[str, type[Plugin]]) -> list[Problem]:
    """List the plugins that protect pods and can be overridden, with those that override them."""
    tiers, _ = build_tiers(conf, plugins)
    problems = []
    for number, (tier, entries) in enumerate(zip(conf.tiers, tiers, strict=True)):
        for entry, enabled in zip(tier.plugins, entries, strict=True):
            passing = _passing(conf, tiers, enabled)
            if passing:
                problems.append(
                    Problem(
                        line=entry.line,
                        field=entry.path,
                        says=f"{enabled.plugin.protects} may be evicted: {_named(passing)} can "
                        f"choose victims without {entry.name}",
                        hint=f"{_way_out(conf, tiers, number, enabled)}; "
                        "see docs/actions/README.md",
                        severity="odd",
                    )
                )
    return problems


_Passing = dict[tuple[int, str], dict[str, None]]
"""Tier and plugin to the actions in which it can name victims without a guard."""


def _passing(conf: SchedulerConf, tiers: Sequence[Sequence[Enabled]], guard: Enabled) -> _Passing:
    """Return the plugins that can name victims without a guard, or against it."""
    actions: _Passing = {}
    for action in conf.actions:
        hook = EVICTING_HOOKS.get(action, "")
        guards = guard.plugin.protects and action in guard.plugin.protects_in and guard.offers(hook)
        for number, tier in enumerate(tiers if guards else (), start=1):
            asked = [each for each in tier if each.offers(hook)]
            for name in _unguarded(asked, guard.plugin.name, action):
                actions.setdefault((number, name), {})[action] = None
            if asked and asked[0].is_strict:
                break  # it has the last word
    return actions


def _unguarded(asked: Sequence[Enabled], guard: str, action: str) -> list[str]:
    """Return the plugins of a tier that can decide alone: all without the guard.

    With it those after it, before which two plugins can empty an intersection.
    """
    names = [each.plugin.name for each in asked]
    if guard not in names:
        return names
    last = len(names) - 1 - names[::-1].index(guard)
    judging = [at for at, each in enumerate(asked) if _judges(each.plugin, action)]
    if asked[0].is_strict or len(judging) < 2:
        return []
    return names[max(last, judging[1]) + 1 :]


def _judges(plugin: Plugin, action: str) -> bool:
    """Return whether a plugin that names victims for an action may leave some out."""
    return not plugin.protects or action in plugin.protects_in


def _named(passing: _Passing) -> str:
    found = sorted(passing.items(), key=lambda item: item[0][0])
    texts = [f"{name} in tier {n} ({', '.join(actions)})" for (n, name), actions in found]
    return listing(texts, len(texts))


def _way_out(
    conf: SchedulerConf, tiers: Sequence[Sequence[Enabled]], number: int, guard: Enabled
) -> str:
    """Return the smallest change with which a guard judges every victim."""
    strict = [replace(each, is_strict=True) for each in tiers[number]]
    changed = [*tiers[:number], strict, *tiers[number + 1 :]]
    if not _passing(conf, changed, replace(guard, is_strict=True)):
        return f"write victims: strict beside plugins in tier {number + 1}"
    first = min(n for n, _ in _passing(conf, tiers, guard))
    return f"move it to tier {first}, and write victims: strict there"


_SHOWN: Final = 6
"""Arguments that are listed for an unknown one."""


def check_conf(
    conf: SchedulerConf, plugins: Mapping[str, type[Plugin]], actions: Mapping[str, Any]
) -> list[Problem]:
    """List every error, setting without effect and oddity of a configuration, by line.

    If there are no errors, plugins that protect pods and can be overridden are named too.
    """
    problems = [*conf.problems, *check_names(conf, list(actions), list(plugins))]
    problems += check_repeats(conf)
    problems += _check_limits(conf, plugins)
    if conf.metrics:
        problems += read_usage_conf(conf.metrics, conf.metrics_lines)[1]
    for tier in conf.tiers:
        for entry in tier.plugins:
            if entry.name in plugins:
                cls = plugins[entry.name]
                problems += [
                    _unread(_of_other_plugin(problem, plugins), entry.name, cls)
                    for problem in _check_arguments(entry, cls, conf.actions)
                ]
    for action, arguments in conf.configurations.items():
        if action in actions:
            declared = ACTION_ARGUMENTS.get(action, NoArguments)
            lines = own_names(action, conf.configuration_argument_lines.get(action, {}))
            problems += [
                _unread(problem, f"the action {action}", declared)
                for problem in bind_arguments(declared, own_names(action, arguments), lines)[1]
            ]
    if not errors_of(problems):
        problems += [*_check_plugins(conf), *check_guards(conf, plugins)]
    return sorted(problems, key=lambda problem: problem.line)


def errors_of(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems for which a configuration is refused; the others are warnings."""
    return [problem for problem in problems if problem.severity == "error"]


def _check_plugins(conf: SchedulerConf) -> list[Problem]:
    """Warn of a configuration without any plugin: nothing then refuses a node or keeps a gang."""
    if any(tier.plugins for tier in conf.tiers):
        return []
    hint = "without predicates, pods go to nodes that do not suit them; without gang, jobs in part"
    return [
        Problem(field="tiers", wanted="plugins", found=Words("none"), hint=hint, severity="odd")
    ]


def _check_limits(conf: SchedulerConf, plugins: Mapping[str, type[Plugin]]) -> list[Problem]:
    """List every further plugin that limits queues: a job then needs the consent of each."""
    limiting = [
        entry
        for tier in conf.tiers
        for entry in tier.plugins
        if entry.name in plugins and implements(plugins[entry.name], "queue_limits")
    ]
    return [
        Problem(
            line=entry.line,
            field=entry.path,
            wanted="one plugin that limits queues",
            found=entry.name,
            hint=f"{limiting[0].name} on line {limiting[0].line} limits them too; choose one",
            severity="odd",
        )
        for entry in limiting[1:]
        if entry.name != limiting[0].name
    ]


def _unread(problem: Problem, reader: str, declared: type) -> Problem:
    """Name who does not read an unknown argument, and the arguments that exist."""
    if problem.wanted != UNKNOWN:
        return problem
    known = [row.key for row in describe_arguments(declared)]
    listed = f"its arguments: {first_of(known, _SHOWN)}" if known else "it has no arguments"
    return replace(problem, hint=f"{reader} does not read it; {problem.hint or listed}")


def _of_other_plugin(problem: Problem, plugins: Mapping[str, type[Plugin]]) -> Problem:
    """Name the plugin that has an unknown argument, such as one that has moved there."""
    _, dot, last = problem.field.rpartition(".")
    if problem.wanted != UNKNOWN or not dot:
        return problem
    having = [
        (name, row.key)
        for name, cls in plugins.items()
        for row in describe_arguments(cls)
        if row.key.endswith(f".{last}")
    ]
    if len(having) != 1:
        return problem
    [(name, key)] = having
    return replace(problem, hint=f"it is an argument of the plugin {name}: '{key}'")


def _check_arguments(
    entry: PluginConf, cls: type[Plugin], actions: Collection[str]
) -> Iterator[Problem]:
    """List the faults in the arguments of a plugin, by their types and by its own check."""
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
    for fault in (each for each in cls(**fields).faults() if each.without not in actions):
        yield Problem(
            line=entry.argument_lines.get(fault.key, entry.line),
            field=fault.key,
            wanted=fault.wanted,
            found=summary(fault.found),
            hint=fault.hint,
            severity=fault.severity,
        )
