"""Nodes of equal amounts, in groups: one of each group answers for all of it.

Most nodes of a cluster are alike, and a new shape need not ask them all.  A node that moves leaves
its group for good.  Only plugins that declare ``by_amounts`` are asked so.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, IndexArray, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.tables import IDLE, PIPELINED, RELEASING, USED, VIEW, Ints
from pumice.core.views import Nodes

_FEW = 8
"""Groups up to which the list of their nodes is kept."""


class CopiedNodes(Nodes):
    """Nodes whose amounts are copied to one place, in the order of their rows."""

    __slots__ = ("_books", "_capacity", "_nonzero", "_offer", "_pods")

    def __init__(self, snapshot: Snapshot, rows: IndexArray, columns: "list[NDArray[Any]]") -> None:
        """Make some; ``columns`` are those of ``amounts``."""
        super().__init__(snapshot, rows)
        self._books, self._offer, self._capacity, self._nonzero, self._pods = columns

    def part(self, chosen: slice) -> Self:
        """Return some of these nodes."""
        part = super().part(chosen)
        columns = self._books, self._offer, self._capacity, self._nonzero, self._pods
        CopiedNodes.__init__(part, self.snapshot, part.index, [c[..., chosen] for c in columns])
        return part

    @property
    def idle(self) -> Column:
        """Free amounts (R, n)."""
        return self._books[IDLE]

    @property
    def used(self) -> Column:
        """Amounts in use (R, n)."""
        return self._books[USED]

    @property
    def releasing(self) -> Column:
        """Amounts of leaving tasks (R, n)."""
        return self._books[RELEASING]

    @property
    def pipelined(self) -> Column:
        """Amounts promised to pipelined tasks (R, n)."""
        return self._books[PIPELINED]

    @property
    def view_used(self) -> Column:
        """Requests as Kubernetes' scores see them (R, n)."""
        return self._books[VIEW]

    @property
    def view_nonzero(self) -> Column:
        """Cpu and memory with Kubernetes' defaults (2, n)."""
        return self._nonzero

    @property
    def view_pods(self) -> Ints:
        """Pods as Kubernetes' filters count them (n,)."""
        return self._pods

    @property
    def allocatable(self) -> Column:
        """Allocatable amounts (R, n)."""
        return self._offer

    @property
    def capacity(self) -> Column:
        """Capacities (R, n)."""
        return self._capacity


@dataclass(frozen=True, slots=True)
class Speakers:
    """One node of each group, which is asked for all of it."""

    nodes: Nodes
    group: IndexArray
    """The number of the group of each node of the cluster (n,)."""
    of: "AlikeNodes | None" = None
    """Who knows the members of groups, where these are the groups by amounts alone."""

    def draw(self, groups: Mask, spin: Callable[[int], int]) -> int:
        """Draw one of all nodes of some groups, in the order of rows."""
        chosen = groups.nonzero()[0]
        parts = None if self.of is None else self.of.parts(chosen)
        if parts is None:
            ties = groups.take(self.group).nonzero()[0]
            return int(ties[spin(len(ties)) if len(ties) > 1 else 0])
        many, few = parts
        n = len(many) + len(few)
        at = spin(n) if n > 1 else 0
        if len(few):  # find the place as if both were merged
            places = many.searchsorted(few) + np.arange(len(few))
            before = int(places.searchsorted(at))
            if before < len(few) and places[before] == at:
                return int(few[before])
            at -= before
        return int(many[at])


class AlikeNodes:
    """Groups of nodes whose amounts are the same, bit for bit; follows the log of moved rows."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._moved = snapshot.journal.moved
        self._cursor = len(self._moved)
        self._table = amounts(snapshot)
        self._asked, self._group = _groups(_bits(snapshot))
        self._n = self._n_first = len(self._asked)
        self._copies = [column.take(self._asked, axis=-1) for column in self._table]
        self._sizes: list[int] = np.bincount(self._group, minlength=self._n).tolist()
        self._members: dict[tuple[int, ...], IndexArray] = {}
        """The nodes of the groups that were asked for together."""
        self._speakers: Speakers | None = None
        """Those of now, if they were asked for."""

    def speakers(self) -> Speakers:
        """Return one node of each group, and the groups."""
        asked, group = self.groups()
        if self._speakers is None:
            copies = [column[..., : self._n] for column in self._copies]
            self._speakers = Speakers(CopiedNodes(self._snapshot, asked, copies), group, self)
        return self._speakers

    def groups(self) -> tuple[IndexArray, IndexArray]:
        """Return one node of each group, and the number of the group of each node (n,)."""
        if self._cursor < len(self._moved):
            self._follow(self._moved[self._cursor :])
            self._cursor, self._speakers = len(self._moved), None
        return self._asked[: self._n], self._group

    def parts(self, groups: IndexArray) -> tuple[IndexArray, IndexArray] | None:
        """Return the nodes of some groups that did not move, and those that did, both sorted.

        None where the former are of too many groups to keep lists of them.
        """
        cut = int(groups.searchsorted(self._n_first))
        if cut > _FEW:
            return None
        moved: IndexArray = self._asked[groups[cut:]]
        moved.sort()
        return self._members_of(tuple(groups[:cut].tolist())), moved

    def _members_of(self, groups: tuple[int, ...]) -> IndexArray:
        found = self._members.get(groups)
        if found is None:
            chosen = np.isin(self._group, groups)
            found = self._members[groups] = chosen.nonzero()[0]
        return found

    def _follow(self, moved: list[int | IndexArray]) -> None:
        """Move nodes that moved to groups of their own, and copy their amounts."""
        rows: dict[int, None] = {}
        for entry in moved:
            rows.update(dict.fromkeys((entry,) if isinstance(entry, int) else entry.tolist()))
        left: dict[int, list[int]] = {}
        for row in rows:
            group = int(self._group[row])
            if self._sizes[group] > 1:
                left.setdefault(group, []).append(row)
                self._leave(row, group)
        for group, leavers in left.items():
            self._part(group, leavers)
        some = [*rows] if len(rows) != 1 else next(iter(rows))
        groups = self._group[some]
        for copies, column in zip(self._copies, self._table, strict=True):
            copies[..., groups] = column[..., some]

    def _leave(self, row: int, old: int) -> None:
        """Move a node to a group of its own."""
        new = self._n
        if new == len(self._asked):
            self._asked = _twice(self._asked)
            self._copies = [_twice(column) for column in self._copies]
        self._asked[new] = row
        self._group[row] = new
        self._sizes[old] -= 1
        self._sizes.append(1)
        self._n += 1

    def _part(self, group: int, leavers: list[int]) -> None:
        """Remove leavers from a group; one of those that stay speaks for it."""
        for groups, members in self._members.items():
            if group in groups:
                self._members[groups] = _without(members, leavers)
        if self._asked[group] in leavers:
            self._asked[group] = self._members_of((group,))[0]


def _without(rows: IndexArray, some: list[int]) -> IndexArray:
    """Return sorted rows without some of them."""
    if len(some) > 1:
        return np.delete(rows, rows.searchsorted(some))
    at = int(rows.searchsorted(some[0]))
    return np.concatenate([rows[:at], rows[at + 1 :]])


def _twice(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column of twice the length."""
    return np.concatenate([column, np.empty_like(column)], axis=-1)


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
