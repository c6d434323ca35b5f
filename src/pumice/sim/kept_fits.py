"""Answers of nodes from earlier cycles of a simulation, renewed only where something moved.

Nodes neither come nor go here and their facts stay, so that an answer holds as long as no pod came
to the node or left it.  Only answers of plugins that declare as much are kept, and only to pods
that look at nothing but the node.
"""

from collections.abc import Hashable

from pumice.core.journal import Rows
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.dispatch import Hooks
from pumice.framework.fits import Fit
from pumice.framework.placing import Placing, distinct_rows

_LONGEST_LOG = 1 << 16
"""Number of moves of nodes that are remembered; an older fit is made again."""


class KeptFits:
    """The fits of all cycles so far, and which nodes moved since each was last brought up to date.

    ``moved_nodes`` is where the cluster notes the rows of nodes on which pods came or went.
    """

    def __init__(self, moved_nodes: list[int]) -> None:
        self._between = moved_nodes
        self._within: list[Rows] = []
        """The log of the previous cycle: its attempts were rolled back since."""
        self._log: list[Rows] = []
        self._fits: dict[Hashable, tuple[Fit, int]] = {}
        self._state: tuple[int, int] = (-1, -1)
        self._made: KeptPlacing | None = None
        """A placing that was never used: those of all cycles are copies of it."""

    def placing(self, snapshot: Snapshot, hooks: Hooks, seed: int) -> "KeptPlacing":
        """Open a cycle; passed to the scheduler as its placing."""
        self._log += self._within
        self._log += self._between
        self._between.clear()
        self._within = snapshot.journal.moved
        state = snapshot.nodes.generation, len(snapshot.resources)
        if state != self._state or len(self._log) > _LONGEST_LOG:
            self._state = state
            self._log.clear()
            self._fits.clear()
        if self._made is None or self._made.hooks is not hooks:
            self._made = KeptPlacing(self, snapshot, hooks, seed)
        return self._made.anew()

    @property
    def is_open(self) -> bool:
        """Whether a session of these hooks chose nodes before, so that plugins are prepared."""
        return self._made is not None

    def take(self, key: Hashable) -> tuple[Fit, list[Rows]] | None:
        """Return a fit that was kept, and the log of rows that may have moved since."""
        found = self._fits.get(key)
        if found is None:
            return None
        fit, at = found
        self._fits[key] = fit, len(self._log)
        return fit, self._log[at:]

    def put(self, key: Hashable, fit: Fit) -> None:
        """Keep a fit that was made in this cycle."""
        self._fits[key] = fit, len(self._log)


class KeptPlacing(Placing):
    """Places as usual, and reuses fits of earlier cycles."""

    def __init__(self, kept: KeptFits, snapshot: Snapshot, hooks: Hooks, seed: int) -> None:
        super().__init__(snapshot, hooks, seed)
        self._kept = kept

    def anew(self) -> "KeptPlacing":
        """Return one like this for another cycle: bound to the same hooks, without fits."""
        made = object.__new__(type(self))  # copy() takes ten times as long
        made.__dict__.update(self.__dict__, _fits={})
        return made

    def _new_fit(self, key: Hashable, task: Task) -> Fit:
        if not (is_common(key) and looks_at_nodes_alone(task.shape)):
            return super()._new_fit(key, task)
        taken = self._kept.take(key)
        if taken is None:
            fit = super()._new_fit(key, task)
            self._kept.put(key, fit)
            return fit
        fit, log = taken
        fit.rankers = self._rankers_for(task)
        rows = distinct_rows([*log, *self.snapshot.journal.moved], len(fit.score))
        if isinstance(rows, slice) or len(rows):
            self._refresh(fit, task, rows)
        return fit

    def choose_once(self, key: Hashable, task: Task) -> int | None:
        """Pick the best node that has room now, by a fit that later cycles have, too."""
        fit = self.fit_of(key, task)
        return self._best(task, fit, fit.value)


def is_common(key: Hashable) -> bool:
    """Return whether no plugin distinguishes a task from others of its shape."""
    return not isinstance(key, tuple) or all(part is None for part in key[1:])


def looks_at_nodes_alone(shape: Shape) -> bool:
    """Return whether pods of a shape depend on no other pods, volumes or claims."""
    spec = shape.spec
    return not (spec.volumes or spec.resource_claims or spec.topology_spread_constraints) and (
        spec.affinity is None or not (spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity)
    )
