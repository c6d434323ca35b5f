"""JSON text to plain values, with Kubernetes' rules for numbers; hostile text is refused.

Used by pumice.api.manifests for files and by the embedded API server for requests.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, Final, NoReturn

import msgspec

from pumice.errors import ManifestError, Words

DEPTH: Final = 100
"""Nested levels of a document; a manifest needs 20."""
NOT_JSON: Final = "readable JSON"
"""The message where a text is not JSON at all."""
_STRUCTURE: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)
_NO_STRUCTURE: Final = bytes(set(range(256)) - set(b'"[]{}:'))
_DIGITS_AS_ZERO: Final = bytes.maketrans(b"123456789", b"0" * 9)
_LONG: Final = b"0" * 19
"""A number of as many digits may be beyond 64 bits."""
_UNDECIDED: Final = object()
_HALF: Final = re.compile("[\ud800-\udfff]")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE: Final = re.compile(r"\s*")
_INT64: Final = 1 << 63
_LONGEST: Final = 400  # digits; a finite float has at most 309 before the point


_FAULTS: Final = {
    "Expecting value": "no value where one must follow",
    "Expecting property name enclosed in double quotes": "no name in double quotes",
    "Unterminated string starting at": "a quote that is not closed",
    "Illegal trailing comma before end of object": "a comma before the end of an object",
    "Illegal trailing comma before end of array": "a comma before the end of a list",
}
"""What the parser says, and what is there."""


def _fault_words(message: str) -> Words:
    """Describe what is there in place of JSON."""
    if message.startswith("Expecting "):
        missing = message.removeprefix("Expecting ").removesuffix(" delimiter")
        return Words(_FAULTS.get(message, f"no {missing} where one must follow"))
    return Words(_FAULTS.get(message, message[:1].lower() + message[1:]))


class JsonValue(msgspec.Struct, frozen=True):
    """One value of a text, and the line on which it begins."""

    content: Any
    line: int


def starts_like_json(text: str) -> bool:
    """Return whether a text begins with a bracket or a brace."""
    start = _after_space(text, 0)
    return text[start : start + 1] in ("{", "[")


def parse_json(text: str, file: str, *, unique: bool = True) -> Any:
    """Return the one value of a text; ``unique`` refuses a key that is given twice.

    Raises:
        ManifestError: not JSON, or more than the one value.
    """
    values = parse_json_stream(text, file, unique=unique)
    found = next(values, None)
    if found is None:
        raise ManifestError(wanted=NOT_JSON, found=Words("an empty text"), file=f"{file}:1")
    if (more := next(values, None)) is not None:
        raise ManifestError(
            wanted="one JSON value", found=Words("more"), file=f"{file}:{more.line}"
        )
    return found.content


def parse_json_stream(text: str, file: str, *, unique: bool = True) -> Iterator[JsonValue]:
    """Yield the JSON values that follow each other in a text.

    Raises:
        ManifestError: not JSON; names the file and the line.
    """
    data = text.encode(errors="surrogatepass")
    structure = _structure(data)
    if not _is_shallow(structure):
        check_depth(text, file)
    content = _one_value(data, structure.count(b":") if unique else None)
    if content is not _UNDECIDED:
        yield JsonValue(content, text.count("\n", 0, _after_space(text, 0)) + 1)
        return
    decoder = _UNIQUE_KEYS if unique else _ANY_KEYS
    position = _after_space(text, 0)
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        try:
            content, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            raise ManifestError(
                wanted=NOT_JSON, found=_fault_words(error.msg), file=f"{file}:{error.lineno}"
            ) from None
        except ManifestError as error:
            error.file = f"{file}:{line}"
            raise
        if _SURROGATE.search(text):
            _check_characters(content, f"{file}:{line}")
        yield JsonValue(content, line)
        position = _after_space(text, position)


def lone_surrogate(text: str) -> bool:
    """Return whether a text holds half a character, which UTF-8 cannot encode."""
    return not text.isascii() and _HALF.search(text) is not None


def _check_characters(content: Any, file: str) -> None:
    """Refuse half a character: the escape of one surrogate without the other."""
    for text in _texts(content):
        if lone_surrogate(text):
            raise ManifestError(wanted="whole characters", found=text, file=file)


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        yield from content
        yield from _each(content.values())
    elif isinstance(content, list):
        yield from _each(content)


def _each(items: Iterable[Any]) -> Iterator[str]:
    for item in items:
        yield from _texts(item)


def _one_value(data: bytes, keys: int | None) -> Any:
    """Return the one value of a text, if no rules but those of JSON matter; that is much faster.

    ``keys`` is their number in the text: a value with fewer has one that was given twice.  Several
    values, mistakes and numbers beyond 64 bits are left to the way that knows what they mean.
    """
    if _LONG in data.translate(_DIGITS_AS_ZERO):
        return _UNDECIDED
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _UNDECIDED
    if keys is None or _structure(msgspec.json.encode(content)).count(b":") == keys:
        return content
    return _UNDECIDED


def is_surely_shallow(line: bytes) -> bool:
    """Return whether brackets nest within reason, False if that takes longer to find out."""
    few = line.count(b"{") + line.count(b"[") <= DEPTH
    return few or _is_shallow(_structure(line))


def check_depth(text: str, file: str) -> None:
    """Refuse nesting beyond reason before the decoder, which recurses, reaches it.

    Raises:
        ManifestError: there is some.
    """
    depth = 0
    for token in _STRUCTURE.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
        elif first in "]}":
            depth -= 1
        if depth > DEPTH:
            line = text.count("\n", 0, token.start()) + 1
            wanted = f"at most {DEPTH} nested levels"
            raise ManifestError(wanted=wanted, found=Words("more"), file=f"{file}:{line}")


def _structure(data: bytes) -> bytes:
    """Return the brackets, braces and colons of a text that are not inside strings."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = data.translate(None, _NO_STRUCTURE).replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2])


