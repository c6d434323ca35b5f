"""Plugins given to a command: classes of a Python file or of a module, by a text.

    policy.py               every plugin of the file
    policy.py:Policy        one of them
    my_package.policy:Policy   one of a module that can be imported; without a class, every one

The texts are passed along, also to other processes; each process loads them once.
"""

import dataclasses
import importlib
import sys
import traceback
from collections.abc import Iterable, Iterator
from functools import cache
from os import PathLike
from pathlib import Path
from types import ModuleType

import msgspec

from pumice.errors import ABSENT, InputError
from pumice.framework.plugin import Plugin

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
