"""Every exception of Pumice, on one page; used by all layers, imports none.

    PumiceError
    ├── InputError (also a ValueError)   something a person wrote is wrong
    │   ├── ManifestError                an object that Kubernetes would refuse
    │   ├── QuantityError                a resource amount
    │   ├── ConfError                    the scheduler configuration, all its problems at once
    │   └── ScenarioError                a scenario file
    ├── OutputError (also an OSError)    a file that cannot be written
    ├── PluginError                      a plugin broke its contract
    │   ├── UnknownHookError             a method that no hook is named after
    │   └── BadHookResultError           an answer of the wrong type, shape or value
    ├── ServiceError                     another program: out of reach, or garbled
    │   ├── HttpError                    one that is asked over HTTP
    │   └── ExtenderError                one that decides with us
    ├── ClusterError                     a cluster, real or embedded, did not do what was asked
    │   ├── NotFoundError                no such object
    │   ├── AlreadyExistsError           the name is taken
    │   ├── ConflictError                the object is not as it was when it was read
    │   ├── GoneError                    a watch from before what is still remembered
    │   ├── RejectedError                an object or a change that the cluster refuses
    │   │   ├── UnauthorizedError        credentials that the cluster does not accept
    │   │   ├── TooLargeError            one that would take too much
    │   │   ├── DeniedError              one that admission refuses, in its own words
    │   │   └── ForbiddenError           one that the cluster itself does not admit
    │   │       ├── NamespaceTerminatingError  an object for a namespace that is being deleted
    │   │       └── QuotaExceededError   an object that a resource quota has no room for
    │   ├── UnavailableError             out of reach, overloaded or too slow; try again later
    │   └── FencedError                  a write held back: this process may not write now
    └── InvariantError                   Pumice itself is wrong; carries its story

The text of an error is made from its attributes, so an error survives pickling between processes.
"""

import errno as codes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final


class _Absent:
    """The value that is absent, as opposed to a null."""

    def __repr__(self) -> str:
        return "nothing"

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


class Words(str):
    """A description in place of a found value: printed without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


_SHOWN = 80  # characters of an offending value; more hides the message
_MOST_CHARACTERS: Final = 4000
"""The longest message, whatever it quotes; a screen or two."""
_MOST_OF_A_PROBLEM: Final = 3000
"""The longest part of a message that another program or an author of plugins wrote."""
_MOST_OF_A_PLACE: Final = 500
"""The longest name of a file or a field in a message."""


def bounded(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Cut a message that is too long to read, and count what is left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"


def _show(found: object) -> str:
    """Print an offending value, cut to a readable length; files know None as null."""
    text = ""
    try:
        for piece in _pieces(found):
            text += piece
            if len(text) > _SHOWN:  # a large value is not written to its end
                return f"{text[: _SHOWN - 1]}…"
    except (ValueError, RecursionError):  # an integer of 4300 digits, bottomless nesting
        return f"a very large {type(found).__name__}"
    return text


def _pieces(value: object) -> Iterator[str]:
    """Write a value piece by piece."""
    if value is None:
        yield "null"
    elif type(value) is dict:
        for number, (key, each) in enumerate(value.items()):
            yield f"{', ' if number else '{'}{key!r}: "
            yield from _pieces(each)
        yield "}" if value else "{}"
    elif type(value) is list:
        for number, each in enumerate(value):
            yield ", " if number else "["
            yield from _pieces(each)
        yield "]" if value else "[]"
    elif type(value) is str:
        yield repr(value[: _SHOWN + 1])
    else:
        yield repr(value)


_KNOWN: Final = "a known "


def _sentence(where: Sequence[str], wanted: str, found: object, hint: str) -> str:
    """Write where, what was wanted, what was found and what may help."""
    place = _places(where)
    if wanted.startswith(_KNOWN) and isinstance(found, str):
        advice = f"; {hint}" if hint else ""
        return f"{place}unknown {wanted.removeprefix(_KNOWN)} {_show(found)}{advice}"
    advice = f" ({hint})" if hint else ""
    return f"{place}expected {wanted}, got {_show(found)}{advice}"


def _places(where: Sequence[str]) -> str:
    return "".join(f"{bounded(part, _MOST_OF_A_PLACE)}: " for part in where if part)


class PumiceError(Exception):
    """Anything Pumice raises on purpose."""

    def __str__(self) -> str:
        return bounded(self._text())

    def lines(self) -> Sequence[str]:
        """Return the lines of the message; a line break inside one came from outside."""
        return (str(self),)

    def _text(self) -> str:
        """Write the message; whatever its length, a reader gets what fits a screen."""
        return super().__str__()


class InputError(PumiceError, ValueError):
    """Input that cannot be used: its place, what was found, what was wanted."""

    def __init__(
        self,
        *,
        wanted: str = "",
        found: object = ABSENT,
        field: str = "",
        file: str = "",
        hint: str = "",
    ) -> None:
        super().__init__()
        self.wanted, self.found, self.hint = wanted, found, hint
        self.field, self.file = field, file

    def _text(self) -> str:
        return _sentence(self._where(), self.wanted, self.found, self.hint)

    def _where(self) -> tuple[str, ...]:
        return self.file, self.field


class ManifestError(InputError):
    """An object that cannot be read; ``path`` are the keys and indices that lead to the fault."""

    def __init__(
        self,
        *,
        wanted: str = "",
        found: object = ABSENT,
        field: str = "",
        file: str = "",
        hint: str = "",
        subject: str = "",
        path: Sequence[str | int] = (),
    ) -> None:
        super().__init__(wanted=wanted, found=found, field=field, file=file, hint=hint)
        self.subject = subject
        self.path = tuple(path)

    def _where(self) -> tuple[str, ...]:
        return self.file, self.subject, self.field


class QuantityError(InputError):
    """A resource amount that is not a Kubernetes quantity, or not one that can be counted."""


class ScenarioError(InputError):
    """A scenario file that asks for something that cannot be set up."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing wrong in a configuration file; ``line`` counts from 1, 0 when unknown."""

    wanted: str = ""
    found: object = ABSENT
    field: str = ""
    line: int = 0
    hint: str = ""
    says: str = ""
    """What follows from it, in place of what was wanted and found."""

    def __str__(self) -> str:
        where = (f"line {self.line}" if self.line else "", self.field)
        if self.says:
            return f"{_places(where)}{self.says}{f' ({self.hint})' if self.hint else ''}"
        return _sentence(where, self.wanted, self.found, self.hint)


