"""Names to plugin and action classes: built-ins, entry points, and those of a caller.

A registry is a value passed to the scheduler; nothing registers itself on import.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from pumice.api.conf import Problem, SchedulerConf
from pumice.framework.arguments import bind_arguments
from pumice.framework.dispatch import Enabled
from pumice.framework.entry_point_files import may_offer
from pumice.framework.plugin import HOOKS, Plugin

GROUP = "pumice.plugins"


class Entry(Protocol):
    """A plugin that is not loaded yet: an entry point, or a built-in one."""

    @property
    def name(self) -> str:
        """Its name in configurations."""

    @property
    def value(self) -> str:
        """Module and class, with a colon between them."""

    def load(self) -> Any:
        """Import the module and return the class."""


class BuiltinEntry(NamedTuple):
    """A plugin of ours, in the form of an entry point."""

    name: str
    value: str

    def load(self) -> Any:
        """Import the module and return the class."""
        module, _, name = self.value.partition(":")
        return getattr(import_module(module), name)


class PluginsOnUse(Mapping[str, type[Plugin]]):
    """Plugins by name; each is loaded when it is first used.

    One that cannot be loaded is replaced by a class that reports this when it is configured.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._loaded: dict[str, type[Plugin]] = {}

    def __getitem__(self, name: str) -> type[Plugin]:
        if name not in self._loaded:
            self._loaded[name] = _load(self._entries[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class _Layers(Mapping[str, type[Plugin]]):
    """Several mappings as one; a later one replaces names of those before it."""

    def __init__(self, *layers: Mapping[str, type[Plugin]]) -> None:
        self._layer = {name: layer for layer in layers for name in layer}

    def __getitem__(self, name: str) -> type[Plugin]:
        return self._layer[name][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layer)

    def __len__(self) -> int:
        return len(self._layer)


def known_plugins(
    builtin: Mapping[str, type[Plugin]], more: Mapping[str, type[Plugin]]
) -> Mapping[str, type[Plugin]]:
    """Return all plugins by name: an installed one replaces a built-in, ``more`` replaces both."""
    return _Layers(builtin, installed_plugins(), more)


def installed_plugins() -> Mapping[str, type[Plugin]]:
    """Return the plugins that other distributions offer under the entry-point group."""
    if "importlib.metadata" not in sys.modules and not _may_be_some():
        return PluginsOnUse(())
    from importlib import metadata  # noqa: PLC0415 - see entry_point_files

    return PluginsOnUse(_offered(metadata.entry_points))


@cache  # what is installed stays while a process runs
def _may_be_some() -> bool:
    return may_offer(GROUP)


@cache
def _offered(find: Callable[..., Iterable[Entry]]) -> tuple[Entry, ...]:
    return tuple(find(group=GROUP))


def _load(entry: Entry) -> type[Plugin]:
    try:
        cls = entry.load()
    except Exception as error:  # noqa: BLE001  # a plugin is foreign code
        return _broken(entry, f"{type(error).__name__}: {error}")
    if isinstance(cls, type) and issubclass(cls, Plugin):
        return cls
    return _broken(entry, "it is not a subclass of pumice.plugin.Plugin")


def _broken(entry: Entry, why: str) -> type[Plugin]:
    class Broken(Plugin, name=entry.name):
        __doc__ = f"Of no use: {entry.value} cannot be loaded: {why}."
        trouble = f"{entry.value} cannot be loaded: {why}"

    return Broken


def build_tiers(
    conf: SchedulerConf, plugins: Mapping[str, type[Plugin]]
) -> tuple[list[list[Enabled]], list[Problem]]:
    """Make a fresh instance of every configured plugin; return what was ignored."""
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


def deciding_order(
    conf: SchedulerConf, plugins: Mapping[str, type[Plugin]]
) -> list[tuple[str, str, str, list[str]]]:
    """Return by hook which plugins decide, in order: (hook, switch, rule, plugin names)."""
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
