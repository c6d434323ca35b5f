"""Kubernetes quantities ("100m", "4Gi", "1e3") to exact integers and back.

Used wherever a resource amount enters or leaves. Amounts are whole nano units, the finest that
Kubernetes keeps; nothing here rounds through floating point.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from pumice.errors import QuantityError

Quantity: TypeAlias = str | int | float
"""An amount as a manifest writes it."""

MAX_VALUE: Final = 2**63 - 1

_NANO: Final = 10**9
_NANO_PER_MILLI: Final = 10**6
_CACHED: Final = 1 << 16  # distinct spellings remembered; a cluster rarely has a thousand
_LONGEST: Final = 256  # characters; also keeps every power below small
_FAR_EXPONENT: Final = 600  # beyond it every number of that length overflows or vanishes

_NUMBER: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {
    "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
}  # fmt: skip
_WANTED: Final = 'a quantity such as "500m", "1.5", "2Gi" or "1e3"'
_BYTES: Final = ("memory", "storage", "ephemeral-storage")


@lru_cache(maxsize=_CACHED, typed=True)
def parse_quantity(quantity: Quantity) -> int:
    """Read an amount as whole nano units, rounding up what is finer.

    Raises:
        QuantityError: not a quantity, negative, not finite, or beyond 2^63 - 1 whole units.
    """
    text = _spell(quantity)
    if len(text) > _LONGEST:
        raise QuantityError(
            wanted=_WANTED, found=quantity, hint=f"at most {_LONGEST} characters are read"
        )
    match = _NUMBER.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(wanted=_WANTED, found=quantity, hint=_advice(text))
    nano = _nano(match)
    if match["sign"] == "-" and nano:
        raise QuantityError(wanted="an amount of zero or more", found=quantity)
    if nano > MAX_VALUE * _NANO:
        raise QuantityError(wanted=f"an amount of at most {MAX_VALUE}", found=quantity)
    return nano


@lru_cache(maxsize=_CACHED, typed=True)
def value(quantity: Quantity) -> int:
    """Read an amount in whole units, rounded up: "1500m" is 2."""
    return -(-parse_quantity(quantity) // _NANO)


@lru_cache(maxsize=_CACHED, typed=True)
def milli_value(quantity: Quantity) -> int:
    """Read an amount in thousandths, rounded up: "1.5" is 1500."""
    return -(-parse_quantity(quantity) // _NANO_PER_MILLI)


def check_amounts(amounts: Mapping[str, Quantity] | None, field: str) -> None:
    """Refuse a resource list with an unreadable amount, naming ``field`` and the resource."""
    for resource, quantity in (amounts or {}).items():
        try:
            parse_quantity(quantity)
        except QuantityError as error:
            raise QuantityError(
                wanted=error.wanted,
                found=error.found,
                field=f"{field}.{resource}",
                hint=error.hint,
            ) from None


def format_quantity(resource: str, number: float) -> str:
    """Print an amount as Kubernetes does: cpu from thousandths, bytes in Ki…Ei, others as counts.

    Columns hold floats, so the number is first rounded to the nearest whole.
    """
    if not math.isfinite(number):
        raise QuantityError(wanted="a finite number", found=number, field=resource)
    amount = round(number)
    name = resource.removeprefix("requests.").removeprefix("limits.")
    if name == "cpu":
        return _scaled(amount, 1000, ("m", "", "k", "M", "G", "T", "P", "E"))
    # Kubernetes: below 1024 bytes the decimal form is the canonical one
    if (name in _BYTES or name.startswith("hugepages-")) and abs(amount) >= 1024:
        return _scaled(amount, 1024, ("", *_BINARY))
    return _scaled(amount, 1000, ("", "k", "M", "G", "T", "P", "E"))


def _spell(quantity: Quantity) -> str:
    """Write a number from YAML or JSON as the text Kubernetes would have parsed."""
    if isinstance(quantity, str):
        return quantity
    if isinstance(quantity, bool) or not isinstance(quantity, int | float):
        raise QuantityError(wanted=_WANTED, found=quantity)
    if isinstance(quantity, int):
        # str() of an enormous integer is refused by Python itself
        return str(quantity) if abs(quantity) <= MAX_VALUE else f"{'-' * (quantity < 0)}1e99"
    if not math.isfinite(quantity):
        raise QuantityError(wanted="a finite number", found=quantity)
    return repr(quantity)


def _nano(match: re.Match[str]) -> int:
    """Scale a matched number to nano units, rounding its magnitude up."""
    part = match["part"] or ""
    suffix = match["suffix"] or ""
    exponent = int(match["exponent"] or _DECIMAL.get(suffix, 0))
    exponent = max(-_FAR_EXPONENT, min(_FAR_EXPONENT, exponent))
    amount = int(match["whole"] + part) * _BINARY.get(suffix, 1)
    power = 9 - len(part) + exponent
    return amount * 10**power if power >= 0 else int(-(-amount // 10**-power))


def _advice(text: str) -> str:
    """Guess what went wrong with a text that is not a quantity."""
    if text != text.strip():
        return "remove the white space around it"
    if text.lower().endswith(("kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib")):
        return "write the unit without the b, as in 4Gi"
    if text[-1:] == "K":
        return "write k for 1000 or Ki for 1024"
    return ""


def _scaled(amount: int, base: int, suffixes: tuple[str, ...]) -> str:
    """Print with the largest suffix that needs no fraction."""
    if amount == 0:
        return "0"
    step = 0
    while amount % base == 0 and step < len(suffixes) - 1:
        amount //= base
        step += 1
    return f"{amount}{suffixes[step]}"