class ConfError(InputError):
    """A scheduler configuration with one or more problems; the attributes are of the first."""

    def __init__(self, problems: Sequence[Problem] = (), *, file: str = "") -> None:
        first = problems[0] if problems else Problem(wanted="a scheduler configuration")
        super().__init__(
            wanted=first.wanted, found=first.found, field=first.field, file=file, hint=first.hint
        )
        self.problems = tuple(problems)

    def lines(self) -> Sequence[str]:
        """Return the one problem, or their number and each."""
        where = f"{self.file}: " if self.file else ""
        if len(self.problems) == 1:
            return (bounded(f"{where}{self.problems[0]}"),)
        lines = [bounded(f"{where}{len(self.problems)} problems in the configuration")]
        for problem in self.problems:
            if sum(map(len, lines)) > _MOST_CHARACTERS:  # the rest is not shown
                break
            lines.append(bounded(str(problem)))
        return lines

    def _text(self) -> str:
        return "\n  ".join(self.lines())


_REMEDIES: Final = {
    **dict.fromkeys((codes.ENOSPC, codes.EDQUOT, codes.EFBIG), "free some space and try again"),
    **dict.fromkeys(
        (codes.EACCES, codes.EPERM, codes.EROFS),
        "choose a file that you may write, in a folder that you may write to",
    ),
    codes.ENOENT: "make its folder first, or choose another",
    codes.ENOTDIR: "part of its path is a file; choose another",
    codes.EISDIR: "this is a folder; add the name of a file",
    codes.ELOOP: "name the file itself, or remove the link",
    codes.EEXIST: "a file has this name; choose another",
}


class OutputError(PumiceError, OSError):
    """A file that cannot be written, with the system's number and words."""

    def __init__(
        self,
        errno: int | None = None,
        strerror: str | None = None,
        file: str = "",
        wanted: str = "a file that can be written",
    ) -> None:
        super().__init__(errno or 0, strerror or "an unknown error", file)
        self.wanted = wanted

    def _text(self) -> str:
        hint = _REMEDIES.get(self.errno or 0, "")
        return _sentence((str(self.filename),), self.wanted, Words(self.strerror or ""), hint)


class PluginError(PumiceError):
    """A plugin that cannot be used as asked; names the plugin and, where known, the hook."""

    def __init__(self, plugin: str = "", hook: str = "", problem: str = "") -> None:
        super().__init__()
        self.plugin, self.hook, self.problem = plugin, hook, bounded(problem, _MOST_OF_A_PROBLEM)

    def _text(self) -> str:
        hook = f", hook '{self.hook}'" if self.hook else ""
        return f"plugin '{self.plugin}'{hook}: {self.problem}"


class UnknownHookError(PluginError):
    """A public method of a plugin that is not a hook; ``nearest`` is the hook probably meant."""

    def __init__(self, plugin: str = "", hook: str = "", nearest: str = "") -> None:
        hint = f"; did you mean '{nearest}'?" if nearest else ""
        super().__init__(plugin, hook, f"there is no such hook{hint}")
        self.nearest = nearest


