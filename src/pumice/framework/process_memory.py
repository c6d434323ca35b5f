"""What a scheduler keeps from cycle to cycle; it belongs to the process, not to a configuration."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ProcessMemory:
    """Outlives a reload of the configuration; a new process starts with an empty one."""

    plugins: dict[str, Any] = field(default_factory=dict)
    """What plugins want to find again, under their names."""
    started_at: float | None = None
    """When the process took a live cluster up; None where nothing runs between the cycles."""
