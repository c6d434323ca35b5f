r"""Text that came from outside, as it may be shown: nothing in it moves a cursor or hides a letter.

Names, values, paths and messages of other programs may hold terminal escapes, marks that reverse
the direction of writing, characters without a width and line breaks.  Each is written as an escape,
such as ``\u001b``; letters of every language stay.
"""

import re
from typing import Final

_MARKS: Final = (
    r"\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\ufffe\uffff\U000110bd\U000110cd"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
)
"""Controls, marks of direction and format, separators of lines, halves of characters."""
_MARK: Final = re.compile(f"[{_MARKS}]")
_MARK_IN_LINES: Final = re.compile(rf"(?![\n\t])[{_MARKS}]")
_USER: Final = re.compile(r"\A([A-Za-z][\w+.-]*://)?.*@", re.DOTALL)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text: str) -> str:
    """Write a text as one line without control characters or marks that do not show."""
    return text if text.isprintable() else _MARK.sub(_escape, text)


def shown_lines(text: str) -> str:
    """Write a text whose line breaks and tabs are our own; its parts have been through ``shown``.

    Marks are escaped here too, as YAML does inside double quotes.
    """
    return _MARK_IN_LINES.sub(_escape, text)


def shown_json(text: str) -> str:
    """Write a JSON document without control characters or marks; it means the same."""
    return _MARK_IN_LINES.sub(_escape_in_json, text)


def without_secrets(address: str) -> str:
    """Return an address without its user, password and query: messages and logs are read by all.

    What is not a right address may hold them, too, so all up to the last ``@`` is left out.
    """
    return _USER.sub(r"\1", address).partition("?")[0].partition("#")[0]


def has_marks(text: str) -> bool:
    """Return whether a text holds marks, line breaks and tabs aside."""
    return not text.isprintable() and _MARK_IN_LINES.search(text) is not None


def _escape(match: re.Match[str]) -> str:
    mark = match[0]
    code = ord(mark)
    return _SHORT.get(mark) or (f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}")


def _escape_in_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
