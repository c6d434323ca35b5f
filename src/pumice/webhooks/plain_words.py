"""What would have been right, in plain words, from the messages of Kubernetes and Volcano.

The messages themselves stay as they are: scripts match on them.
"""

import re
from typing import Final

from pumice.api.quantity import WANTED_QUANTITY
from pumice.api.wording import counted

_ENDS: Final = "a letter or digit first and last"
_LABEL: Final = f"lower case letters, digits and '-', {_ENDS}"
_SUBDOMAIN: Final = f"lower case letters, digits, '-' and '.', {_ENDS}"
_KEY: Final = f"letters, digits, '-', '_' and '.', {_ENDS}"
_NOT_WORDS: Final = "and must start and end with an alphanumeric character"
_SENTENCES: Final = (
    (
        (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            f"{_NOT_WORDS}"
        ),
        _LABEL,
    ),
    (
        (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            f"'-' or '.', {_NOT_WORDS}"
        ),
        _SUBDOMAIN,
    ),
    (
        (
            "a valid label must be an empty string or consist of alphanumeric characters, "
            f"'-', '_' or '.', {_NOT_WORDS}"
        ),
        f"nothing, or {_KEY}",
    ),
    (
        f"name part must consist of alphanumeric characters, '-', '_' or '.', {_NOT_WORDS}",
        f"a name of {_KEY}",
    ),
    (
        (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic character, and end with an alphanumeric character"
        ),
        "lower case letters, digits and '-', a letter first, a letter or digit last",
    ),
    (
        "a valid percent string must be a numeric string followed by an ending '%'",
        "a number followed by '%'",
    ),
    (
        "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
        "only one of exactMatch, regexMatch and labelMatch",
    ),
    (
        "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights",
        "as many parts in volcano.sh/hierarchy as in volcano.sh/hierarchy-weights",
    ),
    (
        f"a valid label key must consist of alphanumeric characters, '-', '_' or '.', {_NOT_WORDS}",
        _KEY,
    ),
    (
        " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ", behind a prefix with '/' if need be (such as 'example.com/MyName')",
    ),
    (
        (
            "a valid environment variable name must consist of alphabetic characters, digits, '_', "
            "'-', or '.', and must not start with a digit"
        ),
        "letters, digits, '_', '-' and '.', no digit first",
    ),
    (
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        "only lower case letters, digits and '-'",
    ),
    ("must contain at least one letter (a-z)", "at least one lower case letter"),
    ("must not contain ", "no "),
    (
        "member regexMatch pattern is invalid: error parsing regexp: ",
        "a regular expression that can be read: ",
    ),
    ("at least 1 chars long", "a text that is not empty"),
    ("prefix part lower case", "a prefix of lower case"),
    ("greater than or equal to ", "at least "),
    ("less than or equal to ", "at most "),
)
_PATTERNS: Final = {
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$": _LABEL,
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$": _SUBDOMAIN,
    "^[^:]+$": "a text without ':'",
}
_BOUND: Final = re.compile(r"(?P<sign>[<>])= (?P<field>\w+)\[.*\]=(?P<amount>\S+)")
_ITEMS: Final = re.compile(r"have at least (?P<least>\d+) items")
_LONGEST: Final = 1000
"""Characters of a message that is put in other words: a longer one quotes its input."""


_TYPES: Final = {
    "array": "a list",
    "list": "a list",
    "object": "a mapping",
    "struct": "a mapping",
    "map": "a mapping",
    "integer": "a whole number",
    "int": "a whole number of 64 bits",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number of 64 bits",
    "number": "a number",
    "double": "a number",
    "float": "a number",
    "string": "a text",
    "boolean": "true or false",
    "bool": "true or false",
    "Quantity": WANTED_QUANTITY,
    "Duration": 'a duration such as "1h30m"',
    "Time": 'a time such as "2026-01-15T10:00:00Z"',
    "date-time": 'a time such as "2026-01-15T10:00:00Z"',
}
"""Types of schemas and of Go."""
_UNQUOTED: Final = ("integer", "number", "bool")
"""How the types of values begin that quotes make a text."""


def plain_type(names: str, found: str = "", shape: str = "") -> str:
    """Describe a type, or one of several, in plain words.

    ``found`` is the type found instead, ``shape`` what a type with a name of its own is made of.
    """
    listed = names.split(",")
    if any(name not in _TYPES for name in listed):
        listed = [shape]
    words = " or ".join(_TYPES.get(name, "something else") for name in listed)
    return f"{words} (quote it)" if listed == ["string"] and found.startswith(_UNQUOTED) else words


def plainly(detail: str) -> str:
    """Describe in plain words what a message of Kubernetes or Volcano wants."""
    if len(detail) > _LONGEST:
        return detail
    if found := _BOUND.fullmatch(detail):
        most = "at most" if found["sign"] == "<" else "at least"
        return f"{most} {found['amount']}, its {found['field']}"
    if found := _ITEMS.fullmatch(detail):
        return f"at least {counted(int(found['least']), 'item')}"
    if detail.startswith("match '"):
        pattern = detail.removeprefix("match '").removesuffix("'")
        return _PATTERNS.get(pattern, f"a text that matches '{pattern}'")
    text = _without_pattern(detail)
    for formal, plain in _SENTENCES:
        text = text.replace(formal, plain)
    return text


def _without_pattern(text: str) -> str:
    """Keep of "(e.g. …, regex used for validation is …)" the examples."""
    head, begins, rest = text.partition(" (e.g. ")
    examples, found, pattern = rest.partition(", regex used for validation is '")
    if not (begins and found):
        return text
    _, _, tail = pattern.partition("')")
    return f"{head} (such as {examples.replace(',  or ', ' or ')}){tail}"
