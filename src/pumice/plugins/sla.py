"""sla: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class Sla(Plugin, name="sla"):
    """Not written yet."""
