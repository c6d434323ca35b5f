"""Hooks that failed: in which plugins, for which objects, and the rows that still get answers.

A question about several rows is asked again by halves, so that one bad object costs the others
nothing: correct plugins treat rows independently.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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
    about: dict[Subject, dict[str, None]] = field(default_factory=dict)
    """The subjects of failures, and the lines that report them."""

    def forget(self) -> None:
        """Forget all failures."""
        self.errors, self.about = {}, {}

    def lines(self) -> list[str]:
        """Return one line for each."""
        return [_line(*where, error) for where, error in self.errors.items()]

    def note(
        self, plugin: str, hook: str, error: Exception, subjects: Iterable[Subject] = ()
    ) -> None:
        """Keep the first error of a hook and log it once; record its subject."""
        if (plugin, hook) not in self.errors:
            self.errors[plugin, hook] = error
            log.error("plugin %s failed in %s: %s", plugin, hook, error, exc_info=error)
        for subject in subjects:
            self.about.setdefault(subject, {})[_line(plugin, hook, error)] = None


def _line(plugin: str, hook: str, error: Exception) -> str:
    """Describe a failure; a broken contract does not repeat plugin and hook."""
    text = error.problem if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    return f"plugin {plugin} failed in {hook}: {text}"


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
