"""Options as the original reads them: anywhere among the words, with Go's messages."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pumice.cli.vcctl.verbs import Flag

_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_FALSE: Final = ("0", "f", "F", "false", "FALSE", "False")
_INTEGER: Final = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+"
    r"|0(?:_?[0-7])*|[1-9](?:_?[0-9])*)"
)
_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_BITS: Final = {"int": 64, "int32": 32, "Level": 32}

HELP: Final = Flag("help", "h", kind="bool", default=False)


class FlagError(Exception):
    """Words that cannot be read as options; ``suggestions`` follow on lines of their own."""

    def __init__(self, message: str, suggestions: str = "") -> None:
        super().__init__(message)
        self.message, self.suggestions = message, suggestions


@dataclass
class Parsed:
    """The options by name, and the other words."""

    options: dict[str, Any]
    arguments: list[str] = field(default_factory=list)

    @property
    def wants_help(self) -> bool:
        """Whether help was requested."""
        return bool(self.options["help"])


def parse(flags: Sequence[Flag], words: Sequence[str]) -> Parsed:
    """Read words as options and arguments.

    Raises:
        FlagError: an option that does not exist, lacks its value or has one it cannot have.
    """
    known = (*flags, HELP)
    parsed = Parsed({flag.name: flag.default for flag in known})
    names = {flag.name: flag for flag in known}
    shorts = {flag.short: flag for flag in known if flag.short}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            parsed.arguments += rest
            break
        if word.startswith("--"):
            _read_long(word, rest, names, parsed.options)
        elif word.startswith("-") and word != "-":
            _read_short(word, rest, shorts, parsed.options)
        else:
            parsed.arguments.append(word)
    return parsed


def first_argument(words: Sequence[str]) -> int | None:
    """Find the first word that is neither an option nor, as far as can be seen, its value."""
    skipping = False
    for at, word in enumerate(words):
        if skipping:
            skipping = False
        elif word == "--":
            return None
        elif word.startswith("-") and word != "-":
            long = word.startswith("--")
            skipping = word not in ("--help", "-h") and ("=" not in word if long else len(word) < 3)
        else:
            return at
    return None


def _read_long(
    word: str, rest: list[str], known: Mapping[str, Flag], options: dict[str, Any]
) -> None:
    name, equals, text = word[2:].partition("=")
    if not name or name.startswith("-"):
        raise FlagError(f"bad flag syntax: {word}")
    flag = known.get(name.replace("_", "-"))
    if flag is None:
        raise FlagError(f"unknown flag: --{name}")
    if not equals and flag.takes_value:
        if not rest:
            raise FlagError(f"flag needs an argument: --{name}")
        text = rest.pop(0)
    elif not equals:
        text = "true"
    options[flag.name] = _value(flag, text)


def _read_short(
    word: str, rest: list[str], known: Mapping[str, Flag], options: dict[str, Any]
) -> None:
    letters = word[1:]
    while letters:
        flag = known.get(letters[0])
        if flag is None:
            raise FlagError(f"unknown shorthand flag: {letters[0]!r} in -{letters}")
        whole, letters = letters, letters[1:]
        if letters.startswith("=") and len(letters) > 1:
            text, letters = letters[1:], ""
        elif not flag.takes_value:
            text = "true"
        elif letters:
            text, letters = letters, ""
        elif rest:
            text = rest.pop(0)
        else:
            raise FlagError(f"flag needs an argument: {whole[0]!r} in -{whole}")
        options[flag.name] = _value(flag, text)


def _value(flag: Flag, text: str) -> Any:
    """Read the value of an option by its kind."""
    read = _READERS.get(flag.kind)
    if read is None:
        return text
    try:
        return read(text, flag.kind)
    except ValueError as error:
        shown = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
        raise FlagError(f'invalid argument "{text}" for "{shown}" flag: {error}') from None


def _integer(text: str, kind: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text.lstrip("+"))
    if re.fullmatch(r"0[0-7_]+", digits):
        digits = f"0o{digits[1:].lstrip('_')}"
    number = int(sign + digits, 0)
    bound = 1 << (_BITS[kind] - 1)
    if not -bound <= number < bound:
        raise ValueError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return number


def _boolean(text: str, _kind: str) -> bool:
    if text not in (*_TRUE, *_FALSE):
        raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')
    return text in _TRUE


def _duration(text: str, _kind: str) -> str:
    if not _DURATION.fullmatch(text):
        raise ValueError(f'time: invalid duration "{text}"')
    return text


_READERS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    "int": _integer,
    "int32": _integer,
    "Level": _integer,
    "bool": _boolean,
    "duration": _duration,
}
