"""Tiers and switches become tables of bound methods.

Each is guarded, so that a plugin that raises hurts only itself.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from pumice.core.views import ALL
from pumice.errors import BadHookResultError
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
            f"plugin {plugin} failed in {hook}: {type(error).__name__}: {error}"
            for (plugin, hook), error in self.errors.items()
        ]

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
    lacks = _CONTRACTS.get(hook)

    def call(*args: Any) -> Any:
        try:
            found = method(*args)
            wanted = lacks(found, args) if lacks is not None else ""
            if wanted:
                raise BadHookResultError(plugin.name, hook, wanted=wanted, found=found)  # noqa: TRY301
            return found  # noqa: TRY300
        except Exception as error:  # noqa: BLE001  # a plugin is foreign code
            failures.note(plugin.name, hook, error)
            return _empty_answer(hook, args, answer)

    call.plugin = plugin  # type: ignore[attr-defined]
    return call


def _lacks_codes(found: Any, args: tuple[Any, ...]) -> str:
    """Say what a filter should have answered, nothing if it did."""
    if found is None:
        return ""
    n = len(args[1])
    return "" if getattr(found, "shape", None) == (n,) else f"{n} answers"


def _lacks_scores(found: Any, args: tuple[Any, ...]) -> str:
    """Say what a score should have been; numbers are looked at where all nodes are asked."""
    if found is None:
        return ""
    n = len(args[1])
    if getattr(found, "shape", None) != (n,):
        return f"{n} scores"
    odd = args[1].rows is ALL and not np.isfinite(found).all()
    return f"{n} finite numbers" if odd else ""


def _lacks_keys(found: Any, args: tuple[Any, ...]) -> str:
    n = len(args[0])
    return "" if np.shape(found)[-1:] == (n,) else f"{n} keys"


def _lacks_mask(found: Any, args: tuple[Any, ...]) -> str:
    n = len(args[1])
    return "" if found is None or len(found) == n else f"a mask of {n}"


_CONTRACTS: dict[str, Callable[[Any, tuple[Any, ...]], str]] = {
    "filter_shape": _lacks_codes,
    "filter_nodes": _lacks_codes,
    "score_shape": _lacks_scores,
    "score_nodes": _lacks_scores,
    "rank_nodes": _lacks_scores,
    "order_queues": _lacks_keys,
    "order_jobs": _lacks_keys,
    "order_tasks": _lacks_keys,
    "preemptable": _lacks_mask,
    "reclaimable": _lacks_mask,
    "gang_evictable": _lacks_mask,
}
"""Answers that would stop the session if they had the wrong size; they count as raised."""


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
