"""How many tasks of a bucket fit on nodes."""

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import STEP, Column
from pumice.framework.alike_nodes import Speakers

_FEW = 8
"""Moved nodes up to which room is counted one by one."""


class EvenMembers:
    """How many of several equal tasks fit on groups of nodes; follows the log of moved rows."""

    def __init__(self, needs: Column) -> None:
        """Make one; ``needs`` is the request of one, two, … tasks (m, R)."""
        self._needs = needs
        self._request: list[float] = needs[0].tolist()
        self._lines: list[list[float]] = needs.T.tolist()
        self._asked: list[int] = needs[-1].nonzero()[0].tolist()
        self._counts = np.zeros(0, dtype=np.int64)
        self._cursor = 0

    def fitting(self, alike: Speakers) -> NDArray[np.int64]:
        """Return how many of the tasks each group takes."""
        nodes, moved = alike.nodes, alike.nodes.snapshot.journal.moved
        news, self._cursor = moved[self._cursor :], len(moved)
        rows = [row for row in news if isinstance(row, int)]
        if not len(self._counts) or len(news) > _FEW or len(rows) < len(news):
            self._counts = count_fitting(self._needs, nodes.idle + nodes.releasing)
            return self._counts
        more = len(nodes) - len(self._counts)
        if more:
            self._counts = np.concatenate([self._counts, np.zeros(more, dtype=np.int64)])
        table = nodes.snapshot.nodes
        for row in rows:
            room = table.idle[:, row] + table.releasing[:, row]
            self._counts[alike.group[row]] = self.fitting_in(room.tolist())
        return self._counts

    def fitting_in(self, room: list[float]) -> int:
        """Return how many of the tasks fit into a room (R,)."""
        if any(have < wanted for have, wanted in zip(room, self._request, strict=True)):
            return 0
        fewest = len(self._needs)
        for kind in self._asked:
            fewest = min(fewest, bisect_left(self._lines[kind], room[kind] + STEP))
        return max(1, fewest)


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
