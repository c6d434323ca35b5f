"""Kubernetes quantities ("100m", "4Gi", "1e3") to exact integers and back.

Used wherever a resource amount enters or leaves. Amounts are whole nano units, the finest that
Kubernetes keeps; nothing here rounds through floating point.

``amount`` reads as Kubernetes does, with its messages; ``parse_quantity``, ``value`` and
``milli_value`` read amounts to count with, which are never negative, with hints.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from pumice.errors import QuantityError

Quantity: TypeAlias = str | int | float
"""An amount as a manifest writes it."""
Form = Literal["decimal", "binary", "exponent"]
"""How an amount is written: ``1500m``, ``2Gi``, ``1e3``."""

MAX_VALUE: Final = 2**63 - 1

_NANO: Final = 10**9
_NANO_PER_MILLI: Final = 10**6
_MOST: Final = MAX_VALUE * _NANO
_CACHED: Final = 1 << 16  # distinct spellings remembered; a cluster rarely has a thousand
_LONGEST: Final = 256  # characters; also keeps every power below small
_FAR_EXPONENT: Final = 600  # beyond it every number of that length overflows or vanishes

_WRITTEN: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE][+-]?[0-9]+")
_DECIMAL: Final = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_POWERS: Final = ("e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SCALES: Final[Mapping[str, tuple[Form, int, int]]] = {
    **{suffix: ("binary", 1 << 10 * step, 0) for step, suffix in enumerate(_BINARY)},
    **{suffix: ("decimal", 1, 3 * step - 9) for step, suffix in enumerate(_DECIMAL)},
}
"""Form, factor and power of ten of each suffix."""
_WRONG_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
WANTED_QUANTITY: Final = 'a quantity such as "500m", "1.5", "2Gi" or "1e3"'
_BYTES: Final = ("memory", "storage", "ephemeral-storage")
_READABLE: Final = 7  # characters of an exact amount of bytes that still reads well


class QuantityFormError(ValueError):
    """A text that is not an amount; the message is Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount in whole nano units, negative ones too, and the form in which it was written."""

    nano: int
    form: Form = "decimal"

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _away_from_zero(self.nano, _NANO)

    @property
    def milli(self) -> int:
        """Thousandths, rounded away from zero."""
        return _away_from_zero(self.nano, _NANO_PER_MILLI)

    def __str__(self) -> str:
        """Return the canonical spelling: `1000m` is `1`, `0.5Gi` is `512Mi`."""
        units, rest = divmod(self.nano, _NANO)
        if self.form == "binary" and not rest and abs(units) >= 1024:
            return _scaled(units, 1024, _BINARY)
        return _scaled(self.nano, 1000, _POWERS if self.form == "exponent" else _DECIMAL)


@lru_cache(maxsize=_CACHED)
def amount(text: str) -> Amount:
    """Read an amount, rounding up what is finer than nano units and down what is too large.

    Raises:
        QuantityFormError: not an amount.
    """
    nano, form = _read(text)
    return Amount(max(-_MOST, min(nano, _MOST)), form)


def amounts(given: Mapping[str, str] | None) -> dict[str, Amount]:
    """Read a resource list that was decoded before."""
    return {name: amount(text) for name, text in (given or {}).items()}


@lru_cache(maxsize=_CACHED, typed=True)
def parse_quantity(quantity: Quantity) -> int:
    """Read an amount as whole nano units, rounding up what is finer.

    Raises:
        QuantityError: not a quantity, negative, not finite, or beyond 2^63 - 1 whole units.
    """
    text = _spell(quantity)
    if len(text) > _LONGEST:
        raise QuantityError(
            wanted=WANTED_QUANTITY, found=quantity, hint=f"at most {_LONGEST} characters are read"
        )
    try:
        nano, _ = _read(text)
    except QuantityFormError:
        raise QuantityError(wanted=WANTED_QUANTITY, found=quantity, hint=_advice(text)) from None
    if nano < 0:
        raise QuantityError(wanted="an amount of zero or more", found=quantity)
    if nano > _MOST:
        raise QuantityError(wanted=f"an amount of at most {MAX_VALUE}", found=quantity)
    return nano


@lru_cache(maxsize=_CACHED, typed=True)
def counted_amount(quantity: Quantity) -> Amount:
    """Read an amount as ``parse_quantity`` does, and the form in which it is written."""
    return Amount(parse_quantity(quantity), _read(_spell(quantity))[1])


def amount_or_nothing(quantity: Quantity) -> Amount:
    """Read an amount of an unchecked object; one that cannot be read counts as nothing."""
    try:
        return counted_amount(quantity)
    except (QuantityError, TypeError):  # TypeError: a list or mapping
        return Amount(0)


@lru_cache(maxsize=_CACHED, typed=True)
def value(quantity: Quantity) -> int:
    """Read an amount in whole units, rounded up: "1500m" is 2."""
    return -(-parse_quantity(quantity) // _NANO)


@lru_cache(maxsize=_CACHED, typed=True)
def milli_value(quantity: Quantity) -> int:
    """Read an amount in thousandths, rounded up: "1.5" is 1500."""
    return -(-parse_quantity(quantity) // _NANO_PER_MILLI)


_CHECKED: Final[set[str]] = set()
"""Spellings that were checked: those of most pods are among a few."""


def check_amounts(amounts: Mapping[str, Quantity] | None, field: str) -> None:
    """Refuse a resource list with an unreadable amount, naming ``field`` and the resource."""
    if not amounts or _CHECKED.issuperset(amounts.values()):
        return
    for resource, quantity in amounts.items():
        try:
            parse_quantity(quantity)
            if isinstance(quantity, str) and len(_CHECKED) < _CACHED:
                _CHECKED.add(quantity)
        except QuantityError as error:
            raise QuantityError(
                wanted=error.wanted, found=error.found, field=f"{field}.{resource}", hint=error.hint
            ) from None


@lru_cache(4096)  # thousands of queues hold few distinct amounts
def format_quantity(resource: str, number: float) -> str:
    """Print an amount as Kubernetes does: cpu from thousandths, bytes in Ki…Ei, others as counts.

    Columns hold floats, so the number is first rounded to the nearest whole.
    """
    if not math.isfinite(number):
        raise QuantityError(wanted="a finite number", found=number, field=resource)
    whole = round(number)
    name = resource.removeprefix("requests.").removeprefix("limits.")
    if name == "cpu":
        return _scaled(whole, 1000, _DECIMAL[2:])
    # Kubernetes: below 1024 bytes the decimal form is the canonical one
    if _is_bytes(name) and abs(whole) >= 1024:
        return _scaled(whole, 1024, _BINARY)
    return _scaled(whole, 1000, _DECIMAL[3:])


def base_units(resource: str, amount: float) -> float:
    """Turn an amount of a row into cores, bytes or pieces; a whole number where it is one."""
    name = resource.removeprefix("requests.").removeprefix("limits.")
    plain = amount if name in ("memory", "pods") else amount / 1000
    return int(plain) if math.isfinite(plain) and plain == int(plain) else plain


def amount_text(resource: str, amount: float) -> str:
    """Write an amount of a row for users: cpu in cores, bytes in the largest unit that reads well.

    Scalars beyond cpu, memory and pods are kept in milli-units.
    """
    name = resource.removeprefix("requests.").removeprefix("limits.")
    amount = amount if name in ("memory", "pods") else amount / 1000
    if name == "cpu" or (amount % 1 and not _is_bytes(name)):
        return _to_thousandths(amount)
    exact = format_quantity(resource, amount)
    if len(exact) <= _READABLE or not _is_bytes(name):
        return exact
    power = min(int(math.log(abs(amount), 1024)), len(_BINARY) - 1)
    return f"{amount / 1024**power:.4g}{_BINARY[power]}"


def grouped(amount: str) -> str:
    """Write a long number with its thousands apart: 11,520."""
    return f"{int(amount):,}" if amount.isdecimal() else amount


def _to_thousandths(number: float) -> str:
    """Write a number without the digits of a division; one below a thousandth is not nothing."""
    return f"{round(number, 3):.15g}" if abs(number) >= 0.0005 else f"{number:.2g}"


def _is_bytes(name: str) -> bool:
    return name in _BYTES or name.startswith("hugepages-")


def _spell(quantity: Quantity) -> str:
    """Write a number from YAML or JSON as the text Kubernetes would have parsed."""
    if isinstance(quantity, str):
        return quantity
    if isinstance(quantity, bool) or not isinstance(quantity, int | float):
        raise QuantityError(wanted=WANTED_QUANTITY, found=quantity)
    if isinstance(quantity, int):
        # str() of an enormous integer is refused by Python itself
        return str(quantity) if abs(quantity) <= MAX_VALUE else f"{'-' * (quantity < 0)}1e99"
    if not math.isfinite(quantity):
        raise QuantityError(wanted="a finite number", found=quantity)
    return repr(quantity)


def _read(text: str) -> tuple[int, Form]:
    """Read nano units, rounding their magnitude up, and the form."""
    match = _WRITTEN.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityFormError(_WRONG_FORM)
    sign, whole, part, suffix = match.groups(default="")
    form, factor, exponent = _SCALES.get(suffix) or _power_of_ten(suffix)
    digits = whole + part
    if not digits:
        raise QuantityFormError(_WRONG_FORM if text in ("", "+", "-") else _WRONG_NUMBER)
    power = 9 - len(part) + exponent
    size = int(digits) * factor
    nano = size * 10**power if power >= 0 else -(-size // 10**-power)
    return (-nano if sign == "-" else nano), form


def _power_of_ten(suffix: str) -> tuple[Form, int, int]:
    if _EXPONENT.fullmatch(suffix) is None:
        raise QuantityFormError(_WRONG_SUFFIX)
    return "exponent", 1, max(-_FAR_EXPONENT, min(_FAR_EXPONENT, int(suffix[1:])))


def _away_from_zero(nano: int, unit: int) -> int:
    size = -(-abs(nano) // unit)
    return -size if nano < 0 else size


def _advice(text: str) -> str:
    """Guess what went wrong with a text that is not a quantity."""
    if text != text.strip():
        return "remove the white space around it"
    if text.lower().endswith(("kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib")):
        return "write the unit without the b, as in 4Gi"
    if text[-1:] == "K":
        return "write k for 1000 or Ki for 1024"
    return ""


def _scaled(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    """Print with the largest suffix that needs no fraction."""
    if number == 0:
        return "0"
    step = 0
    while number % base == 0 and step < len(suffixes) - 1:
        number //= base
        step += 1
    return f"{number}{suffixes[step]}"
