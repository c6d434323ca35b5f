"""Heaps of rows: the best of those that have not had their turn."""

import heapq
from collections.abc import Callable, Iterable
from typing import Any, Final

Key = Any
_ALONE: Final[Key] = ()
"""The key of a single row: no plugin is asked for it."""


class Heap:
    """Rows in the order of their keys, which are computed when a row is added to others.

    With ``ask_alone`` also that of a single row, so that a plugin that fails is noticed there, too.

    A ``live`` heap computes a key again when its row comes up: evictions move the keys of rows that
    sit inside, placements only those of the row that is out.
    """

    def __init__(
        self,
        keys: Callable[[list[int]], list[Key]],
        rows: Iterable[int] = (),
        *,
        live: bool = False,
        ask_alone: bool = False,
    ) -> None:
        self._keys = keys
        self._live = live
        self._ask_alone = ask_alone
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
        while True:
            key, row = heapq.heappop(self.entries)
            if not self._live or not self.entries:
                return row
            now = self._keys([row])[0]
            if now == key or (now, row) <= self.entries[0]:
                return row
            heapq.heappush(self.entries, (now, row))
