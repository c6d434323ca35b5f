"""proportion: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Proportion(Plugin, name="proportion"):
    """Not written yet."""
