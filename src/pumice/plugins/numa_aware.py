"""numa-aware: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class NumaAware(Plugin, name="numa-aware"):
    """Not written yet."""
