"""Resource amounts in the canonical spelling, and Go's messages for those that are none."""

import re
from fractions import Fraction
from typing import Any, Final

from pumice.cli.vcctl.verbs import VerbError

BAD_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO: Final = 10**9
_LONGEST: Final = 64  # characters


def canonical(amount: Any) -> str:
    """Write an amount as Kubernetes does: `1000m` is `1`, `0.5Gi` is `512Mi`.

    Raises:
        VerbError: not a quantity.
    """
    text = str(amount)
    match = _FORM.fullmatch(text)
    if match is None or not text or len(text) > _LONGEST:
        raise VerbError(BAD_FORM)
    sign, whole, part, suffix = (group or "" for group in match.groups())
    scale, form = _scale(suffix)
    if not whole + part:
        raise VerbError("unable to parse numeric part of quantity")
    value = Fraction(int(whole + part), 10 ** len(part)) * scale
    nano = -(-value.numerator * _NANO // value.denominator)
    shown = _binary(nano) if form == "binary" and nano >= 1024 * _NANO else _decimal(nano, form)
    return f"-{shown}" if sign == "-" and nano else shown


def parse_resources(text: str) -> dict[str, str]:
    """Read `cpu=1,memory=1Gi`.

    Raises:
        VerbError: not in that syntax, or not a quantity.
    """
    amounts = {}
    for statement in text.split(",") if text else ():
        name, *values = statement.split("=")
        if len(values) != 1:
            raise VerbError(f"invalid argument syntax {statement}, expected <resource>=<value>")
        amounts[name] = canonical(values[0])
    return amounts


def _scale(suffix: str) -> tuple[Fraction, str]:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix], "decimal"
    if suffix in _BINARY:
        return Fraction(1024) ** _BINARY.index(suffix), "binary"
    if re.fullmatch(r"[eE][-+]?[0-9]{1,3}", suffix):
        return Fraction(10) ** int(suffix[1:]), "exponent"
    raise VerbError("unable to parse quantity's suffix")


def _binary(nano: int) -> str:
    amount, step = -(-nano // _NANO), 0
    while amount % 1024 == 0 and step < len(_BINARY) - 1:
        amount, step = amount // 1024, step + 1
    return f"{amount}{_BINARY[step]}"


def _decimal(nano: int, form: str) -> str:
    if not nano:
        return "0"
    amount, exponent = nano, -9
    while amount % 1000 == 0 and exponent < 18:
        amount, exponent = amount // 1000, exponent + 3
    if form == "exponent":
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_SUFFIXES[exponent]}"
