"""Plugins by name: built in, installed, or from --plugin; made once for many cycles."""

import dataclasses
import importlib
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import msgspec

from pumice.api.conf import Problem, SchedulerConf
from pumice.errors import ABSENT, InputError
from pumice.framework.arguments import argument_fields, bind_arguments
from pumice.framework.dispatch import Enabled, Hooks
from pumice.framework.hooks import TIER_INTERSECT
from pumice.framework.plugin import HOOKS, Plugin

_METADATA = (".dist-info", ".egg-info")


def may_offer(group: str, path: Iterable[str] | None = None) -> bool:
    """Return False only if no distribution on the path of modules names a group of entry points."""
    if any(map(_finds_others, sys.meta_path)):
        return True
    try:
        return any(_names(group, Path(entry)) for entry in (sys.path if path is None else path))
    except OSError:
        return True


def _finds_others(finder: Any) -> bool:
    """Return whether distributions may be in other places than the path."""
    return finder is not PathFinder and hasattr(finder, "find_distributions")


def _names(group: str, entry: Path) -> bool:
    """Return whether the distributions in a folder name a group; True for what is no folder."""
    if not entry.is_dir() or entry.suffix == ".egg":
        return entry.exists()
    wanted = group.encode()
    return any(
        found.name.lower().endswith(_METADATA) and _contains(found / "entry_points.txt", wanted)
        for found in entry.iterdir()
    )


def _contains(file: Path, wanted: bytes) -> bool:
    try:
        return wanted in file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return False


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
            entries.append(
                Enabled(cls(**fields, hierarchy=tree), dict(entry.switches), tier.is_strict)
            )
        tiers.append(entries)
    return tiers, problems


def deciding_order(
    conf: SchedulerConf, plugins: Mapping[str, type[Plugin]]
) -> list[tuple[str, str, str, list[str]]]:
    """Return by hook which plugins decide, in order: (hook, switch, rule, plugin names)."""
    tiers, _ = build_tiers(conf, plugins)
    rows = []
    for hook in HOOKS.values():
        deciding = []
        for tier in tiers:
            offering = [entry for entry in tier if entry.offers(hook.name)]
            names = " + ".join(entry.plugin.name for entry in offering)
            if offering and offering[0].is_strict and hook.rule is TIER_INTERSECT:
                deciding.append(f"{names} (strict: all must permit)")
                break
            deciding += [names] * bool(names)
        if deciding:
            rows.append((hook.name, hook.switch, hook.rule.words, deciding))
    return rows


_BASE = "pumice.plugin.Plugin"


PluginSource = str | type[Plugin]
"""A text as above, or a plugin itself."""


def load_plugins(sources: Iterable[PluginSource]) -> dict[str, type[Plugin]]:
    """Return the plugins that are given or named by texts, by name.

    Raises:
        InputError: a text names no plugin, one that cannot be loaded, or a second one
            with the same name.
    """
    found: dict[str, type[Plugin]] = {}
    origin: dict[str, str] = {}
    for source in _checked(sources):
        text = source if isinstance(source, str) else f"{source.__module__}:{source.__name__}"
        given = _classes(text) if isinstance(source, str) else (_with_name(_parse(text), source),)
        for cls in given:
            if found.setdefault(cls.name, cls) is not cls:
                also = f"{found[cls.name].__name__} of {origin[cls.name]} has it too"
                raise InputError(wanted="a name of its own", found=cls.name, file=text, hint=also)
            origin.setdefault(cls.name, text)
    return found


def _checked(sources: Iterable[object]) -> list[PluginSource]:
    """Return the plugins that a program gives; a file may also be a path."""
    if isinstance(sources, str) or not isinstance(sources, Iterable):
        wanted = "a list of plugins: classes, files or modules"
        raise InputError(wanted=wanted, found=sources, field="plugins")
    checked: list[PluginSource] = []
    for source in sources:
        if isinstance(source, str | PathLike):
            checked.append(str(source))
        elif isinstance(source, type) and issubclass(source, Plugin):
            checked.append(source)
        else:
            wanted = f"a class that inherits from {_BASE}, a file or a module"
            raise InputError(wanted=wanted, found=source, field="plugins")
    return checked


def whole_source(source: str) -> str:
    """Return a text with the absolute path of its file, for processes that run in other folders."""
    where = _parse(source)
    if where.path is None:
        return source
    path = str(where.path.absolute())
    return f"{path}:{where.class_name}" if where.class_name else path


