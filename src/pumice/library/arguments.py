"""Arguments of a program's calls, looked at before they are used: errors name the argument."""

from collections.abc import Collection
from numbers import Integral
from os import PathLike
from typing import Final

from pumice.errors import InputError

PATHS: Final = (str, PathLike)
"""What names a file."""


def check_kind(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Refuse an argument that is of none of these kinds.

    Raises:
        InputError: It is not.
    """
    if not isinstance(value, kinds):
        raise InputError(wanted=wanted, found=value, field=name)


def check_items(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Refuse an argument that is no list, or has an item of none of these kinds.

    Raises:
        InputError: It is not, or has one.
    """
    if isinstance(value, str) or not isinstance(value, Collection):
        raise InputError(wanted=wanted, found=value, field=name)
    for item in value:
        check_kind(name, item, kinds, wanted)


def check_configuration(name: str, value: object) -> None:
    """Refuse what is neither a file, nor a text, nor None for the built-in configuration.

    Raises:
        InputError: It is something else.
    """
    wanted = "a configuration: a file, its text, or None for the built-in one"
    check_kind(name, value, (*PATHS, type(None)), wanted)


def check_seed(seed: object) -> None:
    """Refuse what is no seed.

    Raises:
        InputError: It is something else.
    """
    if isinstance(seed, bool) or not (isinstance(seed, Integral) and int(seed) >= 0):
        raise InputError(wanted="a whole number from 0", found=seed, field="seed")
