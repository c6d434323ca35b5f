"""A growable set of columns with one row for each thing."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

_GROWTH = 1.5
_FIRST = 16


class Table:
    """Columns of equal length; the last axis of every column is the row.

    Columns led by the resource axis are listed in ``per_resource`` and widen when a resource name
    is learnt.  Subclasses declare columns in ``__init__`` with :meth:`column`.
    """

    def __init__(self, n_resources: int) -> None:
        self.n = 0
        self.capacity = 0
        self.n_resources = n_resources
        self.free: list[int] = []
        self._columns: dict[str, tuple[tuple[int | str, ...], Any, Any]] = {}
        self._lists: list[str] = []

    def column(
        self, name: str, dtype: Any = np.float64, lead: Sequence[int | str] = (), fill: Any = 0
    ) -> None:
        """Declare a column; the letter ``R`` in ``lead`` is the resource axis."""
        self._columns[name] = (tuple(lead), dtype, fill)
        setattr(self, name, np.full((*self._lead(lead), self.capacity), fill, dtype=dtype))

    def listing(self, name: str) -> None:
        """Declare a list with one Python object a row."""
        self._lists.append(name)
        setattr(self, name, [None] * self.capacity)

    def _lead(self, lead: Sequence[int | str]) -> tuple[int, ...]:
        return tuple(self.n_resources if part == "R" else int(part) for part in lead)

    def reserve(self, capacity: int) -> None:
        """Reserve space for this many rows in all."""
        if capacity <= self.capacity:
            return
        for name, (lead, dtype, fill) in self._columns.items():
            grown = np.full((*self._lead(lead), capacity), fill, dtype=dtype)
            grown[..., : self.capacity] = getattr(self, name)
            setattr(self, name, grown)
        for name in self._lists:
            getattr(self, name).extend([None] * (capacity - self.capacity))
        self.capacity = capacity

    def new_row(self) -> int:
        """Take a free row, or add one."""
        if self.free:
            return self.free.pop()
        if self.n == self.capacity:
            self.reserve(max(_FIRST, int(self.capacity * _GROWTH) + 1))
        self.n += 1
        return self.n - 1

    def add_rows(self, n: int) -> range:
        """Add rows after the last."""
        if self.n + n > self.capacity:
            self.reserve(max(self.n + n, int(self.capacity * _GROWTH)))
        self.n += n
        return range(self.n - n, self.n)

    def clear_row(self, row: int) -> None:
        """Reset a row to its fill values and keep it for reuse."""
        self.reset_row(row)
        for name in self._lists:
            getattr(self, name)[row] = None
        self.free.append(row)

    def reset_row(self, row: int, keep: Collection[str] = ()) -> None:
        """Put the cells of a row back to their fill values, except some columns."""
        for name, (_, _, fill) in self._columns.items():
            if name not in keep:
                getattr(self, name)[..., row] = fill

    def trim(self) -> None:
        """Cut the spare capacity, so that columns hold exactly the rows in use."""
        if self.capacity == self.n:
            return
        for name in self._columns:
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[..., : self.n]))
        for name in self._lists:
            del getattr(self, name)[self.n :]
        self.capacity = self.n

    def delete_row(self, row: int) -> None:
        """Remove a row and close the gap; later rows move down by one."""
        for name in self._columns:
            setattr(self, name, np.ascontiguousarray(np.delete(getattr(self, name), row, axis=-1)))
        for name in self._lists:
            del getattr(self, name)[row]
        self.n -= 1
        self.capacity -= 1

    def widen(self, n_resources: int) -> None:
        """Add rows to the resource axis of every column that has one."""
        extra = n_resources - self.n_resources
        self.n_resources = n_resources
        for name, (lead, dtype, fill) in self._columns.items():
            if "R" not in lead or not extra:
                continue
            axis = lead.index("R")
            old = getattr(self, name)
            shape = list(old.shape)
            shape[axis] = extra
            pad = np.full(shape, fill, dtype=dtype)
            setattr(self, name, np.concatenate([old, pad], axis=axis))
