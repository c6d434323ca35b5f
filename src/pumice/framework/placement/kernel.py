"""Placing as data: what plugins state of nodes as terms, and the kernel that computes them.

A class is what the kernel needs to know of equal tasks.  It computes terms in the order of
operations of the hooks that they stand for.  Values of nodes follow the log of moved rows; picks
change nothing that can be seen from outside.
"""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pumice.core.labels import LabelColumn
from pumice.core.pod_terms import pod_terms
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Rows, Snapshot
from pumice.core.tables import Shape
from pumice.core.term_counts import Counter, SpreadCounter

END: Final = 0.0
_POD_LIMIT, _REQUESTED, _PACKED, _STRATEGY, _COLUMN = 1.0, 2.0, 3.0, 4.0, 5.0
NO_PODS, SOME_PODS, AT_MOST = range(3)
"""What a count must be: 0, above 0, or at most so many above the least one."""
TO_BEST, TO_WORST, STRETCHED, SPREAD = range(4)
"""How candidates are compared: by a number that is good or bad, by counts, by counts in domains."""


class AmountTerm(NamedTuple):
    """A refusal or a score that follows from the amounts of a node."""

    is_score: bool
    numbers: tuple[float, ...]
    """Its kind and parameters, as kernel.c reads them."""


class ColumnTerm(NamedTuple):
    """A score that stands in a plugin's own node column."""

    name: str


class CountTerm(NamedTuple):
    """A refusal by the number of pods in the domain of a node."""

    counter: Counter
    rule: int
    skew: int = 0


class PodCounts(NamedTuple):
    """The refusals of a task by counts."""

    counts: tuple[CountTerm, ...]
    own_neighbour: bool
    """Whether the first pod may be anywhere although it wants to be near its own kind."""


class RankPart(NamedTuple):
    """Pods in the domain of a node, which a score adds up."""

    counter: Counter
    factor: int
    """The weight, or ``maxSkew``."""
    domains: LabelColumn
    """The label, in a score of spread."""


class RankTerm(NamedTuple):
    """A score that compares candidates with each other, 0 to 100 times its weight."""

    kind: int
    weight: int
    raw: NDArray[np.integer[Any] | np.bool_] | None = None
    """A number of each node; for a score of spread whether it has all labels, None: all (n,)."""
    parts: tuple[RankPart, ...] = ()


NodeTerm = AmountTerm | ColumnTerm | PodCounts | RankTerm

POD_LIMIT: Final = AmountTerm(is_score=False, numbers=(_POD_LIMIT,))
"""Refuse nodes that hold as many pods as they may."""


def requested_score(least: int, most: int, balanced: int, gpu: int | None) -> AmountTerm:
    """Score free, used and evenly used amounts as Kubernetes does; ``gpu`` is a resource row."""
    numbers = (_REQUESTED, least, most, balanced, -1 if gpu is None else gpu)
    return AmountTerm(is_score=True, numbers=numbers)


