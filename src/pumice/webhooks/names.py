"""Kubernetes' rules for names, labels, keys and ports, each with the message for a breach."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, wraps
from typing import Any, Final

from pumice.webhooks.fields import FieldError, Key, Step, invalid

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"
_ENV: Final = "[-._a-zA-Z][-._a-zA-Z0-9]*"
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_HEADER: Final = "[-A-Za-z0-9]+"
_KEY_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_LONGEST_KEY: Final = 317  # a subdomain, a slash and a name
Messages = list[str]
Steps = tuple[Step | Key, ...]


def _explained(text: str, pattern: str, *examples: str) -> str:
    listed = " or ".join(f"'{one}', " for one in examples)
    return f"{text} (e.g. {listed}regex used for validation is '{pattern}')"


_compiled: Final = cache(re.compile)


def _fits(pattern: str, value: str) -> bool:
    return _compiled(pattern).fullmatch(value) is not None


def byte_size(value: str) -> int:
    """Return the length of a text in UTF-8, half characters included."""
    return len(value) if value.isascii() else len(value.encode(errors="surrogatepass"))


def between(low: int, high: int) -> str:
    """Return the message that a number is out of bounds."""
    return f"must be between {low} and {high}, inclusive"


def in_range(low: int, high: int) -> Callable[[int], Messages]:
    """Return the check that a number is within bounds."""
    return lambda value: [] if low <= value <= high else [between(low, high)]


port_number: Final = in_range(1, 65535)
user_id: Final = in_range(0, 2**31 - 1)
"""Check the number of a user or a group."""


def _remembered(rule: Callable[[str], Messages]) -> Callable[[str], Messages]:
    """Remember what a rule says about short texts: the same few are on all objects."""
    known = lru_cache(maxsize=4096)(rule)

    @wraps(rule)
    def check(value: str) -> Messages:
        return known(value) if len(value) <= _LONGEST_KEY else rule(value)

    return check


@_remembered
def dns_label(value: str) -> Messages:
    """Check an RFC 1123 label."""
    found = ["must be no more than 63 characters"] if byte_size(value) > 63 else []
    if not _fits(_LABEL, value):
        text = (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character"
        )
        dotted = _fits(_SUBDOMAIN, value)
        example = _explained(text, _LABEL, "my-name", "123-abc")
        found.append("must not contain dots" if dotted else example)
    return found


def dns_subdomain(value: str, unit: str = "characters") -> Messages:
    """Check an RFC 1123 subdomain."""
    found = [f"must be no more than 253 {unit}"] if byte_size(value) > 253 else []
    if not _fits(_SUBDOMAIN, value):
        text = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            "'-' or '.', and must start and end with an alphanumeric character"
        )
        found.append(_explained(text, _SUBDOMAIN, "example.com"))
    return found


def dns_prefix(value: str) -> Messages:
    """Check the beginning of a subdomain, to which more will be appended."""
    masked = f"{value[:-2]}a" if len(value) > 1 and value.endswith("-") else value
    return dns_subdomain(masked)


@_remembered
def qualified_name(value: str) -> Messages:
    """Check the key of a label: a name, with a subdomain and a slash in front or not."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        text = _explained(_KEY_TEXT, _KEY, "MyName", "my.name", "123-abc")
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {text} {optional}"]
    found: Messages = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += [f"prefix part {text}" for text in dns_subdomain(prefix, "bytes")]
    if not name:
        found.append("name part must be non-empty")
    elif byte_size(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _fits(_KEY, name):
        found.append(f"name part {_explained(_KEY_TEXT, _KEY, 'MyName', 'my.name', '123-abc')}")
    return found


@_remembered
def label_value(value: str) -> Messages:
    """Check the value of a label."""
    found = ["must be no more than 63 bytes"] if byte_size(value) > 63 else []
    if not _fits(_VALUE, value):
        text = f"a valid label must be an empty string or {_KEY_TEXT.removeprefix('must ')}"
        found.append(_explained(text, _VALUE, "MyValue", "my_value", "12345"))
    return found


def port_name(value: str) -> Messages:
    """Check the name of a port."""
    found = ["must be no more than 15 characters"] if byte_size(value) > 15 else []
    if not _fits("[-a-z0-9]+", value):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if re.search("[a-z]", value) is None:
        found.append("must contain at least one letter (a-z)")
    if "--" in value:
        found.append("must not contain consecutive hyphens")
    if value and (value[0] == "-" or value[-1] == "-"):
        found.append("must not begin or end with a hyphen")
    return found


def env_name(value: str) -> Messages:
    """Check the name of an environment variable."""
    found = []
    if not _fits(_ENV, value):
        text = (
            "a valid environment variable name must consist of alphabetic characters, digits, "
            "'_', '-', or '.', and must not start with a digit"
        )
        found.append(_explained(text, _ENV, "my.env-name", "MY_ENV.NAME", "MyEnvName1"))
    return found + _dots(value)


def relaxed_env_name(value: str) -> Messages:
    """Check the name of an environment variable where almost any text is allowed."""
    if not value:
        return ["environment variable name must be non-empty"]
    if all(" " <= char <= "~" and char != "=" for char in value):
        return []
    text = (
        "a valid environment variable name must consist only of "
        "printable ASCII characters other than '='"
    )
    return [text]


def config_key(value: str) -> Messages:
    """Check a key of a config map or a secret."""
    found = ["must be no more than 253 characters"] if byte_size(value) > 253 else []
    if not _fits(_CONFIG_KEY, value):
        text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        found.append(_explained(text, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return found + _dots(value)


def header_name(value: str) -> Messages:
    """Check the name of an HTTP header."""
    if _fits(_HEADER, value):
        return []
    text = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [_explained(text, _HEADER, "X-Header-Name")]


def ip_address(value: str) -> Messages:
    """Check an IP address: no leading zeros, no IPv4 address inside one of IPv6."""
    plain = re.sub(r"(^|[.:])0+(?=[0-9]+(?:\.|$))", r"\1", value) if "." in value else value
    try:
        address = ipaddress.ip_address(plain)
    except ValueError:
        address = None
    if address is None or "%" in value:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    found = ["must not have leading 0s"] if plain != value else []
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped and not found:
        found.append("must not be an IPv4-mapped IPv6 address")
    return found


def _dots(value: str) -> Messages:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def at_least(low: int, text: str) -> Callable[[int], Messages]:
    """Return the check that a number is not below a bound."""
    return lambda value: [] if value >= low else [text]


def file_mode(value: int) -> Messages:
    """Check the permissions of a file."""
    text = "must be a number between 0 and 0777 (octal), both inclusive"
    return [] if 0 <= value <= 0o777 else [text]


def no_steps_back(path: str) -> Messages:
    """Refuse ``..`` as part of a path."""
    return ["must not contain '..'"] if ".." in path.split("/") else []


def descending(path: str) -> Messages:
    """Check a path inside a volume: relative, and without steps back."""
    absolute = ["must be a relative path"] if path.startswith("/") else []
    return absolute + no_steps_back(path)


def local(path: str) -> Messages:
    """Check a path inside a volume that must not begin with two dots either."""
    hidden = path.startswith("..") and not path.startswith("../")
    return descending(path) + (["must not start with '..'"] if hidden else [])


def each(messages: Messages, path: Steps, value: Any) -> Iterator[FieldError]:
    """Make one finding of each message."""
    for text in messages:
        yield invalid(path, value, text)


def labels(given: dict[str, str] | None, path: Steps) -> Iterator[FieldError]:
    """Check keys and values of labels."""
    for key, value in sorted((given or {}).items()):
        for text, wrong in ((key, qualified_name(key)), (value, label_value(value))):
            if wrong:
                yield from each(wrong, path, text)
