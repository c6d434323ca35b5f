"""Hooks that failed: in which plugins, for which objects, and the rows that still get answers.

A question about several rows is asked again by halves, so that one bad object costs the others
nothing: correct plugins treat rows independently.
"""

import inspect
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from pumice.errors import PluginError

log = logging.getLogger(__name__)

Subject = tuple[Literal["task", "job", "shape"], int]
"""The subject of a failed hook: a row of tasks or of jobs, or the number of a shape."""

_PATIENCE: Final = 64
"""Failures after which the remaining rows of a question count as failed, too."""
_LONGEST: Final = 256
"""Characters of an error that are shown: it may quote hostile input."""


@dataclass
class Failures:
    """Plugins that raised in this session, by plugin and hook, with the first error."""

    errors: dict[tuple[str, str], Exception] = field(default_factory=dict)
    places: dict[tuple[str, str], str] = field(default_factory=dict)
    """File and line of the first error, by plugin and hook."""
    about: dict[Subject, dict[str, None]] = field(default_factory=dict)
    """The subjects of failures, and the lines that report them."""

    def forget(self) -> None:
        """Forget all failures."""
        self.errors, self.places, self.about = {}, {}, {}

    def lines(self) -> list[str]:
        """Return one line for each."""
        return [self.line(*where) for where in self.errors]

    def line(self, plugin: str, hook: str) -> str:
        """Return the line of one hook, empty if it did not fail."""
        error, place = self.errors.get((plugin, hook)), self.places.get((plugin, hook), "")
        return "" if error is None else _line(plugin, hook, error, place)

    def note(
        self,
        plugin: str,
        hook: str,
        error: Exception,
        subjects: Iterable[Subject] = (),
        method: Callable[..., Any] | None = None,
    ) -> None:
        """Keep the first error of a hook and log it once; record its subject."""
        place = "" if method is None else _place(method, error)
        if (plugin, hook) not in self.errors:
            self.errors[plugin, hook], self.places[plugin, hook] = error, place
            log.error("plugin %s failed in %s: %s", plugin, hook, error, exc_info=error)
        for subject in subjects:
            self.about.setdefault(subject, {})[_line(plugin, hook, error, place)] = None


def _line(plugin: str, hook: str, error: Exception, place: str) -> str:
    """Describe a failure; a broken contract does not repeat plugin and hook."""
    text = error.problem if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    return f"plugin {plugin} failed in {hook}: {text}{f' ({place})' if place else ''}"


def _place(method: Callable[..., Any], error: Exception) -> str:
    """Name file and line of the plugin that an error comes from, or where the hook begins.

    The innermost line of the plugin's own files counts: an error is raised deep inside NumPy, but
    an author can only mend the call.  A wrong answer raises nothing; its hook is named.
    """
    code = getattr(inspect.unwrap(method), "__code__", None)
    if code is None:
        return ""
    home = sys.modules.get(type(getattr(method, "__self__", None)).__module__)
    own = {code.co_filename, getattr(home, "__file__", None)}
    lines = [(code.co_filename, code.co_firstlineno)]
    lines += [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in own
    ]
    file, line = lines[-1]
    return f"{_shown(file)}:{line}"


@lru_cache(maxsize=64)
def _shown(file: str) -> str:
    """Write a path from the working folder on if it is inside."""
    return file.removeprefix(os.path.join(os.getcwd(), ""))  # noqa: PTH109, PTH118  # "<input>", too


@dataclass
class Halves:
    """Parts of a question: those that were answered, and the rows that could not be."""

    answered: list[tuple[slice, Any]] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)


def ask_by_halves(ask: Callable[[slice], Any], n: int) -> Halves:
    """Ask about parts of n rows of which not all can be answered together."""
    found = Halves()
    unanswered, failures = [slice(0, n)], 0
    while unanswered:
        part = unanswered.pop()
        if part.stop - part.start == 1 or failures >= _PATIENCE:
            found.failed += range(part.start, part.stop)
            continue
        middle = (part.start + part.stop) // 2
        for half in (slice(middle, part.stop), slice(part.start, middle)):
            try:
                found.answered.append((half, ask(half)))
            except Exception:  # noqa: BLE001  # a plugin is foreign code
                failures += 1
                unanswered.append(half)
    return found
