"""The required form of answers of hooks, so that a wrong one is reported and never stops a session.

Each kind of answer defines its check, and the answer used for a plugin that failed: the
answer that changes least in the cluster.  A check returns what was wanted, nothing if the answer is
valid; it may raise on an answer that cannot be inspected.
"""

import inspect
import logging
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final, Literal

import numpy as np

from pumice.api.wording import counted
from pumice.core.views import ALL
from pumice.errors import PluginError
from pumice.framework.refusals import Failed, Reason, Refusal

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


Args = tuple[Any, ...]
Reasons = Sequence[Reason]
Check = Callable[[Any, Args, Reasons], str]
"""Checks an answer, given the question and the plugin's reasons."""
Spared = tuple[Any, list[int]]
"""An answer in which some rows failed, and these rows."""
Spare = Callable[[Callable[..., Any], Args, Failed], Spared | None]
"""Asks about the rows that do not fail; None if all do."""
_NUMBERS: Final = "biuf"
_CODES: Final = "biu"
_NUMBER: Final = (int, float, np.number)
_YES_NO: Final = (bool, int, np.bool_, np.integer)
_SEVERAL: Final = (list, tuple, set, np.ndarray)


def _nothing(*_: Any) -> None:
    """Answer nothing."""


@dataclass(frozen=True)
class Answer:
    """One kind of answer."""

    check: Check | None = None
    """The check for every plugin."""
    cheap: Check | None = None
    """The part of it for plugins of Pumice itself; the tests do the rest."""
    exact: Check | None = None
    """The check of the conformance tests where it is stricter than ``check``."""
    safe: Callable[[Args, Failed], Any] = _nothing
    """The answer used for a plugin that failed, from the question and the error."""
    spare: Spare | None = None
    """How the other rows of a failed question are answered; None: there is only one."""


# Nodes


def _size(found: Any, args: Args, _: Reasons) -> str:
    n = len(args[1])
    return "" if found is None or getattr(found, "shape", None) == (n,) else f"{n} answers"


def _known_codes(found: Any, args: Args, reasons: Reasons) -> str:
    if found is None or _size(found, args, reasons):
        return _size(found, args, reasons)
    kind = found.dtype.kind
    if kind not in _CODES:
        return "an array of true or false, or of codes"
    if kind != "b" and len(found) and (found.min() < 0 or found.max() > len(reasons)):
        return f"codes from 0 to {len(reasons)}, the number of its reasons"
    return ""


def _exact_codes(found: Any, args: Args, reasons: Reasons) -> str:
    if found is None or _no_array(found, args):
        return "" if found is None else _no_array(found, args)
    kind = found.dtype.kind
    if kind == "b":
        return "" if found.all() or reasons else "a plugin that states a reason"
    if kind not in "iu":
        return "booleans or numbers of reasons"
    good = ((found >= 0) & (found <= len(reasons))).all()
    return "" if good else f"numbers of {len(reasons)} reasons"


def _no_array(found: Any, args: Args) -> str:
    n = len(args[1])
    good = isinstance(found, np.ndarray) and found.shape == (n,)
    return "" if good else f"an array of {n}"


def _none_fits(place: int, args: Args, failed: Failed) -> Any:
    """Refuse all nodes; the reason comes after those that the plugin states."""
    return np.full(len(args[1]), len(failed.reasons) + place, dtype=np.int16)


def _ask_nodes(ask: Callable[..., Any], args: Args) -> Halves:
    asker, nodes = args
    return ask_by_halves(lambda half: ask(asker, nodes.part(half)), len(nodes))


def _spare_codes(place: int, ask: Callable[..., Any], args: Args, failed: Failed) -> Spared | None:
    halves = _ask_nodes(ask, args)
    codes = _none_fits(place, args, failed)
    for half, found in halves.answered:
        fits = found is None or found.dtype == np.bool_
        codes[half] = (0 if found is None else ~found) if fits else found
    return (codes, []) if halves.answered else None


def _spare_scores(ask: Callable[..., Any], args: Args, _: Failed) -> Spared | None:
    halves = _ask_nodes(ask, args)
    scores = np.zeros(len(args[1]))
    for half, found in halves.answered:
        scores[half] = 0.0 if found is None else found
    return (scores, []) if halves.answered else None


