"""Answers of nodes from earlier cycles of a simulation, renewed only where something moved.

Nodes neither come nor go here and their facts stay, so that an answer holds as long as no pod came
to the node or left it.  Only answers of plugins that declare as much are kept, and only to pods
that look at nothing but the node.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from pumice.core.journal import Rows
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.views import Nodes, Task
from pumice.framework.dispatch import Hooks
from pumice.framework.fits import Answers, Fit
from pumice.framework.placing import Placing, distinct_rows
from pumice.sim.node_states import NodeStates, RankedNodes

_LONGEST_LOG = 1 << 16
"""Number of moves of nodes that are remembered; an older fit is made again."""


class KeptFits:
    """The fits of all cycles so far, and which nodes moved since each was last brought up to date.

    ``states`` is where the cluster notes the nodes on which pods came or went.
    """

    def __init__(self, states: NodeStates) -> None:
        self.states = states
        self._cursor = 0
        """How many of the moves of nodes are in the log."""
        self._within: list[Rows] = []
        """The log of the previous cycle: its attempts were rolled back since."""
        self._log: list[Rows] = []
        self._fits: dict[Hashable, tuple[Fit, int]] = {}
        self.ranked: dict[Hashable, RankedNodes | None] = {}
        """Nodes by value for each kind of task; None where more than amounts counts."""
        self._state = (-1, -1, -1)
        self._made: KeptPlacing | None = None
        """A placing that was never used: those of all cycles are copies of it."""

    def placing(self, snapshot: Snapshot, hooks: Hooks, seed: int) -> "KeptPlacing":
        """Open a cycle; passed to the scheduler as its placing."""
        self.states.follow()
        moved = self.states.moved
        state = snapshot.nodes.generation, len(snapshot.resources), self.states.era
        if state != self._state or len(self._log) > _LONGEST_LOG:
            self._state = state
            self._log.clear()
            self._fits.clear()
            self.ranked.clear()
        else:
            self._log += self._within
            self._log += moved[self._cursor :]
        self._cursor = len(moved)
        self._within = snapshot.journal.moved
        if self._made is None or self._made.hooks is not hooks:
            self._made = KeptPlacing(self, snapshot, hooks, seed)
            self.ranked.clear()
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
        made.__dict__.update(self.__dict__, _fits={}, _classes={}, _kernel=None)
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

    def ranked(self, key: Hashable, task: Task) -> RankedNodes | None:
        """Return the nodes by what they are worth to a task, as they are now.

        None if more than the amounts of each node counts.
        """
        known, snapshot = self._kept.ranked, self.snapshot
        if key not in known:
            known[key] = self._rank(task)
        found = known[key]
        if found is None:
            return None
        now = snapshot.journal.session, len(snapshot.shapes)
        if found.checked != now:
            if not self._goes_by_amounts(task):
                return None
            found.checked = now
        found.catch_up(task)
        return found

    def _goes_by_amounts(self, task: Task) -> bool:
        """Return whether nodes of the same amounts answer alike, and the best score wins."""
        return (
            self._kept.states.is_exact
            and not (self._picks or self._rankers_for(task))
            and self.by_amounts(task)
        )

    def _rank(self, task: Task) -> RankedNodes | None:
        fit = self._blank_fit(task)
        if fit.static_score is not None or not self._goes_by_amounts(task):
            return None
        codes = [each for each in fit.static_codes if each is not None]
        barred = np.logical_or.reduce(codes).nonzero()[0].tolist() if codes else ()

        def ask(task: Task, nodes: Sequence[int]) -> Answers:
            rows = np.array(nodes, dtype=np.intp)
            with np.errstate(all="ignore"):
                return self.answers(fit, task, Nodes(self.snapshot, rows), rows)

        return RankedNodes(self._kept.states, task, ask, barred)


def is_common(key: Hashable) -> bool:
    """Return whether no plugin distinguishes a task from others of its shape."""
    return not isinstance(key, tuple) or all(part is None for part in key[1:])


def looks_at_nodes_alone(shape: Shape) -> bool:
    """Return whether pods of a shape depend on no other pods, volumes or claims."""
    spec = shape.spec
    return not (spec.volumes or spec.resource_claims or spec.topology_spread_constraints) and (
        spec.affinity is None or not (spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity)
    )
