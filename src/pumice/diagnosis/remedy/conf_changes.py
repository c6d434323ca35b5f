"""Changes of the scheduler's configuration."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml

from pumice.diagnosis.changes import Change, Conf
from pumice.diagnosis.remedy.target import Target
from pumice.examine.findings import Finding

_EVICTING: Final = ("preempt", "reclaim")
_NEVER_REMOVED: Final = frozenset({"gang", "predicates"})
"""Plugins without which pods of any job are placed where they do not run, or too few of them."""
Conf_ = dict[str, Any]


def _with_conf(target: Target, text: str, edit: Callable[[Conf_], None]) -> Change:
    conf: Conf_ = yaml.safe_load(target.world.conf) or {}
    edit(conf)
    return Change(text, (Conf(text=yaml.safe_dump(conf, sort_keys=False)),))


def add_action(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Add the missing action, where the cause names one."""
    if "action" in cause.numbers:
        yield _with_action(target, str(cause.numbers["action"]))


def evicting(target: Target, _: Finding) -> Iterator[Change | None]:
    """Add an action that makes room by eviction."""
    actions = target.world.scheduler_conf.actions
    for action in _EVICTING:
        if action not in actions and f"gang{action}" not in actions:
            yield _with_action(target, action)


def _with_action(target: Target, action: str) -> Change:
    known = list(target.world.scheduler_conf.actions)
    actions = [each for each in known if each != action]
    late = action == "backfill" or "allocate" not in actions
    at = len(actions) if late else actions.index("allocate") + 1
    if action == "allocate":
        at = actions.index("enqueue") + 1 if "enqueue" in actions else 0

    def edit(conf: Conf_) -> None:
        conf["actions"] = ", ".join([*actions[:at], action, *actions[at:]])

    if action in known:
        text = f"put the action {action} before {actions[at]}"
        return _with_conf(target, f"{text} in the configuration", edit)
    return _with_conf(target, f"add the action {action} to the configuration", edit)


def larger_factor(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Raise the factor by which overcommit counts the cluster."""
    numbers = cause.numbers
    if "factor" not in numbers:
        return
    factor = float(numbers["factor"])
    for short in (numbers, *numbers.get("more", ())):
        if short["limit"]:
            needed = (short["used"] + short["request"]) * numbers["factor"] / short["limit"]
            factor = max(factor, math.ceil(needed * 100) / 100)

    def edit(conf: Conf_) -> None:
        for plugin in _plugins(conf, "overcommit"):
            plugin["arguments"] = {**(plugin.get("arguments") or {}), "overcommit-factor": factor}

    if factor > float(numbers["factor"]):
        text = f"raise overcommit-factor from {numbers['factor']:g} to {factor:g}"
        yield _with_conf(target, text, edit)


def without_plugin(target: Target, cause: Finding) -> Iterator[Change | None]:
    """Remove the refusing plugin from the configuration."""
    named = cause.numbers.get("plugin") or cause.numbers.get("by")
    names = [named] if named else cause.numbers.get("plugins", [])
    for name in names:
        if name in _NEVER_REMOVED:
            continue

        def edit(conf: Conf_, name: str = str(name)) -> None:
            for tier in conf.get("tiers") or ():
                kept = [one for one in tier.get("plugins") or () if one.get("name") != name]
                tier["plugins"] = kept
            conf["tiers"] = [tier for tier in conf.get("tiers") or () if tier["plugins"]]

        yield _with_conf(target, f"remove plugin {name} from the configuration", edit)


def open_window(target: Target, _: Finding) -> Iterator[Change | None]:
    """Open the revocable zones all day."""

    def edit(conf: Conf_) -> None:
        for plugin in _plugins(conf, "tdm"):
            arguments = dict(plugin.get("arguments") or {})
            for key in arguments:
                if str(key).startswith("tdm.revocable-zone."):
                    arguments[key] = "00:00-23:59"
            plugin["arguments"] = arguments

    yield _with_conf(target, "open the revocable zones all day", edit)


def _plugins(conf: Conf_, name: str) -> Iterator[Conf_]:
    for tier in conf.get("tiers") or ():
        for plugin in tier.get("plugins") or ():
            if plugin.get("name") == name:
                yield plugin
