"""Every write of a session as its own undoing, so that a mark can be rolled back to exactly.

The journal also logs which node rows moved since a given moment; cached columns follow that log
instead of asking every node again.
"""

import contextlib
from collections.abc import Callable, MutableMapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Rows = int | NDArray[np.intp]
_NONE: Final = np.empty(0, dtype=np.intp)


class Journal:
    """Undo calls in write order; ``rollback`` makes them newest first."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.moved: list[Rows] = []
        self._deferred: list[Callable[[], object]] = []
        self.session = 0
        """The number of the running session; what was made for another is out of date."""
        self.is_ending = False
        """Whether all of the session is being undone: what was made for it is not read again."""

    def defer(self, *work: Callable[[], object]) -> None:
        """Run work before the first write, so that it may wait until then.

        Work that is needed earlier runs earlier, and work that is not needed in a session
        without writes does not run at all.
        """
        self._deferred += work

    def settle(self) -> None:
        """Run deferred work; a failure is raised when its result is read."""
        work, self._deferred = self._deferred, []
        for each in work:
            with contextlib.suppress(Exception):
                each()

    def mark(self) -> int:
        """Name the present moment."""
        return len(self._undo)

    def save(self, array: NDArray[Any], index: Any) -> None:
        """Remember cells that are about to be written."""
        if self._deferred:
            self.settle()
        self._undo.append((array.__setitem__, (index, array[index].copy())))

    def put(self, mapping: MutableMapping[Any, Any], key: Any, new: Any) -> None:
        """Write one entry of a plain mapping, remembering the old one."""
        if self._deferred:
            self.settle()
        if key in mapping:
            self._undo.append((mapping.__setitem__, (key, mapping[key])))
        else:
            self._undo.append((mapping.__delitem__, (key,)))
        mapping[key] = new

    def on_rollback(self, undo: Callable[..., Any], *args: Any) -> None:
        """Call a function if this moment, before something is written, is rolled back."""
        if self._deferred:
            self.settle()
        self._undo.append((undo, args))

    def touch(self, rows: Rows) -> None:
        """Log that node rows moved; a rollback logs them again."""
        self.moved.append(rows)
        self._undo.append((self.moved.append, (rows,)))

    def tick(self) -> None:
        """Log that sums moved although no node did."""
        self.moved.append(_NONE)

    def rollback(self, mark: int) -> None:
        """Undo everything since the mark."""
        undo = self._undo
        while len(undo) > mark:
            call, args = undo.pop()
            call(*args)

    def end_session(self) -> None:
        """Undo everything, and begin the next session."""
        self.is_ending = True
        try:
            self.rollback(0)
        finally:
            self.is_ending = False
        self.forget()

    def forget(self) -> None:
        """Clear the journal: earlier writes can no longer be undone."""
        self._undo.clear()
        self.moved = []  # a new list: kept answers read the old one later
        self._deferred.clear()
        self.session += 1
