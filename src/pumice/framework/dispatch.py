"""Tiers and switches become tables of bound methods.

Each is guarded, so that a plugin that raises hurts only itself.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pumice.errors import BadHookResultError, PluginError
from pumice.framework.contracts import contract_of
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

    def lines(self) -> list[str]:
        """Write each down in one line."""
        return [
            f"plugin {plugin} failed in {hook}: {_told(error)}"
            for (plugin, hook), error in self.errors.items()
        ]

    def note(self, plugin: str, hook: str, error: Exception) -> None:
        """Keep the first error of a hook and log it once."""
        if (plugin, hook) not in self.errors:
            self.errors[plugin, hook] = error
            log.error("plugin %s failed in %s: %s", plugin, hook, error, exc_info=error)


def _told(error: Exception) -> str:
    """Say what went wrong; a broken contract is told without naming plugin and hook again."""
    return error.problem if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class Enabled:
    """A plugin of the session with the switches of its configuration entry."""

    plugin: Plugin
    switches: dict[str, bool]

    def offers(self, hook: str) -> bool:
        """Say whether a hook is implemented and switched on."""
        plugin = self.plugin
        return _offers(type(plugin), self.switches, hook, hierarchy=plugin.hierarchy)


def bind_hooks(tiers: Iterable[Iterable[Enabled]], failures: Failures) -> dict[str, TieredMethods]:
    """Give, for each hook, the methods to call tier by tier; tiers without one are left out."""
    table: dict[str, list[tuple[Method, ...]]] = {hook.name: [] for hook in HOOKS}
    for tier in tiers:
        methods: dict[str, list[Method]] = {}
        for entry in tier:
            cls: Any = type(entry.plugin)
            switches = tuple(entry.switches.items())
            for hook in _offered(cls, switches, hierarchy=entry.plugin.hierarchy):
                methods.setdefault(hook, []).append(guard(entry.plugin, hook, failures))
        for hook, found in methods.items():
            table[hook].append(tuple(found))
    return {hook: tuple(rows) for hook, rows in table.items()}


@lru_cache(maxsize=256)
def _offered(
    cls: Any, switches: tuple[tuple[str, bool], ...], *, hierarchy: bool
) -> tuple[str, ...]:
    """Name the hooks a plugin implements that are switched on: the same cycle after cycle."""
    on = dict(switches)
    return tuple(hook.name for hook in HOOKS if _offers(cls, on, hook.name, hierarchy=hierarchy))


def _offers(cls: type[Plugin], switches: Mapping[str, bool], hook: str, *, hierarchy: bool) -> bool:
    switch = BY_NAME[hook].switch
    fitting = cls.hierarchy_hooks.get(hook, hierarchy) == hierarchy
    return fitting and implements(cls, hook) and (not switch or switches.get(switch, True))


def guard(plugin: Plugin, hook: str, failures: Failures) -> Method:
    """Wrap a method of a plugin: what it raises is noted, and a safe answer is given instead."""
    method = getattr(plugin, hook)
    answer = _SAFE_ANSWERS.get(hook)
    lacks = contract_of(plugin, hook)

    def call(*args: Any) -> Any:
        try:
            found = method(*args)
            wanted = lacks(found, args, plugin) if lacks is not None else ""
            if wanted:
                raise BadHookResultError(plugin.name, hook, wanted=wanted, found=found)  # noqa: TRY301
            return found  # noqa: TRY300
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