class _Source(msgspec.Struct, frozen=True):
    """A text taken apart; ``path`` is None for a module."""

    text: str
    place: str
    class_name: str

    @property
    def path(self) -> Path | None:
        return Path(self.place) if self.place.endswith(".py") else None

    def error(self, wanted: str, found: object, hint: str = "", field: str = "") -> InputError:
        return InputError(wanted=wanted, found=found, file=self.text, hint=hint, field=field)


def _parse(source: str) -> _Source:
    place, colon, name = source.rpartition(":")
    return (
        _Source(source, place, name)
        if colon and (name.isidentifier() or place.endswith(".py"))
        else _Source(source, source, "")
    )


def _classes(text: str) -> tuple[type[Plugin], ...]:
    """Load a file or a module and return the requested plugins."""
    source = _parse(text)
    module = _import(source)
    if source.class_name:
        return (_named(source, module),)
    plugins = [cls for cls in _own_classes(module) if issubclass(cls, Plugin)]
    if not plugins:
        others = ", ".join(cls.__name__ for cls in _own_classes(module))
        raise source.error(f"a class that inherits from {_BASE}", others or "no class at all")
    named = [cls for cls in plugins if cls.name] or plugins[:1]
    return tuple(_with_name(source, cls) for cls in named)


def _named(source: _Source, module: ModuleType) -> type[Plugin]:
    cls = vars(module).get(source.class_name)
    if cls is None:
        others = ", ".join(each.__name__ for each in _own_classes(module))
        hint = f"its classes are {others}" if others else "it has no class at all"
        raise source.error(f"a class of {source.place}", source.class_name, hint)
    if not (isinstance(cls, type) and issubclass(cls, Plugin)):
        raise source.error(f"a class that inherits from {_BASE}", source.class_name)
    return _with_name(source, cls)


def _with_name(source: _Source, cls: type[Plugin]) -> type[Plugin]:
    if not isinstance(cls.name, str):
        raise source.error("a plugin whose name is a text", cls.name, f"of class {cls.__name__}")
    if not cls.name:
        line = f'class {cls.__name__}(Plugin, name="…")'
        raise source.error("a plugin with a name", cls.__name__, f"write {line}")
    _check_usable(source, cls)
    return cls


def _check_usable(source: _Source, cls: type[Plugin]) -> None:
    """Refuse a class that no session could instantiate."""
    if any(isinstance(each, dataclasses.Field) for each in vars(cls).values()):
        hint = f"write @dataclass(kw_only=True) above class {cls.__name__}"
        raise source.error("a dataclass, since it declares arguments", cls.__name__, hint)
    try:
        cls()
    except Exception as error:
        wanted = "a plugin that can be made without arguments"
        raise source.error(wanted, cls.__name__, str(error), _line_of(error)) from error


def _own_classes(module: ModuleType) -> Iterator[type]:
    """List the classes that a module or package defines, without those that it imports."""
    home = module.__name__
    for value in vars(module).values():
        if isinstance(value, type) and f"{value.__module__}.".startswith(f"{home}."):
            yield value


def _import(source: _Source) -> ModuleType:
    path = source.path
    if path is not None and not path.is_file():
        raise source.error("a file that exists", ABSENT)
    try:
        return importlib.import_module(source.place) if path is None else _run_file(path.absolute())
    except (Exception, SystemExit, GeneratorExit) as error:
        hint = str(error)
        if isinstance(error, ModuleNotFoundError) and _leads_to(error.name or "", source):
            hint += "; a file is named with its suffix, as in policy.py"
        raise source.error(
            "Python that can be imported", type(error).__name__, hint, _line_of(error)
        ) from error


def _leads_to(missing: str, source: _Source) -> bool:
    """Return whether a missing module is the requested one, or one of its packages."""
    return source.path is None and f"{source.place}.".startswith(f"{missing}.")


@cache
def _run_file(path: Path) -> ModuleType:
    """Run a file once in a process, as a module that dataclasses can look up."""
    module = ModuleType(f"plugins of {path}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))  # noqa: S102
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module


def _line_of(error: BaseException) -> str:
    """Name the line of the imported code that an error comes from."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}" if error.lineno else ""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in (__file__, importlib.__file__)
        and not frame.filename.startswith("<frozen importlib")
    ]
    lines = [frame.lineno for frame in frames if frame.filename == frames[0].filename]
    return f"line {lines[-1]}" if lines else ""


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
