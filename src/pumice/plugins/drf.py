"""drf: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Drf(Plugin, name="drf"):
    """Not written yet."""
