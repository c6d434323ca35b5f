"""The plugins of a configuration, made and bound once and used cycle after cycle.

Making plugins and binding their hooks costs as much as a cycle in which little is decided.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from pumice.framework.dispatch import Enabled, Hooks

_PLAIN = (bool, int, float, str, tuple, frozenset, type(None))
"""Types of values that cannot be changed, at least not by accident."""


class KeptPlugins:
    """Plugins and their hooks; ``renew`` prepares them for a cycle as if they were just made."""

    def __init__(self, tiers: Iterable[Iterable[Enabled]]) -> None:
        self.tiers = [list(tier) for tier in tiers]
        self.hooks = Hooks(self.tiers)
        self._fields = [(vars(each), _as_made(vars(each))) for each in self.hooks.plugins]

    @classmethod
    def of(cls, tiers: Iterable[Iterable[Enabled]]) -> "KeptPlugins | None":
        """Keep plugins; None if one of them has a field that cannot be copied."""
        try:
            return cls(tiers)
        except Exception:  # noqa: BLE001  # fields of foreign plugins may be anything
            return None

    def renew(self) -> None:
        """Forget the state and the failures of plugins."""
        for fields, (plain, others) in self._fields:
            fields.clear()
            fields.update(plain)
            if others:
                fields.update(deepcopy(others))
        self.hooks.failures.forget()


def _as_made(fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Copy the fields of a plugin: those that cannot change, and the others."""
    plain = {name: value for name, value in fields.items() if isinstance(value, _PLAIN)}
    return plain, deepcopy({name: fields[name] for name in fields if name not in plain})
