"""The plugins of a configuration, made and bound once and used cycle after cycle.

Making plugins and binding their hooks costs as much as a cycle in which little is decided.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from pumice.framework.arguments import argument_fields
from pumice.framework.dispatch import Enabled, Hooks
from pumice.framework.plugin import Plugin

_PLAIN = frozenset({bool, int, float, str, type(None)})
"""Types of values that cannot be changed."""


class KeptPlugins:
    """Plugins and their hooks; ``renew`` prepares them for a cycle as if they were just made."""

    def __init__(self, tiers: Iterable[Iterable[Enabled]]) -> None:
        self.tiers = [list(tier) for tier in tiers]
        self.hooks = Hooks(self.tiers)
        self._fields = [(vars(each), *_as_made(vars(each))) for each in self.hooks.plugins]

    @classmethod
    def of(cls, tiers: Iterable[Iterable[Enabled]]) -> "KeptPlugins | None":
        """Keep plugins; None if one of them begins with a state of its own.

        A copy of such a state need not do: it may refer to the plugin, or be shared.
        """
        tiers = [list(tier) for tier in tiers]
        is_plain = all(_begins_plain(entry.plugin) for tier in tiers for entry in tier)
        return cls(tiers) if is_plain else None

    def renew(self) -> None:
        """Forget the state and the failures of plugins."""
        for fields, plain, others in self._fields:
            fields.clear()
            fields.update(plain)
            for name, value in others:
                is_flat = type(value) is list and all(map(_is_plain, value))
                fields[name] = value.copy() if is_flat else deepcopy(value)
        self.hooks.failures.forget()


def _begins_plain(plugin: Plugin) -> bool:
    """Return whether a plugin that was just made has its arguments and plain values only."""
    cls: Any = type(plugin)
    arguments = argument_fields(cls)
    return all(name in arguments or _is_plain(value) for name, value in vars(plugin).items())


def _is_plain(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_is_plain, value))
    return type(value) in _PLAIN


def _as_made(fields: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """Copy the fields of a plugin: those that cannot change, and the others."""
    plain = {name: value for name, value in fields.items() if _is_plain(value)}
    return plain, deepcopy([(name, fields[name]) for name in fields if name not in plain])
