"""overcommit: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Overcommit(Plugin, name="overcommit"):
    """Not written yet."""
