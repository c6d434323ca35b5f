"""Nodes of equal amounts, in groups: one of each group answers for all of it.

Most nodes of a cluster are alike, and a new shape need not ask them all.  A node that moves leaves
its group for good.  Only plugins that declare ``by_amounts`` are asked so.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import IndexArray
from pumice.core.snapshot import Snapshot


class AlikeNodes:
    """Groups of nodes whose amounts are the same, bit for bit; follows the log of moved rows."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._moved = snapshot.journal.moved
        self._cursor = len(self._moved)
        self._asked, self._group = _groups(_bits(snapshot))
        self._n = self._n_first = len(self._asked)

    def groups(self) -> tuple[IndexArray, IndexArray]:
        """Return one node of each group, and the number of the group of each node (n,)."""
        for entry in self._moved[self._cursor :]:
            for row in (entry,) if isinstance(entry, int) else entry.tolist():
                self._leave(row)
        self._cursor = len(self._moved)
        return self._asked[: self._n], self._group

    def _leave(self, row: int) -> None:
        """Move a node to a group of its own."""
        old = int(self._group[row])
        if old >= self._n_first:
            return  # it has one
        if self._asked[old] == row:
            others = self._group == old
            others[row] = False
            self._asked[old] = others.argmax()  # any node, if none is left
        if self._n == len(self._asked):
            self._asked = np.concatenate([self._asked, np.empty_like(self._asked)])
        self._asked[self._n] = row
        self._group[row] = self._n
        self._n += 1


def refine(group: IndexArray, codes: Iterable[NDArray[np.int16]]) -> tuple[IndexArray, IndexArray]:
    """Part groups (n,) by further numbers of their nodes; return what ``groups`` does."""
    key = group
    for column in codes:
        key = key * (int(column.max()) + 1) + column
    first = np.full(int(key.max()) + 1, -1, dtype=np.intp)
    first[key] = np.arange(len(key))
    there = first >= 0
    return first[there], (there.cumsum() - 1)[key]


def amounts(snapshot: Snapshot) -> list[NDArray[Any]]:
    """Return the columns that nodes of the same amounts have in common (…, n)."""
    nodes = snapshot.nodes
    offered = (nodes.allocatable, nodes.capacity_amounts)
    columns = (nodes.books, *offered, nodes.view_nonzero, nodes.view_pods)
    return [column[..., : nodes.n] for column in columns]


def _bits(snapshot: Snapshot) -> NDArray[np.int64]:
    """Return all amounts of nodes (k, n)."""
    n = snapshot.nodes.n
    each = [column.reshape(-1, n).astype(np.float64, copy=False) for column in amounts(snapshot)]
    return np.concatenate(each).view(np.int64)


def _groups(bits: NDArray[np.int64]) -> tuple[IndexArray, IndexArray]:
    """Return the first of all equal columns, and for each column which of these it equals."""
    n = bits.shape[1]
    mixed, bits = np.zeros(n, dtype=np.int64), bits[(bits != bits[:, :1]).any(axis=1)]
    for row in bits:
        mixed = (mixed ^ (mixed >> 29) ^ row) * np.int64(-7046029254386353131)
    _, first, group = np.unique(mixed, return_index=True, return_inverse=True)
    if (bits[:, first[group]] == bits).all():
        return first, group
    # two that differ were mixed to the same number
    return np.arange(n), np.arange(n)
