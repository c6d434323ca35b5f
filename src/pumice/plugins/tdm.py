"""tdm: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Tdm(Plugin, name="tdm"):
    """Not written yet."""
