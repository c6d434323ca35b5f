"""capacity: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Capacity(Plugin, name="capacity"):
    """Not written yet."""
