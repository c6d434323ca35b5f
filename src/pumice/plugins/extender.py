"""extender: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Extender(Plugin, name="extender"):
    """Not written yet."""
