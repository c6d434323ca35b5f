"""Keeps the garbage collector from going through everything a large first list brings.

Used by KubeCluster.  Changes a setting of the whole process, and takes it back in the end.
"""

import gc
from typing import Final

_THRESHOLDS: Final = (50_000, 20, 100)


class FirstLoad:
    """Switches collection off from ``begin`` to ``end``; what came between is never looked at."""

    def __init__(self) -> None:
        self._before: tuple[int, int, int] | None = None
        self.ended = False

    def begin(self) -> None:
        """Stop collecting, if anybody does."""
        if gc.isenabled():
            self._before = gc.get_threshold()
            gc.disable()

    def end(self) -> None:
        """Collect again, less often, and without what is there by now."""
        if self._before is not None and not self.ended:
            gc.freeze()
            gc.set_threshold(*_THRESHOLDS)
            gc.enable()
        self.ended = True

    def undo(self) -> None:
        """Make all as it was."""
        self.end()
        if self._before is not None:
            gc.unfreeze()
            gc.set_threshold(*self._before)
            self._before = None
