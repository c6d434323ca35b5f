"""nodeorder: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class NodeOrder(Plugin, name="nodeorder"):
    """Not written yet."""
