"""cdp: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Cdp(Plugin, name="cdp"):
    """Not written yet."""
