"""A plugin whose filter raises."""

from dataclasses import dataclass

from pumice.plugin import Codes, Nodes, Plugin, Task


@dataclass(kw_only=True)
class BrokenFilter(Plugin, name="broken-filter"):
    """Divides by zero whenever it filters nodes."""

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes:
        raise ZeroDivisionError("no samples yet")
