"""nodegroup: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class NodeGroup(Plugin, name="nodegroup"):
    """Not written yet."""
