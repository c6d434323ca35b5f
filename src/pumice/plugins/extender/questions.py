"""The extender without side effects outside: in questions and simulations.

It gets no notifications, and at most questions without effect.
"""

from dataclasses import dataclass
from typing import Final

from pumice.plugins.extender.plugin import Extender

_HARMLESS: Final = ("predicate_verb", "prioritize_verb")


@dataclass(kw_only=True)
class AskedExtender(Extender, name="extender"):
    """An extender that is asked about nodes alone."""

    def __post_init__(self) -> None:
        for field in type(self).__dataclass_fields__:
            if field.endswith("_verb") and field not in _HARMLESS:
                setattr(self, field, "")


@dataclass(kw_only=True)
class UnaskedExtender(Extender, name="extender"):
    """An extender that is not asked at all."""

    def __post_init__(self) -> None:
        for field in type(self).__dataclass_fields__:
            if field.endswith("_verb"):
                setattr(self, field, "")
