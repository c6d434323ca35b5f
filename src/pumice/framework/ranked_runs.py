"""Runs of equal tasks whose candidates are compared with each other at each placement.

Plugins that can are asked about nodes that have taken copies already, although these are not
placed yet; everything else is as in other runs.
"""

from collections.abc import Callable

import numpy as np

from pumice.core.resources import Column, IndexArray, Mask
from pumice.core.views import Nodes, Task
from pumice.framework.combining import Ask
from pumice.framework.equal_runs import DEEPEST, Run
from pumice.framework.fits import Fit
from pumice.framework.placing import Placing
from pumice.framework.plugin import Plugin, ranks_ahead


class RankedRun(Run):
    """Picks for equal tasks (rows); plugins that follow placements get each pick at once."""

    def __init__(
        self,
        placing: Placing,
        tasks: list[int],
        fit: Fit,
        allowed: Mask | None,
        *,
        rankers: list[Ask],
        follow: Callable[[Task, int], object],
    ) -> None:
        """Make one; ``rankers`` are those that compare candidates ahead."""
        super().__init__(placing, Task(placing.snapshot, tasks[0]), fit, allowed)
        self._tasks = tasks
        self._rankers = rankers
        self._follow = follow

    def pick(self, n: int) -> list[int]:
        """Return nodes for up to n tasks; fewer if room runs out."""
        self._left = n
        while self._left:
            candidates = (self._value > -np.inf).nonzero()[0]
            if not len(candidates):
                break
            task = Task(self._placing.snapshot, self._tasks[len(self._picks)])
            if len(candidates) > 1:
                best = self._scores(task, candidates)
                candidates = candidates[best == best.max()]
            at = self._placing.spin(len(candidates)) if len(candidates) > 1 else 0
            node = int(candidates[at])
            self._add(node, list)
            self._follow(task, node)
        return self._picks

    def _look_ahead(self, nodes: list[int]) -> None:
        """Ask about all copies that are left on the node that takes one: mostly it takes more."""
        node, n = nodes[0], min(self._left, DEEPEST)
        known = self._ahead.setdefault(node, [])
        copies = np.arange(len(known) + 1.0, len(known) + n + 1.0)
        known += self._values(np.full(n, node), copies).tolist()

    def _scores(self, task: Task, candidates: IndexArray) -> Column:
        """Return what candidates are worth beside each other."""
        scores, snapshot = self._value, self._placing.snapshot
        nodes = Nodes(snapshot)
        if len(candidates) < len(scores):
            scores, nodes = scores[candidates], Nodes(snapshot, candidates)
        for ask in self._rankers:
            column = ask(task, nodes, self._copies)
            if column is not None:
                scores = scores + column
        return scores


def rankers_ahead(placing: Placing, task: Task) -> list[Ask] | None:
    """Return who compares candidates for such tasks ahead; None if that would not do."""
    hooks = placing.hooks
    some = [plugin for plugin, _, may_rank in placing.rankers if may_rank(task) is not False]
    can = placing.imagines and not hooks.tiers(Plugin.best_node)
    if not can or not all(map(ranks_ahead, some)):
        return None
    return [hooks.ask_aside(plugin, Plugin.rank_ahead) for plugin in some]
