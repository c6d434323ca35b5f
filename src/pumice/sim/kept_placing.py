"""The choice of nodes for all cycles of a simulation: only nodes that moved are asked again.

Nodes neither come nor go here and their facts stay, so that an answer holds as long as no pod came
to the node or left it.  This is so where only plugins answer about nodes of which it is known, and
while no pod has to do with other pods, volumes or claims.
"""

from typing import Final

import numpy as np

from pumice.core.snapshot import Rows, Snapshot
from pumice.core.tables import Shape
from pumice.framework.dispatch import Hooks
from pumice.framework.placement.ahead import has_host_ports
from pumice.framework.placement.kernel import Kernel
from pumice.framework.placing import Placing

_LONGEST_LOG: Final = 1 << 20
"""Number of moves of nodes that are remembered; then all nodes are asked again."""
_MOST_BYTES: Final = 256 << 20
"""What kinds of pods may take together; then all are asked about again."""


class KeptPlacing(Placing):
    """Places as usual, by answers that were given in earlier cycles."""

    def __init__(self, snapshot: Snapshot, hooks: Hooks, seed: int) -> None:
        super().__init__(snapshot, hooks, seed)
        self._log: list[Rows] = []
        self._source = snapshot.journal.moved
        self._n_read = 0
        """How much of the log of the last session was read."""
        self._made_for = self._cluster()

    def _cluster(self) -> tuple[int, ...]:
        nodes, n_resources = self.snapshot.nodes, len(self.snapshot.resources)
        return nodes.generation, nodes.n, n_resources, id(nodes.books)

    @property
    def is_current(self) -> bool:
        """Whether nodes are the same as when it was made, and not too much is remembered."""
        n_bytes = len(self._classes) * self.snapshot.nodes.n * 9
        is_small = len(self._log) < _LONGEST_LOG and n_bytes < _MOST_BYTES
        return is_small and self._made_for == self._cluster()

    @property
    def moved(self) -> list[Rows]:
        """What moved since this was made: in sessions, of which all is undone, and between them."""
        snapshot, log = self.snapshot, self._log
        log += self._source[self._n_read :]
        if self._source is not snapshot.journal.moved:
            self._source = snapshot.journal.moved
            log += self._source
        self._n_read = len(self._source)
        if touched := snapshot.touched_nodes:
            log.append(np.fromiter(touched, dtype=np.intp, count=len(touched)))
            touched.clear()
        return log

    @property
    def kernel(self) -> Kernel:
        """The kernel, which finds in the log what moved."""
        assert self.moved is self._log  # noqa: S101
        return super().kernel


class KeptPlacings:
    """Makes the placing of each cycle: the last one while it may stay."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._last: KeptPlacing | None = None
        self._n_quiet = 0
        """The first shapes that are known to have nothing to do with other pods."""

    def open(self, snapshot: Snapshot, hooks: Hooks, seed: int) -> Placing:
        """Open a session; passed to the scheduler as its placing."""
        if not self.all_quiet():
            self._last = None
            return Placing(snapshot, hooks, seed)
        if self._last is None or self._last.hooks is not hooks or not self._last.is_current:
            self._last = KeptPlacing(snapshot, hooks, seed)
        return self._begin(self._last, seed)

    def of_last_session(self, hooks: Hooks, seed: int) -> Placing | None:
        """Open a cycle without a session; None if plugins were not prepared by one before."""
        last = self._last
        if last is None or last.hooks is not hooks or not last.is_current or last.varying:
            return None
        return self._begin(last, seed)

    def forget(self) -> None:
        """Ask all nodes again from now on."""
        self._last = None

    def _begin(self, placing: KeptPlacing, seed: int) -> Placing:
        placing.state = seed & 0xFFFFFFFFFFFFFFFF
        return placing

    def all_quiet(self) -> bool:
        """Return whether no pod ever seen has to do with others, or makes sums inexact."""
        shapes = self._snapshot.shapes
        while self._n_quiet < len(shapes) and _is_quiet(shapes[self._n_quiet]):
            self._n_quiet += 1
        return self._n_quiet == len(shapes)


def _is_quiet(shape: Shape) -> bool:
    spec = shape.spec
    looks_around = spec.volumes or spec.resource_claims or spec.topology_spread_constraints
    near = spec.affinity is not None and (
        spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity
    )
    return not (looks_around or near or has_host_ports(spec) or shape.coarse)
