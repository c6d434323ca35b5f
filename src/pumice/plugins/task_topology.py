"""task-topology: not written yet."""

from dataclasses import dataclass

from pumice.framework.plugin import Plugin


@dataclass(kw_only=True)
class TaskTopology(Plugin, name="task-topology"):
    """Not written yet."""
