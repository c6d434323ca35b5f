"""rescheduling: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Rescheduling(Plugin, name="rescheduling"):
    """Not written yet."""
