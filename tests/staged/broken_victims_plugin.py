"""A plugin that raises when it is asked for victims."""

from dataclasses import dataclass

from pumice.plugin import Mask, Plugin, Task


@dataclass(kw_only=True)
class BrokenVictims(Plugin, name="broken-victims"):
    """Looks for a key that is not there."""

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        raise KeyError("team")
