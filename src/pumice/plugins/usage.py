"""usage: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Usage(Plugin, name="usage"):
    """Not written yet."""