def _scores(found: Any, args: Args, _: Reasons) -> str:
    """Check the numbers only where all nodes are asked: that is rare."""
    if found is None:
        return ""
    n = len(args[1])
    if getattr(found, "shape", None) != (n,):
        return f"{n} scores"
    odd = args[1].rows is ALL and not np.isfinite(found).all()
    return f"{n} finite numbers" if odd else ""


def _finite_scores(found: Any, args: Args, _: Reasons) -> str:
    if found is None:
        return ""
    n = len(args[1])
    if getattr(found, "shape", None) != (n,):
        return f"{n} scores"
    return "" if _is_finite(found) else f"{n} finite numbers"


def _exact_scores(found: Any, args: Args, _: Reasons) -> str:
    if found is None or _no_array(found, args):
        return "" if found is None else _no_array(found, args)
    if found.dtype.kind not in "fiu":
        return "numbers"
    return "" if np.isfinite(found).all() else "finite numbers"


def _is_finite(found: Any) -> bool:
    return found.dtype.kind in _NUMBERS and math.isfinite(found.sum())


def _reason(found: Any, *_: Any) -> str:
    return "" if found is None or isinstance(found, Reason) else "a Reason or None"


def _candidate(found: Any, args: Args, _: Reasons) -> str:
    if found is None:
        return ""
    whole = isinstance(found, int | np.integer) and not isinstance(found, bool)
    return "" if whole and found in args[1].index else "the row of one of the nodes, or None"


# Orders


def _keys(found: Any, args: Args, _: Reasons) -> str:
    n = len(args[0])
    shape = found.shape if isinstance(found, np.ndarray) else np.shape(found)
    return "" if shape[-1:] == (n,) else f"a list of {counted(n, 'key')}"


def _number_keys(found: Any, args: Args, reasons: Reasons) -> str:
    wanted = _keys(found, args, reasons)
    is_bad = not wanted and np.asarray(found).dtype.kind not in _NUMBERS
    return f"a list of {counted(len(args[0]), 'key')}, all of them numbers" if is_bad else wanted


def _finite_keys(found: Any, args: Args, reasons: Reasons) -> str:
    wanted = _number_keys(found, args, reasons)
    is_bad = not wanted and np.isnan(found).any()
    return f"a list of {counted(len(args[0]), 'key')}, all of them numbers" if is_bad else wanted


def _spare_keys(ask: Callable[..., Any], args: Args, _: Failed) -> Spared | None:
    (view,) = args
    halves = ask_by_halves(lambda half: np.atleast_2d(ask(view.part(half))), len(view))
    keys = np.zeros((max((len(found) for _, found in halves.answered), default=1), len(view)))
    for half, found in halves.answered:
        keys[: len(found), half] = found
    return (keys, view.index[halves.failed].tolist()) if halves.answered else None


def _number(found: Any, *_: Any) -> str:
    good = isinstance(found, _NUMBER) and not math.isnan(found)
    return "" if good else "a number"


# Votes and victims


def _yes_or_no(found: Any, *_: Any) -> str:
    return "" if isinstance(found, _YES_NO) else "true or false"


def _true_or_false(found: Any, *_: Any) -> str:
    return "" if isinstance(found, bool | np.bool_) else "true or false"


def _vote(found: Any, *_: Any) -> str:
    good = isinstance(found, int | np.integer) and found in (-1, 0, 1)
    return "" if good else "a vote of -1, 0 or 1"


def _or_refusal(check: Check) -> Check:
    """Accept a refusal, too."""
    return lambda found, *asked: "" if isinstance(found, Refusal) else check(found, *asked)


def _text(found: Any, *_: Any) -> str:
    return "" if found is None or isinstance(found, str) else "a text, empty if all is well"


def _exact_text(found: Any, *_: Any) -> str:
    return "" if isinstance(found, str) else "a text"


def _mask(found: Any, args: Args, _: Reasons) -> str:
    n = len(args[1])
    return "" if found is None or len(found) == n else f"a mask of {n}"


