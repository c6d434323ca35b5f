"""State of a scheduler from cycle to cycle; it belongs to the process, not to a configuration."""

from typing import Any

import msgspec

from pumice.framework.standing_warnings import StandingWarnings


class ProcessMemory(msgspec.Struct):
    """Outlives a reload of the configuration; a new process starts with an empty one."""

    plugins: dict[str, Any] = msgspec.field(default_factory=dict)
    """State of plugins, under their names."""
    started_at: float | None = None
    """When the process began to schedule a live cluster; None if nothing runs between cycles."""
    warnings: StandingWarnings = msgspec.field(default_factory=StandingWarnings)
    """What plugins have warned of."""
