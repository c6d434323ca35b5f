"""How many tasks of a bucket fit on nodes."""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import STEP, Column
from pumice.core.snapshot import Snapshot
from pumice.core.tables import IDLE, RELEASING

_FEW = 8
"""Moved nodes up to which room is counted one by one."""


class EvenMembers:
    """How many of several equal tasks fit on each node; follows the log of moved rows."""

    def __init__(self, needs: Column) -> None:
        """Make one; ``needs`` is the request of one, two, … tasks (m, R)."""
        self._needs = needs
        self._request: list[float] = needs[0].tolist()
        self._lines: list[list[float]] = needs.T.tolist()
        self._asked: list[int] = needs[-1].nonzero()[0].tolist()
        self._counts: NDArray[np.int64] | None = None
        self._cursor = 0

    def fitting(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Return how many of the tasks each node takes (n,)."""
        moved = snapshot.journal.moved
        news, self._cursor = moved[self._cursor :], len(moved)
        rows = {row for row in news if isinstance(row, int)}
        if self._counts is None or len(rows) > _FEW or not all(isinstance(i, int) for i in news):
            self._counts = count_fitting(self._needs, room_of(snapshot))
            return self._counts
        books = snapshot.nodes.books
        for row in rows:
            room = books[IDLE, :, row] + books[RELEASING, :, row]
            self._counts[row] = self.fitting_in(room.tolist())
        return self._counts

    def fitting_in(self, room: list[float]) -> int:
        """Return how many of the tasks fit into a room (R,)."""
        if any(have < wanted for have, wanted in zip(room, self._request, strict=True)):
            return 0
        fewest = len(self._needs)
        for kind in self._asked:
            fewest = min(fewest, bisect_left(self._lines[kind], room[kind] + STEP))
        return max(1, fewest)


def room_of(snapshot: Snapshot) -> Column:
    """Return what nodes have left once leaving tasks are gone (R, n)."""
    books = snapshot.nodes.books[..., : snapshot.nodes.n]
    return np.asarray(books[IDLE] + books[RELEASING])


def count_fitting(needs: Column, room: Column) -> NDArray[np.int64]:
    """Count tasks for which there is room (R, n), of those that need this together (m, R).

    0 where the first one does not fit, and where the node lost a device that a pod holds: Volcano
    compares all that the node has, also for who does not ask for the device.
    """
    found = np.full(room.shape[1], len(needs))
    asked = needs[-1].nonzero()[0]
    some = room[asked] + STEP
    tight = (some <= needs[-1, asked, None]).any(axis=0).nonzero()[0]
    if len(tight):
        columns = zip(needs[:, asked].T, some[:, tight], strict=True)
        counts = [need.searchsorted(have) for need, have in columns]
        found[tight] = np.maximum(np.minimum.reduce(counts), 1)
    return np.where((room >= needs[0][:, None]).all(axis=0), found, 0)
