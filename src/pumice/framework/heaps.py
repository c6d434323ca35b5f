"""Heaps of rows: the best of those that have not had their turn."""

import heapq
from collections.abc import Callable, Iterable, Sized
from typing import Any, Final

Key = Any
_ALONE: Final[Key] = ()
"""The key of a single row: no plugin is asked for it."""


class Heap:
    """Rows in the order of their keys, which are computed when a row is added to others.

    With ``ask_alone`` also that of a single row, so that a plugin that fails is noticed there, too.

    Evictions move the keys of rows that sit inside; placements only those of the row that is out.
    With ``moves``, which grows whenever keys may move, rows are compared as Volcano does: when one
    leaves, another is sunk from the top by the keys of that moment.  So the next row is fixed
    before the one that left is served, and others move only where a row sinks past them.
    """

    def __init__(
        self,
        keys: Callable[[list[int]], list[Key]],
        rows: Iterable[int] = (),
        *,
        moves: Sized | None = None,
        ask_alone: bool = False,
    ) -> None:
        self._keys = keys
        self._moves = moves
        self._ask_alone = ask_alone
        self._asked: dict[int, int] = {}
        """The number of moves when the key of a row was computed again."""
        self._first_moves = 0 if moves is None else len(moves)
        start = list(rows)
        self.entries: list[tuple[Key, int]] = []
        """Keys and rows, the first first."""
        if len(start) == 1 and not ask_alone:
            self.entries.append((_ALONE, start[0]))
        elif start:
            self.entries += zip(keys(start), start, strict=True)
        heapq.heapify(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def push(self, row: int) -> None:
        """Put a row (back) in."""
        entries = self.entries
        if not entries and not self._ask_alone:
            entries.append((_ALONE, row))
            return
        if entries and entries[0][0] is _ALONE:
            entries[0] = (self._keys([entries[0][1]])[0], entries[0][1])
        heapq.heappush(entries, (self._keys([row])[0], row))

    def pop(self) -> int:
        """Take the first row out."""
        if self._moves is None:
            return heapq.heappop(self.entries)[1]
        entries = self.entries
        entries[0], entries[-1] = entries[-1], entries[0]
        row = entries.pop()[1]
        if len(entries) > 1:
            self._sink(len(self._moves))
        return row

    def _sink(self, now: int) -> None:
        """Sink the first row to its place, by the keys of this moment."""
        entries, at = self.entries, 0
        while (child := 2 * at + 1) < len(entries):
            self._ask_again(slice(0, 3) if not at else slice(child, child + 2), now)
            if child + 1 < len(entries) and entries[child + 1] < entries[child]:
                child += 1
            if not entries[child] < entries[at]:
                return
            entries[at], entries[child] = entries[child], entries[at]
            at = child

    def _ask_again(self, places: slice, now: int) -> None:
        """Compute the keys of some rows again, if anything has moved since."""
        asked, first = self._asked, self._first_moves
        rows = [row for _, row in self.entries[places]]
        if any(asked.get(row, first) != now for row in rows):
            self.entries[places] = zip(self._keys(rows), rows, strict=True)
            asked.update(dict.fromkeys(rows, now))
