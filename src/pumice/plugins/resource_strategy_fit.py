"""resource-strategy-fit: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class ResourceStrategyFit(Plugin, name="resource-strategy-fit"):
    """Not written yet."""
