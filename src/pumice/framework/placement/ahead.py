"""Sums and counts as they would be with more tasks placed, for hooks that agree to be asked so.

Plugins agree by ``foreseeable``; nothing else of the session changes meanwhile.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pumice.api.pods import PodSpec
from pumice.core.resources import Column, IndexArray
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import ALLOCATED, BOOKED, PENDING, Ints, Shape
from pumice.core.views import HoldingRows, Task
from pumice.framework.columns import Jobs, Queues
from pumice.framework.refusals import Verdict


class Imagined:
    """A context in which n more tasks like a given one are placed, in counts and sums only.

    A class, because each run asks in it: a generator takes three times as long.
    """

    __slots__ = ("_n", "_pipelined", "_row", "_snapshot")

    def __init__(self, snapshot: Snapshot, task: Task, n: int, *, pipelined: bool = False) -> None:
        self._snapshot = snapshot
        self._row = task.row
        self._n = n
        self._pipelined = pipelined

    def __enter__(self) -> None:
        if self._n:
            self._snapshot.count_ahead(self._row, self._n, pipelined=self._pipelined)

    def __exit__(self, *_: object) -> None:
        if self._n:
            self._snapshot.count_ahead(self._row, -self._n, pipelined=self._pipelined)


@contextmanager
def placed_ahead(snapshot: Snapshot, tasks: list[int]) -> Iterator[None]:
    """Pretend that these pending tasks of one job are placed, in counts, sums and statuses."""
    by_shape: dict[int, list[int]] = {}
    for row in tasks:
        by_shape.setdefault(int(snapshot.tasks.shape[row]), []).append(row)
    with ExitStack() as stack:
        for rows in by_shape.values():
            stack.enter_context(Imagined(snapshot, Task(snapshot, rows[0]), len(rows)))
        stack.enter_context(relabelled(snapshot, np.array(tasks, dtype=np.intp)))
        yield


@contextmanager
def relabelled(snapshot: Snapshot, rows: IndexArray) -> Iterator[None]:
    """Pretend that these pending tasks are placed: minimum numbers of roles go by status."""
    status = snapshot.tasks.status
    status[rows] = Status.ALLOCATED
    try:
        yield
    finally:
        status[rows] = Status.PENDING


def longest(n: int, holds: Callable[[int], Verdict]) -> int:
    """Return the largest k up to n for which ``holds(k)``, which turns false once and for all."""
    if n <= 0:
        return 0
    if holds(n):
        return n
    if n == 1 or not holds(1):
        return 0
    low, high = 1, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class CountedTurns:
    """The first of some turns, counted in sums as if they had been taken."""

    def __init__(self, snapshot: Snapshot, jobs: Sequence[int], more: NDArray[np.float64]) -> None:
        """Make them; ``more`` is what each adds to the sums of its job (3, R, n)."""
        self._snapshot = snapshot
        self._jobs = np.array(jobs, dtype=np.intp)
        self._more = more
        self._n = 0

    def set(self, n: int) -> None:
        """Count so many turns."""
        low, high = sorted((n, self._n))
        if low < high:
            more = self._more[..., low:high] * (1 if n > self._n else -1)
            self._snapshot.add_each_to_sums(self._jobs[low:high], more)
            self._snapshot.journal.tick()
            self._n = n


class _ImaginedRows(HoldingRows):
    """Rows with some more tasks placed; ``_more`` is added to their sums (3, R, n)."""

    __slots__ = ()
    _more: NDArray[np.float64]

    @property
    def allocated(self) -> Column:
        """What their tasks hold (R, n)."""
        return super().allocated + self._more[ALLOCATED]

    @property
    def allocated_or_pipelined(self) -> Column:
        """What their tasks hold or were promised (R, n)."""
        return super().allocated_or_pipelined + self._more[BOOKED]

    @property
    def pending(self) -> Column:
        """What their pending tasks ask for (R, n)."""
        return super().pending + self._more[PENDING]


class ImaginedQueues(_ImaginedRows, Queues):
    """Queues with some more tasks placed; a queue may occur several times."""

    __slots__ = ("_more",)

    def __init__(
        self, snapshot: Snapshot, rows: NDArray[np.intp], more: NDArray[np.float64]
    ) -> None:
        """Make them; ``more`` is added to their sums (3, R, n)."""
        super().__init__(snapshot, rows)
        self._more = more

    def part(self, chosen: slice) -> Self:
        """Return some of these queues with what was added."""
        part = super().part(chosen)
        part._more = self._more[:, :, chosen]  # noqa: SLF001
        return part


class ImaginedJobs(_ImaginedRows, Jobs):
    """Jobs with some more tasks placed; a job may occur several times."""

    __slots__ = ("_more", "_placed")

    def __init__(
        self,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        more: NDArray[np.float64],
        placed: NDArray[np.int64],
    ) -> None:
        """Make them; ``more`` is added to their sums (3, R, n), so many tasks are placed (n,)."""
        super().__init__(snapshot, rows)
        self._more = more
        self._placed = placed

    def part(self, chosen: slice) -> Self:
        """Return some of these jobs with what was added."""
        part = super().part(chosen)
        part._more, part._placed = self._more[:, :, chosen], self._placed[chosen]  # noqa: SLF001
        return part

    @property
    def ready(self) -> Ints:
        """Tasks that hold a node or have succeeded (n,)."""
        return super().ready + self._placed.astype(np.int32)

    @property
    def settled(self) -> Ints:
        """Tasks that run on a node or are about to, or have finished in any way (n,)."""
        return super().settled + self._placed.astype(np.int32)


def cumulate(amounts: NDArray[np.float64], rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the amounts of rows after each of several additions (…, n) to them, in this order."""
    order = np.argsort(rows, kind="stable")
    sorted_amounts = amounts[..., order]
    sums = sorted_amounts.cumsum(axis=-1)
    is_first = np.diff(rows[order], prepend=-1) != 0
    before = (sums - sorted_amounts)[..., is_first][..., is_first.cumsum() - 1]
    out = np.empty_like(sums)
    out[..., order] = sums - before
    return out


def has_plain_shape(shape: Shape) -> bool:
    """Return whether a shape has no terms about other pods, host ports, claims and devices."""
    plain = shape.memo.get("plain")
    if plain is None:
        spec = shape.spec
        claims = any(v.persistent_volume_claim or v.ephemeral for v in spec.volumes)
        claims = claims or spec.resource_claims
        special = (
            spec.affinity or spec.topology_spread_constraints or claims or has_host_ports(spec)
        )
        plain = shape.memo["plain"] = not special
    return bool(plain)


def has_host_ports(spec: PodSpec) -> bool:
    """Return whether a container wants a port of its node."""
    containers = (*spec.containers, *spec.init_containers)
    return any(port.host_port for container in containers for port in container.ports)
