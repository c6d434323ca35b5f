"""Domains in which a job would have exactly the same outcome, so that one dry run covers them all.

Only for jobs of plain tasks, whose answers follow from node rows alone.
"""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.fits import Fit
from pumice.framework.session_state import SessionState
from pumice.framework.topology.domains import Domain, SubGroup


class EqualDomains:
    """Distinguishes domains by everything that placing some tasks can see of their nodes."""

    def __init__(self, state: SessionState, rows: list[int]) -> None:
        self._state = state
        self._fits: list[Fit] = []
        tasks = state.snapshot.tasks
        self._known = not state.policy.follows_placements and all(
            tasks.nominated[row] == NOWHERE and self._is_plain(row) for row in rows
        )
        if self._known:
            fits = (state.placing.fit(Task(state.snapshot, row)) for row in rows)
            self._fits = list({id(fit): fit for fit in fits}.values())

    def _is_plain(self, row: int) -> bool:
        """Return whether nodes answer to a task by their amounts, whatever its role."""
        snapshot = self._state.snapshot
        group = snapshot.jobs.groups[snapshot.tasks.job[row]].spec
        task = Task(snapshot, row)
        return not group.min_task_member and self._state.placing.by_amounts(task)

    def key(self, domain: Domain, inner: Iterable[tuple[SubGroup, list[list[Domain]]]]) -> Hashable:
        """Return a value that is the same for equal domains; None where unknown.

        ``inner`` lists the domains below for each sub-group.
        """
        if not self._known:
            return None
        rows, nodes = domain.rows, self._state.snapshot.nodes
        columns: list[NDArray[Any]] = [
            nodes.books[:, :, rows],
            nodes.allocatable[:, rows],
            nodes.view_pods[rows],
        ]
        for fit in self._fits:
            columns += [fit.verdict[rows], fit.room[rows], fit.score[rows]]
        homes = self._state.topology.tree.homes[rows]
        columns.append(np.where(homes < 0, homes, homes - domain.index))
        return (
            *[column.tobytes() for column in columns],
            *[self._look_inside(domain, part, levels) for part, levels in inner],
        )

    def _look_inside(self, domain: Domain, part: SubGroup, levels: list[list[Domain]]) -> Hashable:
        some = [each for level in levels for each in level]
        scores = [
            self._state.policy.score_domains(part, some).tobytes(),
            self._state.policy.rank_domains(part, some).tobytes(),
        ]
        places = [np.searchsorted(domain.rows, each.rows).tobytes() for each in some]
        return (*scores, *places, *[each.tier for each in some])