def _spare_mask(ask: Callable[..., Any], args: Args, _: Failed) -> Spared | None:
    """Leave out the candidates for which it fails; the others are asked about together."""
    asker, candidates = args
    failed = _failing(lambda some: ask(asker, some), candidates)
    kept = np.array([row not in failed for row in candidates], dtype=bool)
    found = ask(asker, [row for row in candidates if row not in failed]) if kept.any() else None
    if found is None:
        return None
    kept[kept] = found
    return kept, list(failed)


def _spare_tasks(ask: Callable[..., Any], args: Args, _: Failed) -> Spared | None:
    failed = _failing(ask, args[0])
    rest = [row for row in args[0] if row not in failed]
    return (ask(rest), list(failed)) if rest else None


def _failing(ask: Callable[[list[int]], Any], rows: list[int]) -> dict[int, None]:
    halves = ask_by_halves(lambda half: ask(rows[half]), len(rows))
    return dict.fromkeys(rows[at] for at in halves.failed)


def _true_mask(found: Any, args: Args, reasons: Reasons) -> str:
    wanted = _mask(found, args, reasons)
    if wanted or found is None or not len(found):
        return wanted
    return "" if np.asarray(found).dtype.kind in _CODES else "a mask of true and false"


def _exact_mask(found: Any, args: Args, _: Reasons) -> str:
    n, mask = len(args[-1]), np.asarray(found)
    good = found is None or (mask.shape == (n,) and mask.dtype == np.bool_)
    return "" if good else f"{n} times true or false"


def _rows(found: Any, args: Args, _: Reasons) -> str:
    whole = isinstance(found, _SEVERAL) and all(isinstance(x, int | np.integer) for x in found)
    good = whole and set(args[0]).issuperset(found)
    return "" if good else "a list of some of the tasks"


# Network domains


def _levels(found: Any, *_: Any) -> str:
    good = isinstance(found, list | tuple) and all(
        isinstance(level, list | tuple) and all(hasattr(each, "rows") for each in level)
        for level in found
    )
    return "" if good else "lists of domains, level by level"


def _domain_scores(found: Any, args: Args, _: Reasons) -> str:
    n = len(args[1])
    good = found is None or (getattr(found, "shape", None) == (n,) and _is_finite(found))
    return "" if good else f"{n} finite numbers, or None"


NOTHING: Final = Answer()
FACT_CODES: Final = Answer(
    _known_codes, _size, _exact_codes, partial(_none_fits, 1), partial(_spare_codes, 1)
)
CODES: Final = Answer(
    _known_codes, _size, _exact_codes, partial(_none_fits, 2), partial(_spare_codes, 2)
)
SCORES: Final = Answer(_finite_scores, _scores, _exact_scores, spare=_spare_scores)
RANKS: Final = Answer(_finite_scores, _scores, _exact_scores)
"""Scores that depend on the other nodes in the question."""
REASON: Final = Answer(_reason, safe=lambda _, failed: failed.reason)
CANDIDATE: Final = Answer(_candidate)
KEYS: Final = Answer(
    _finite_keys, _keys, safe=lambda args, _: [0.0] * len(args[0]), spare=_spare_keys
)
SOME_KEYS: Final = Answer(_number_keys, _keys, safe=KEYS.safe, spare=_spare_keys)
"""Keys of which some may be missing: not a number."""
COMPARISON: Final = Answer(_number, safe=lambda *_: 0)
YES_NO: Final = Answer(_yes_or_no, exact=_true_or_false, safe=lambda *_: False)
NO_YES: Final = Answer(_yes_or_no, exact=_true_or_false, safe=lambda *_: True)
"""Yes or no, where yes changes least."""
VERDICT: Final = Answer(
    _or_refusal(_yes_or_no),
    exact=_or_refusal(_true_or_false),
    safe=lambda _, failed: failed.refusal,
)
VOTE: Final = Answer(
    _or_refusal(_number), exact=_or_refusal(_vote), safe=lambda _, failed: failed.refusal
)
PROBLEM: Final = Answer(_text, exact=_exact_text, safe=lambda _, failed: failed.text)
MASK: Final = Answer(
    _true_mask, _mask, _exact_mask, lambda args, _: [False] * len(args[1]), _spare_mask
)
TASKS: Final = Answer(_rows, safe=lambda *_: [], spare=_spare_tasks)
LEVELS: Final = Answer(_levels, safe=lambda *_: [])
DOMAIN_SCORES: Final = Answer(_domain_scores)