def _is_shallow(structure: bytes) -> bool:
    """Return True only if brackets nest within reason: a quick check that may say False in doubt.

    Removing ``[]`` and then ``{}`` removes one or two levels at a time.
    """
    brackets = structure.replace(b":", b"")
    for _ in range(DEPTH // 2):
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if not brackets:
            return True
    return False


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict, refusing a key given twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ManifestError(wanted="each key once", found=twice)
    return content


def _integer(text: str) -> int | float:
    """Read an integer; one beyond 64 bits is a float, as in Kubernetes."""
    if len(text) <= _LONGEST and -_INT64 <= (number := int(text)) < _INT64:
        return number
    return _float(text)


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ManifestError(wanted="a number that fits 64 bits", found=text)
    return number


def _no_constant(name: str) -> NoReturn:
    raise ManifestError(wanted="a finite number", found=name)


def _decoder(pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=pairs_hook,
        parse_constant=_no_constant,
        parse_int=_integer,
        parse_float=_float,
    )


_UNIQUE_KEYS: Final = _decoder(_unique)
_ANY_KEYS: Final = _decoder(None)


class FrozenJson(dict[str, Any]):
    """An object that does not change any more."""

    @cached_property
    def text(self) -> bytes:
        """The object as JSON."""
        return msgspec.json.encode(dict(self))


def encode_parts(payload: Any) -> bytes:
    """Write a value as JSON; frozen objects in a mapping, or in lists there, stay as they are."""
    if not isinstance(payload, dict):
        return msgspec.json.encode(payload)
    items = (msgspec.json.encode(key) + b":" + _encode(part) for key, part in payload.items())
    return b"{" + b",".join(items) + b"}"


def _encode(part: Any) -> bytes:
    if isinstance(part, FrozenJson):
        return part.text
    if isinstance(part, list) and part and all(isinstance(each, FrozenJson) for each in part):
        return b"[" + b",".join([each.text for each in part]) + b"]"
    return msgspec.json.encode(part)
