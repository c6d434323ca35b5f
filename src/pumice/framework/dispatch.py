"""Tiers and switches become tables of bound methods.

Each is guarded, so that a plugin that raises hurts only itself.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pumice.framework.hooks import BY_NAME, HOOKS
from pumice.framework.plugin import Plugin, implements

log = logging.getLogger(__name__)

Method = Callable[..., Any]
TieredMethods = tuple[tuple[Method, ...], ...]

_SAFE_ANSWERS: dict[str, Any] = {
    "allocatable": False,
    "preemptive": False,
    "job_enqueueable": -1,
    "job_ready": False,
    "job_pipelined": -1,
    "job_starving": False,
    "overused": True,
    "subgroup_ready": False,
    "subgroup_pipelined": -1,
    "job_valid": "a plugin failed while it checked the job",
}
"""What a hook that raised is taken to have said: the answer that changes least in the cluster."""


@dataclass
class Failures:
    """Plugins that raised in this session, by plugin and hook, with the first error."""

    errors: dict[tuple[str, str], Exception] = field(default_factory=dict)

    def note(self, plugin: str, hook: str, error: Exception) -> None:
        """Keep the first error of a hook and log it once."""
        if (plugin, hook) not in self.errors:
            self.errors[plugin, hook] = error
            log.error("plugin %s failed in %s: %s", plugin, hook, error, exc_info=error)


@dataclass(frozen=True)
class Enabled:
    """A plugin of the session with the switches of its configuration entry."""

    plugin: Plugin
    switches: dict[str, bool]

    def offers(self, hook: str) -> bool:
        """Say whether a hook is implemented and switched on."""
        switch, plugin = BY_NAME[hook].switch, self.plugin
        fitting = plugin.hierarchy_hooks.get(hook, plugin.hierarchy) == plugin.hierarchy
        return (
            fitting and implements(plugin, hook) and (not switch or self.switches.get(switch, True))
        )


def bind_hooks(tiers: Iterable[Iterable[Enabled]], failures: Failures) -> dict[str, TieredMethods]:
    """Give, for each hook, the methods to call tier by tier; tiers without one are left out."""
    table: dict[str, TieredMethods] = {}
    tier_list = [list(tier) for tier in tiers]
    for hook in HOOKS:
        rows = []
        for tier in tier_list:
            methods = tuple(
                _guard(entry.plugin, hook.name, failures)
                for entry in tier
                if entry.offers(hook.name)
            )
            if methods:
                rows.append(methods)
        table[hook.name] = tuple(rows)
    return table


def _guard(plugin: Plugin, hook: str, failures: Failures) -> Method:
    method = getattr(plugin, hook)
    answer = _SAFE_ANSWERS.get(hook)

    def call(*args: Any) -> Any:
        try:
            return method(*args)
        except Exception as error:  # noqa: BLE001  # a plugin is foreign code
            failures.note(plugin.name, hook, error)
            return _empty_answer(hook, args, answer)

    call.plugin = plugin  # type: ignore[attr-defined]
    return call


def _empty_answer(hook: str, args: tuple[Any, ...], answer: Any) -> Any:
    if hook in ("preemptable", "reclaimable", "gang_evictable"):
        return [False] * len(args[1])
    if hook == "victims":
        return []
    if hook.startswith("compare_") or hook == "order_subgroups":
        return 0
    if hook.startswith("order_"):
        return [0.0] * len(args[0])
    return answer
