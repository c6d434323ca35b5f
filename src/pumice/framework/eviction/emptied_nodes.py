"""Nodes as they would be without some of their tasks, for hooks that read rows alone."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import PODS, Column
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.tables import Ints
from pumice.core.views import Nodes
from pumice.framework.imagined_rows import Load


class EmptiedNodes(Nodes):
    """Nodes that some of their tasks are leaving.

    ``gone`` is what these ask for (R, n), ``nonzero`` the same with Kubernetes' defaults (2, n).
    """

    __slots__ = ("_gone", "_nonzero")

    def __init__(
        self, snapshot: Snapshot, rows: NDArray[np.intp], gone: Column, nonzero: Column
    ) -> None:
        super().__init__(snapshot, rows)
        self._gone = gone
        self._nonzero = nonzero

    def part(self, chosen: slice) -> Self:
        """Return some of these nodes."""
        part = super().part(chosen)
        part._gone, part._nonzero = self._gone[:, chosen], self._nonzero[:, chosen]  # noqa: SLF001
        return part

    @property
    def releasing(self) -> Column:
        """Amounts of leaving tasks (R, n)."""
        return super().releasing + self._gone

    @property
    def view_used(self) -> Column:
        """Requests as Kubernetes' scores see them (R, n)."""
        seen = super().view_used
        return seen - self._gone if self.snapshot.view_is_live else seen

    @property
    def view_nonzero(self) -> Column:
        """Cpu and memory with Kubernetes' defaults (2, n)."""
        seen = super().view_nonzero
        return seen - self._nonzero if self.snapshot.view_is_live else seen

    @property
    def view_pods(self) -> Ints:
        """Pods as Kubernetes' filters count them (n,)."""
        seen = super().view_pods
        return seen - self._gone[PODS].astype(np.int32) if self.snapshot.view_is_live else seen


class PromisedNodes(EmptiedNodes):
    """Nodes that some of their tasks are leaving, with room promised to copies of a shape (n,)."""

    __slots__ = ("_promised",)

    def __init__(
        self,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        gone: Column,
        shape: Shape,
        copies: Column,
    ) -> None:
        """Make them; ``gone`` is what leaves, with Kubernetes' defaults below it (R + 2, n)."""
        self._promised = Load.of_copies(shape, copies)
        super().__init__(snapshot, rows, gone[:-2], gone[-2:])

    def part(self, chosen: slice) -> Self:
        """Return some of these nodes."""
        part = super().part(chosen)
        part._promised = self._promised.part(chosen)  # noqa: SLF001
        return part

    @property
    def pipelined(self) -> Column:
        """Amounts promised to pipelined tasks (R, n)."""
        return super().pipelined + self._promised.request

    @property
    def view_used(self) -> Column:
        """Requests as Kubernetes' scores see them (R, n)."""
        seen = super().view_used
        return seen + self._promised.request if self.snapshot.view_is_live else seen

    @property
    def view_nonzero(self) -> Column:
        """Cpu and memory with Kubernetes' defaults (2, n)."""
        seen = super().view_nonzero
        return seen + self._promised.nonzero if self.snapshot.view_is_live else seen

    @property
    def view_pods(self) -> Ints:
        """Pods as Kubernetes' filters count them (n,)."""
        seen = super().view_pods
        return seen + self._promised.pods if self.snapshot.view_is_live else seen
