"""Runs of equal tasks that have to do with other pods: host ports, hard (anti-)affinity, spread.

A placement opens or closes other nodes, too.  The watchers of the Kubernetes view get each pick at
once and log the rows whose answers change; filters are asked again about these, on rows with the
copies imagined.  Scores and room follow from amounts alone and are asked ahead.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, Mask
from pumice.core.shapes import Shape
from pumice.core.views import Task
from pumice.framework.equal_runs import Run
from pumice.framework.fits import IDLE, Fit, room_on
from pumice.framework.imagined_rows import ImaginedNodes, Load
from pumice.framework.placing import Placing


class NeighbourRun(Run):
    """Picks for equal tasks (rows); what follows the view is left as if they were placed.

    Once a node was found closed by the task that it took, and that task changed no other node, the
    next ones are taken to be closed likewise; they are asked together, at the end at the latest.
    """

    def __init__(
        self,
        placing: Placing,
        tasks: list[int],
        fit: Fit,
        allowed: Mask | None,
        *,
        reopens: bool,
    ) -> None:
        """Make one; unless it ``reopens``, a node that refuses once stays out."""
        super().__init__(placing, Task(placing.snapshot, tasks[0]), fit, allowed)
        self._tasks = tasks
        self._reopens = reopens
        self._guesses = True
        self._may = np.ones(len(fit.verdict), dtype=bool) if allowed is None else allowed
        self._start()

    def _start(self) -> None:
        fit = self._fit
        self._copies.clear()
        self._is_open = (fit.verdict == 0) & self._may
        self._worth = np.where(fit.room == IDLE, fit.score, -np.inf)
        """What nodes are worth with their copies if they are open."""
        self._value = np.where(self._is_open, self._worth, -np.inf)
        self._stale: set[int] = set()
        """Nodes of which that is not known, because they were closed when they took a copy."""
        self._n_copies = np.zeros(len(fit.verdict))
        self._n_told = 0
        self._closes = False
        """Whether tasks are taken to close the node that they are on, and no other."""
        self._guessed: list[int] = []

    def pick(self, n: int) -> list[int]:
        """Return nodes for up to n tasks; fewer if room runs out."""
        journal, state = self._placing.snapshot.journal, self._placing.state
        mark = journal.mark()
        picks = super().pick(n)
        self._check_guesses()
        if self._guesses or not self._n_told:
            return picks
        journal.rollback(mark)
        self._placing.state = state
        self._start()
        return super().pick(n)

    def pick_all(self, n: int) -> list[int]:
        """Return nodes for n tasks; none if room runs out before."""
        journal, state = self._placing.snapshot.journal, self._placing.state
        mark = journal.mark()
        picks = self.pick(n)
        if len(picks) < n:
            journal.rollback(mark)
            self._placing.state = state
            return []
        return picks

    def _add(self, node: int, likely: Callable[[], list[int]]) -> float:
        """Put one more copy on a node, see which nodes that opens and closes."""
        others = self._tell(node)
        self._stirs = bool(others)
        self._stale.add(node)
        if self._closes and not others:
            self._guessed.append(node)
            self._is_open[node] = False
            self._value[node] = -np.inf
            return -np.inf
        rows = np.array([node], dtype=np.intp) if not others else self._stirred(node, others)
        is_open = self._asked_again(rows)
        self._is_open[rows] = is_open
        self._catch_up(likely)
        self._value[rows] = np.where(is_open, self._worth[rows], -np.inf)
        self._closes = self._guesses and not others and not is_open[0]
        return float(self._value[node])

    def _tell(self, node: int) -> list[Any]:
        """Report the next task to the watchers of the view; return what they log."""
        snapshot, task = self._placing.snapshot, self._tasks[self._n_told]
        moved = snapshot.journal.moved
        self._n_told += 1
        self._n_copies[node] += 1
        self._copies[node] = self._copies.get(node, 0) + 1
        cursor = len(moved)
        snapshot.tell_watchers([task], [node])
        return moved[cursor:]

    def _stirred(self, node: int, others: list[Any]) -> NDArray[np.intp]:
        """Return all nodes to ask again."""
        touched = np.zeros(len(self._value), dtype=bool)
        for rows in others:
            touched[rows] = True
        if touched[self._guessed].any():
            self._guesses = False  # whether they were closed before cannot be asked any more
        touched[self._guessed] = touched[node] = True
        self._check_guesses()
        return np.flatnonzero(touched)

    def _check_guesses(self) -> None:
        """Ask about nodes that are taken to be closed."""
        if self._guessed and self._fits(np.array(self._guessed)).any():
            self._guesses = False
        self._guessed.clear()

    def _asked_again(self, rows: NDArray[np.intp]) -> Mask:
        is_open = self._fits(rows) & self._may[rows]
        return is_open if self._reopens else is_open & self._is_open[rows]

    def _fits(self, rows: NDArray[np.intp]) -> Mask:
        """Ask filters about nodes with their copies."""
        load = Load.of_copies(self._task.shape, self._n_copies[rows])
        nodes = ImaginedNodes(self._placing.snapshot, rows, load)
        verdict = self._placing.verdict(self._fit, self._task, nodes, rows)
        return np.broadcast_to(np.asarray(verdict == 0), len(rows))

    def _catch_up(self, likely: Callable[[], list[int]]) -> None:
        """Learn what open nodes are worth that took copies while they were closed."""
        opened = [node for node in self._stale if self._is_open[node]]
        if not opened:
            return
        short = [node for node in opened if len(self._ahead.get(node, ())) < self._copies[node]]
        if short:
            self._look_ahead([*short, *likely()])
        for node in opened:
            self._worth[node] = self._ahead[node][self._copies[node] - 1]
        self._stale.difference_update(opened)

    def _values(self, rows: NDArray[np.intp], copies: Column) -> Column:
        """Return what nodes are worth with copies on them, be they open or not."""
        nodes = ImaginedNodes(
            self._placing.snapshot, rows, Load.of_copies(self._task.shape, copies)
        )
        score = self._placing.score(self._fit, self._task, nodes, rows)
        return np.where(room_on(self._task.need, nodes) == IDLE, score, -np.inf)


def has_hard_terms(shape: Shape) -> bool:
    """Return shapes with demands on other pods, and neither wishes nor claims."""
    found = shape.memo.get("hard terms")
    if found is None:
        spec, affinity = shape.spec, shape.spec.affinity
        kinds = (
            (affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity)
            if affinity
            else ()
        )
        wishes = any(kind is not None and kind.preferred for kind in kinds)
        soft = any(
            each.when_unsatisfiable != "DoNotSchedule" for each in spec.topology_spread_constraints
        )
        claims = any(v.persistent_volume_claim or v.ephemeral for v in spec.volumes)
        found = not (wishes or soft or claims or spec.resource_claims)
        shape.memo["hard terms"] = found
    return bool(found)