class BadHookResultError(PluginError):
    """A hook that answered against its contract."""

    def __init__(
        self, plugin: str = "", hook: str = "", *, wanted: str = "", found: object = ABSENT
    ) -> None:
        super().__init__(plugin, hook, f"expected {wanted}, got {_show(found)}")
        self.wanted = wanted
        self.found = found


class ServiceError(PumiceError):
    """A program that cannot be reached or does not answer as agreed; names the address."""

    def __init__(self, url: str = "", problem: str = "") -> None:
        super().__init__()
        self.url = bounded(url, _MOST_OF_A_PLACE)
        self.problem = bounded(problem, _MOST_OF_A_PROBLEM)

    def _text(self) -> str:
        return f"{self.url}: {self.problem}" if self.url else self.problem


class HttpError(ServiceError):
    """A service without a usable answer over HTTP; ``status`` is that of a refusal."""

    def __init__(self, url: str = "", problem: str = "", status: int = 0) -> None:
        super().__init__(url, problem)
        self.status = status


class ExtenderError(ServiceError):
    """An extender without a usable answer."""

    def _text(self) -> str:
        return f"extender at {super()._text()}"


class ClusterError(PumiceError):
    """A cluster that did not do what was asked; names the object and what was wrong.

    ``code`` and ``reason`` are those of a Kubernetes API server's answer in that case.
    """

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"
    usual_problem: ClassVar[str] = ""
    """What was wrong where nothing is said of it."""
    verbatim: bool = False
    """Whether ``problem`` is the whole message, in the words of the refusing side."""

    def __init__(
        self, kind: str = "", namespace: str = "", name: str = "", problem: str = ""
    ) -> None:
        super().__init__()
        self.kind, self.namespace, self.name = kind, namespace, name
        self.problem = bounded(problem or self.usual_problem, _MOST_OF_A_PROBLEM)

    def _text(self) -> str:
        place = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.kind} {place}".strip() + f": {self.problem}"


class NotFoundError(ClusterError):
    """An object that does not exist."""

    code = 404
    reason = "NotFound"
    usual_problem = "not found"


class AlreadyExistsError(ClusterError):
    """An object whose name is taken."""

    code = 409
    reason = "AlreadyExists"
    usual_problem = "already exists"


class ConflictError(ClusterError):
    """A write based on an older version, on another object of the same name, or a second bind."""

    code = 409
    reason = "Conflict"


class GoneError(ClusterError):
    """A watch that asks for changes no longer remembered; list again."""

    code = 410
    reason = "Expired"


class RejectedError(ClusterError):
    """An object or a change that the cluster refuses whatever its version."""

    code = 422
    reason = "Invalid"
    causes: tuple[tuple[str, str, str], ...] = ()
    """Reason, field and message of each finding, where they are known one by one."""


class UnauthorizedError(RejectedError):
    """A request whose credentials the cluster does not accept."""

    code = 401
    reason = "Unauthorized"


class TooLargeError(RejectedError):
    """A change that would take too much memory or time."""

    code = 413
    reason = "RequestEntityTooLarge"


class DeniedError(RejectedError):
    """A write that admission refuses; ``problem`` is the whole message, ready for the user."""

    code = 400
    reason = ""
    verbatim = True


class ForbiddenError(RejectedError):
    """A write that an API server itself does not admit; ``problem`` is the whole message."""

    code = 403
    reason = "Forbidden"
    verbatim = True


class NamespaceTerminatingError(ForbiddenError):
    """A creation in a namespace that is being deleted."""


class QuotaExceededError(ForbiddenError):
    """A creation that a resource quota has no room for, or that states too little for it."""

    plain: str = ""
    """The problem in our words; a real cluster does not give them."""


class UnavailableError(ClusterError):
    """A cluster that gave no usable answer.

    A write without an answer may or may not have been done, unless ``sent`` is False.  The cluster
    may have asked for a pause of ``retry_after_s``.
    """

    code = 503
    reason = "ServiceUnavailable"

    def __init__(
        self,
        kind: str = "",
        namespace: str = "",
        name: str = "",
        problem: str = "",
        *,
        sent: bool = True,
        retry_after_s: float = 0.0,
    ) -> None:
        super().__init__(kind, namespace, name, problem)
        self.sent = sent
        self.retry_after_s = retry_after_s


class FencedError(ClusterError):
    """A write that was not sent because its sender no longer leads, or does not yet."""

    code = 403
    reason = "Forbidden"
    usual_problem = "not sent: this process does not lead"


class InvariantError(PumiceError):
    """Pumice broke one of its own rules; ``story`` is what happened before, oldest first."""

    def __init__(self, rule: str = "", story: Sequence[str] = ()) -> None:
        super().__init__()
        self.rule = rule
        self.story = tuple(story)

    def lines(self) -> Sequence[str]:
        """Return the rule and the story."""
        return [bounded(line) for line in (f"broken rule: {self.rule}", *self.story)]

    def _text(self) -> str:
        return "\n  ".join(self.lines())