def packed_score(weight: int, total: float, rows: Iterable[tuple[int, float]]) -> AmountTerm:
    """Score the use of some resources (row, weight) after placement; overflow scores nothing."""
    flat = [number for pair in rows for number in pair]
    return AmountTerm(is_score=True, numbers=(_PACKED, weight, total, len(flat) // 2, *flat))


def strategy_score(
    scale: float, total: float, rules: Iterable[tuple[int, float, bool]]
) -> AmountTerm:
    """Score by rules (row, weight, whether high use is good); overflow scores nothing."""
    flat = [float(number) for rule in rules for number in rule]
    return AmountTerm(is_score=True, numbers=(_STRATEGY, scale, total, len(flat) // 3, *flat))


_MANY: Final = 256
"""Nodes from which on only one of those that are alike is asked."""
_SEVERAL: Final = 4
"""Classes from which on it pays to know which nodes are alike."""
_MOST_BYTES: Final = 256 << 20
"""What the values of all classes may take together; beyond it they are made again."""
_FIRST: Final = 64


class _Counter(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in ("codes", "counts", "eligible"))


class _Count(ctypes.Structure):
    _fields_ = (
        *(("counter", _Counter), ("present", ctypes.c_void_p)),
        *((name, ctypes.c_int64) for name in ("n_present", "rule", "skew", "most")),
    )


class _Part(ctypes.Structure):
    _fields_ = (
        *(("counter", _Counter), ("domains", ctypes.c_void_p)),
        *((name, ctypes.c_int64) for name in ("n_domains", "factor")),
    )


class _Rank(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "weight")),
        *((name, ctypes.c_void_p) for name in ("raw", "parts")),
        ("n_parts", ctypes.c_int64),
    )


class PodClass(NamedTuple):
    """What holds for equal tasks during a session."""

    shape: Shape
    label_class: int
    refused: Mask | None
    """Nodes that refuse all along (n,)."""
    base: Column | None
    """Scores that stand (n,)."""
    scores: Sequence[AmountTerm | ColumnTerm]
    """What refuses or scores a node by itself, in order."""
    counts: PodCounts | None
    ranks: Sequence[RankTerm]


class Kernel:
    """Classes and their nodes."""

    def __init__(self, library: ctypes.CDLL, snapshot: Snapshot, log: list[Rows]) -> None:
        nodes = snapshot.nodes
        self._library = library
        self._snapshot = snapshot
        self._log = log
        self._cursor = len(log)
        self._held: list[Any] = [nodes.books, nodes.allocatable, nodes.view_nonzero]
        """What the kernel reads must stay where it is."""
        self._held.append(nodes.view_pods)
        self._kinds: list[tuple[int, int]] = []
        """The label class and the shape of each class."""
        self._counts = False
        """Whether pods elsewhere count for a class."""
        self._counted: dict[int, list[Counter]] = {}
        """The counts in which tasks of a class are, as the kernel was told last."""
        self._columns: dict[int, Column] = {}
        """Values of classes by address."""
        self._state = ctypes.c_uint64()
        self._make_buffers(_FIRST)
        most = max(1, _MOST_BYTES // (8 * max(1, nodes.n)))
        sizes = nodes.n, nodes.capacity, len(snapshot.resources), snapshot.view_is_live, most
        self._handle = library.kernel_open(*sizes, *map(_address, self._held))

    def __del__(self) -> None:
        handle = vars(self).get("_handle")
        if handle:
            self._library.kernel_close(handle)

    def _make_buffers(self, size: int) -> None:
        self._classes = np.empty(size, dtype=np.int64)
        self._nodes = np.empty(size, dtype=np.int64)
        self._draws = np.empty(size, dtype=np.uint64)
        buffers = self._nodes, self._draws
        self._results = (*map(_address, buffers), ctypes.addressof(self._state))
        self._asked = _address(self._classes)

    def add(self, made: PodClass) -> int:
        """Add a class; return its number."""
        shape, counts = made.shape, made.counts
        columns = (shape.request, shape.need, shape.nonzero, shape.waiting_nonzero)
        arrays: list[Any] = [np.ascontiguousarray(column[:, 0]) for column in columns]
        named = [term.name for term in made.scores if isinstance(term, ColumnTerm)]
        arrays += [made.refused, made.base, self._terms(made.scores, named)]
        arrays.append(self._where(named))
        terms = counts.counts if counts else ()
        listed = (_Count * len(terms))(*map(self._count, terms))
        ranks = (_Rank * len(made.ranks))(*map(self._rank, made.ranks))
        self._held += [arrays, listed, ranks]
        self._counts = self._counts or counts is not None or bool(made.ranks)
        self._kinds.append((made.label_class, shape.id))
        if len(self._kinds) == _SEVERAL and self._snapshot.nodes.n >= _MANY:
            self._group()
        own_neighbour = counts is not None and counts.own_neighbour
        where = (ctypes.addressof(each) if each else None for each in (listed, ranks))
        sizes = len(terms), own_neighbour, len(ranks)
        pointers = (*map(_address, arrays), *where)
        return int(self._library.kernel_class(self._handle, *pointers, *sizes))

    @staticmethod
    def _terms(scores: Sequence[AmountTerm | ColumnTerm], columns: list[str]) -> Column:
        """Return terms one after the other, as numbers."""
        numbers: list[float] = []
        for term in scores:
            if isinstance(term, ColumnTerm):
                numbers += _COLUMN, columns.index(term.name)
            else:
                numbers += term.numbers
        return np.array([*numbers, END])

    def _where(self, columns: list[str]) -> NDArray[np.uintp] | None:
        """Return where plugins' own columns are, None if there are none."""
        held = [self._snapshot.plugin_columns[name] for name in columns]
        self._held += held
        return np.array([*map(_address, held)], dtype=np.uintp) if held else None

    def _held_address(self, numbers: NDArray[Any]) -> int | None:
        """Return where whole numbers are, and keep them there."""
        self._held.append(np.ascontiguousarray(numbers, dtype=np.int64))
        return _address(self._held[-1])

    def _counter(self, counter: Counter) -> _Counter:
        self._held += [counter.counts, counter.eligible]
        arrays = counter.counts, counter.eligible
        return _Counter(self._held_address(counter.codes), *map(_address, arrays))

    def _count(self, term: CountTerm) -> _Count:
        counter, present = term.counter, None
        n_present = len(counter.domains.values)
        if isinstance(counter, SpreadCounter):
            present, n_present = self._held_address(counter.compared), len(counter.compared)
        return _Count(self._counter(counter), present, n_present, term.rule, term.skew, 0)

    def _rank(self, term: RankTerm) -> _Rank:
        parts = (_Part * len(term.parts))(*map(self._part, term.parts))
        self._held.append(parts)
        raw = None if term.raw is None else self._held_address(term.raw)
        return _Rank(term.kind, term.weight, raw, ctypes.addressof(parts), len(parts))

    def _part(self, part: RankPart) -> _Part:
        counter, domains = self._counter(part.counter), self._held_address(part.domains.codes)
        return _Part(counter, domains, len(part.domains.values), part.factor)

    def _count_in(self, numbers: set[int]) -> None:
        """Register the counts in which tasks of some classes are, unless the kernel knows them."""
        terms = pod_terms(self._snapshot)
        for number in numbers:
            counted = terms.counting(*self._kinds[number])
            if counted is not self._counted.get(number):
                self._counted[number] = counted
                listed = (_Counter * len(counted))(*map(self._counter, counted))
                self._held.append(listed)
                where = ctypes.addressof(listed) if counted else None
                self._library.kernel_counted(self._handle, number, where, len(counted))

    def _group(self) -> None:
        """Find nodes that are alike."""
        self.follow()
        group, n_groups = _alike(self._snapshot)
        if n_groups * 2 <= len(group):
            self._held.append(group)
            self._library.kernel_group(self._handle, _address(group), n_groups)

    def follow(self) -> None:
        """Read the log of moved rows."""
        moved = self._log
        if self._cursor == len(moved):
            return
        rows: list[int] = []
        for entry in moved[self._cursor :]:
            if isinstance(entry, int):
                rows.append(entry)
            else:
                rows += entry.tolist()
        self._cursor = len(moved)
        n = len(rows)
        if n > len(self._classes):
            self._make_buffers(2 * n)
        self._classes[:n] = rows
        self._library.kernel_moved(self._handle, self._asked, n)

    def pick(
        self,
        classes: Sequence[int],
        state: int,
        allowed: Mask | None = None,
        *,
        stay_closed: bool = False,
    ) -> tuple[list[int], list[int]]:
        """Pick nodes with room now for tasks of some classes, one after the other.

        Returns the nodes up to the first task that finds none, and the state of the generator
        after each.  ``stay_closed``: a node that pods close stays out.
        """
        self.follow()
        n = len(classes)
        if n > len(self._classes):
            self._make_buffers(2 * n)
        self._classes[:n] = classes
        if self._counts and n > 1:
            self._count_in(set(classes))
        self._state.value = state
        shut = np.zeros(self._snapshot.nodes.n, dtype=np.uint8) if stay_closed else None
        masks = _address(allowed), _address(shut)
        found = self._library.kernel_pick(self._handle, self._asked, n, *masks, *self._results)
        return self._nodes[:found].tolist(), self._draws[:found].tolist()

    def values(self, number: int) -> Column:
        """Return the score of each node that takes a task now, minus infinity for others (n,).

        The column is the kernel's own: it is read at once and not written.
        """
        self.follow()
        where = self._library.kernel_values(self._handle, number)
        known = self._columns.get(where)
        if known is None:
            cells = (ctypes.c_double * self._snapshot.nodes.n).from_address(where)
            known = self._columns[where] = np.frombuffer(memoryview(cells).cast("B"))
        return known


def _address(array: NDArray[Any] | None) -> int | None:
    return None if array is None else array.ctypes.data


def _alike(snapshot: Snapshot) -> tuple[NDArray[np.int32], int]:
    """Number groups of nodes whose amounts are the same, bit for bit (n,)."""
    nodes = snapshot.nodes
    columns = (nodes.books, nodes.allocatable, nodes.view_nonzero, nodes.view_pods)
    each = [column[..., : nodes.n].reshape(-1, nodes.n).astype(np.float64) for column in columns]
    bits = np.concatenate(each).view(np.int64)
    bits = bits[(bits != bits[:, :1]).any(axis=1)]
    mixed = np.zeros(nodes.n, dtype=np.int64)
    for row in bits:
        mixed = (mixed ^ (mixed >> 29) ^ row) * np.int64(-7046029254386353131)
    _, first, group = np.unique(mixed, return_index=True, return_inverse=True)
    if not (bits[:, first[group]] == bits).all():  # two that differ were mixed to the same number
        return np.arange(nodes.n, dtype=np.int32), nodes.n
    return group.astype(np.int32), len(first)
