"""Every cell write of a session, so that a mark can be rolled back to, byte for byte.

The journal also says which node rows moved since a given moment; cached columns follow that log
instead of asking every node again.
"""

from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np

Rows = int | np.ndarray[Any, np.dtype[np.intp]]
_Undo = Callable[[], None]


class Journal:
    """Old values in write order; ``rollback`` restores them newest first."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, Any, Any]] = []
        self.moved: list[Rows] = []

    def mark(self) -> int:
        """Name the present moment."""
        return len(self._undo)

    def save(self, array: np.ndarray[Any, Any], index: Any) -> None:
        """Remember cells that are about to be written."""
        self._undo.append((array, index, array[index].copy()))

    def put(self, mapping: MutableMapping[Any, Any], key: Any, new: Any) -> None:
        """Write one entry of a plain mapping, remembering the old one."""
        missing = key not in mapping
        old = None if missing else mapping[key]

        def undo() -> None:
            if missing:
                del mapping[key]
            else:
                mapping[key] = old

        self._undo.append((None, undo, None))
        mapping[key] = new

    def on_rollback(self, undo: _Undo) -> None:
        """Call a function if this moment is rolled back."""
        self._undo.append((None, undo, None))

    def touch(self, rows: Rows) -> None:
        """Log that node rows moved; a rollback logs them again."""
        self.moved.append(rows)
        self._undo.append((self, rows, None))

    def rollback(self, mark: int) -> None:
        """Restore everything written since the mark."""
        undo = self._undo
        while len(undo) > mark:
            target, where, old = undo.pop()
            if target is self:
                self.moved.append(where)
            elif target is None:
                where()
            else:
                target[where] = old

    def forget(self) -> None:
        """Start afresh: what was written so far can no longer be taken back."""
        self._undo.clear()
        self.moved.clear()
