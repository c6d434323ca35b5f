"""Rows that do not exist yet: nodes with more tasks placed than there are."""

from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.tables import Ints
from pumice.core.views import Nodes


class Load(msgspec.Struct, frozen=True):
    """The amounts that tasks add to some nodes."""

    request: Column
    """(R, n)."""
    nonzero: Column
    """Cpu and memory with Kubernetes' defaults (2, n)."""
    pods: Ints
    """(n,)."""

    @classmethod
    def of_copies(cls, shape: Shape, copies: Column) -> "Load":
        """Put given numbers of tasks of one shape on each node (n,)."""
        return cls(shape.request * copies, shape.nonzero * copies, copies.astype(np.int32))

    def part(self, chosen: slice) -> "Load":
        """Return the load of some of the nodes."""
        return Load(self.request[:, chosen], self.nonzero[:, chosen], self.pods[chosen])


class ImaginedNodes(Nodes):
    """Nodes with a load already placed on them."""

    __slots__ = ("_load",)

    def __init__(self, snapshot: Snapshot, rows: NDArray[np.intp], load: Load) -> None:
        super().__init__(snapshot, rows)
        self._load = load

    def part(self, chosen: slice) -> Self:
        """Return some of these nodes with their load."""
        part = super().part(chosen)
        part._load = self._load.part(chosen)  # noqa: SLF001
        return part

    @property
    def idle(self) -> Column:
        """Free amounts (R, n)."""
        return super().idle - self._load.request

    @property
    def used(self) -> Column:
        """Amounts in use (R, n)."""
        return super().used + self._load.request

    @property
    def view_used(self) -> Column:
        """Requests as Kubernetes' scores see them (R, n)."""
        seen = super().view_used
        return seen + self._load.request if self._live else seen

    @property
    def view_nonzero(self) -> Column:
        """Cpu and memory with Kubernetes' defaults (2, n)."""
        seen = super().view_nonzero
        return seen + self._load.nonzero if self._live else seen

    @property
    def view_pods(self) -> Ints:
        """Pods as Kubernetes' filters count them (n,)."""
        seen = super().view_pods
        return seen + self._load.pods if self._live else seen

    @property
    def _live(self) -> bool:
        return self.snapshot.view_is_live
