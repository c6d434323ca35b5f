"""Plugins that keep pods from being evicted, and where a configuration exposes such pods.

Used by ``pumice config check`` and by a starting scheduler.  Victims are what all plugins of a tier
allow.  A tier that allows no victim leaves the choice to the next one, and within a tier an
empty intersection is started again by the next plugin: a guard protects only what is judged
together with it to the end.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from pumice.api.conf import Problem, SchedulerConf
from pumice.errors import Words
from pumice.framework.dispatch import Enabled
from pumice.framework.plugin import Plugin
from pumice.framework.registry import build_tiers

_HOOKS: Final = {
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
    for tier, entries in zip(conf.tiers, tiers, strict=True):
        for entry, enabled in zip(tier.plugins, entries, strict=True):
            passing = _passing(conf, tiers, enabled)
            if passing:
                hint = f"{enabled.plugin.protects} may be evicted"
                problems.append(
                    Problem(
                        line=entry.line,
                        field=entry.path,
                        wanted=f"{entry.name} to judge every victim, as the last of a tier",
                        found=Words(f"others that may decide alone: {', '.join(passing)}"),
                        hint=f"{hint}; see docs/plugins/{entry.name}.md",
                        severity="odd",
                    )
                )
    return problems


def _passing(conf: SchedulerConf, tiers: list[list[Enabled]], guard: Enabled) -> list[str]:
    """List the plugins that can name victims without a guard, or against it, with the actions."""
    if not guard.plugin.protects:
        return []
    actions: defaultdict[tuple[int, str], dict[str, None]] = defaultdict(dict)
    for action in conf.actions:
        hook = _HOOKS.get(action, "")
        if not hook or not guard.offers(hook):
            continue
        for number, tier in enumerate(tiers, start=1):
            asked = [each.plugin.name for each in tier if each.offers(hook)]
            for name in _unguarded(asked, guard.plugin.name):
                actions[number, name][action] = None
    return [
        f"{name} in tier {number} ({', '.join(found)})"
        for (number, name), found in sorted(actions.items(), key=lambda item: item[0][0])
    ]


def _unguarded(asked: list[str], guard: str) -> list[str]:
    """Return the plugins of a tier that can decide alone: all without the guard.

    With it those after it, from the third on: two plugins cannot restart an intersection.
    """
    if guard not in asked:
        return asked
    last = len(asked) - 1 - asked[::-1].index(guard)
    return asked[max(last + 1, 2) :]
