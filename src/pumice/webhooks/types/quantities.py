"""Resource amounts as Kubernetes' own type holds them: exact, signed, with the form they came in.

``pumice.api.quantity`` reads amounts to count with; this one also keeps what is negative and
writes every amount in its canonical spelling, which patches and messages show.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

WRONG_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
_FORM: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_NANO: Final = 10**9
_MOST: Final = (2**63 - 1) * _NANO
_LONGEST: Final = 256
_FAR: Final = 400


class QuantityFormError(ValueError):
    """A text that is no amount; the message is Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount in whole nano units, and the form in which it was written."""

    nano: int
    form: str = "decimal"

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _up(self.nano, _NANO)

    @property
    def milli(self) -> int:
        """Thousandths, rounded away from zero."""
        return _up(self.nano, 10**6)

    def __str__(self) -> str:
        size = abs(self.nano)
        if self.form == "binary" and size >= 1024 * _NANO and size % _NANO == 0:
            shown = _binary(size // _NANO)
        else:
            shown = _decimal(size, self.form)
        return f"-{shown}" if self.nano < 0 else shown


@lru_cache(maxsize=1 << 14, typed=True)
def amount(written: str | float) -> Amount:
    """Read an amount.

    Raises:
        QuantityFormError: not an amount.
    """
    text = str(written).strip()
    if not text or len(text) > _LONGEST:
        raise QuantityFormError(WRONG_FORM)
    match = _FORM.fullmatch(text)
    if match is None:
        raise QuantityFormError(WRONG_FORM)
    sign, whole, part, suffix = (group or "" for group in match.groups())
    if not whole + part:
        raise QuantityFormError(WRONG_FORM if not suffix else WRONG_NUMBER)
    scale, form = _scale(suffix)
    exact = Fraction(int(whole + part), 10 ** len(part)) * scale
    nano = min(-(-exact.numerator * _NANO // exact.denominator), _MOST)
    return Amount(-nano if sign == "-" else nano, form)


def amounts(given: Any) -> dict[str, Amount]:
    """Read a resource list that was decoded before."""
    return {name: amount(text) for name, text in (given or {}).items()}


def _up(nano: int, unit: int) -> int:
    size = -(-abs(nano) // unit)
    return -size if nano < 0 else size


def _scale(suffix: str) -> tuple[Fraction, str]:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix], "decimal"
    if suffix in _BINARY:
        return Fraction(1024) ** _BINARY.index(suffix), "binary"
    if re.fullmatch(r"[eE][-+]?[0-9]+", suffix):
        return Fraction(10) ** max(-_FAR, min(_FAR, int(suffix[1:]))), "exponent"
    raise QuantityFormError(WRONG_SUFFIX)


def _binary(units: int) -> str:
    step = 0
    while units % 1024 == 0 and step < len(_BINARY) - 1:
        units, step = units // 1024, step + 1
    return f"{units}{_BINARY[step]}"


def _decimal(nano: int, form: str) -> str:
    if not nano:
        return "0"
    shown, exponent = nano, -9
    while shown % 1000 == 0 and exponent < 18:
        shown, exponent = shown // 1000, exponent + 3
    if form == "exponent":
        return f"{shown}e{exponent}" if exponent else str(shown)
    return f"{shown}{_SUFFIXES[exponent]}"
