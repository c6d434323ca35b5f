"""drf: dominant resource fairness among jobs, and among queues in a tree."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import HIERARCHY, HIERARCHY_WEIGHTS
from pumice.api.codes import Spared
from pumice.core.resources import STEP, Column, Mask, dominant_share, sum_by
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE
from pumice.core.views import Queue, Task
from pumice.framework.columns import Jobs
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession

_ROOT = 0


@dataclass(frozen=True)
class Standing:
    """The shares of a tree's branches for some holdings."""

    share: list[float]
    """The dominant share of each branch, divided by its weight."""
    saturated: list[bool]
    """Branches none of whose jobs can use more."""


class Hierarchy:
    """Branches built once; ``settle`` computes shares for given holdings of the jobs."""

    def __init__(self, snapshot: Snapshot, total: Column) -> None:
        self._snapshot = snapshot
        self._total = total  # (R, 1)
        self._branch_of: dict[tuple[int, str], int] = {}
        self._weights, self._parents, self._depths = [1.0], [NOWHERE], [0]
        jobs = snapshot.jobs
        self._rows = np.flatnonzero(jobs.listed)
        self.leaf_of = {row: i for i, row in enumerate(self._rows.tolist())}
        """Job row to its column in holdings."""
        queues = jobs.queue[self._rows]
        self._paths = {row: self._draw(row) for row in dict.fromkeys(queues.tolist())}
        ends = {row: path[-1] for row, path in self._paths.items()}
        self._requests = _total_requests(snapshot)[:, self._rows]
        self._arrange(np.asarray([ends[row] for row in queues.tolist()], dtype=np.intp))

    def _draw(self, queue: int) -> list[int]:
        """Find or make the branches from the root to a queue's own; the first weight given stays.

        Volcano: a weight that is missing, unreadable or below 1 counts as 1.
        """
        marks = Queue(self._snapshot, queue).object.metadata.annotations
        names = marks.get(HIERARCHY, "").split("/")[1:]
        weights = marks.get(HIERARCHY_WEIGHTS, "").split("/")[1:]
        path = [_ROOT]
        for depth, name in enumerate(names, start=1):
            key = (path[-1], name)
            if key not in self._branch_of:
                self._branch_of[key] = len(self._parents)
                self._parents.append(path[-1])
                self._depths.append(depth)
                self._weights.append(_weight(weights[depth - 1 : depth]))
            path.append(self._branch_of[key])
        return path

    def _arrange(self, leaf_parents: NDArray[np.intp]) -> None:
        """Number leaves first and branches after them, and group both by depth."""
        self._n_leaves, self._n_branches = len(leaf_parents), len(self._parents)
        self._parent = np.concatenate([leaf_parents, np.asarray(self._parents, dtype=np.intp)])
        depths = np.asarray(self._depths)
        hangs_at = np.where(self._parent == NOWHERE, NOWHERE, depths[self._parent])
        self._levels = [np.flatnonzero(hangs_at == d) for d in range(max(depths), -1, -1)]

    def holdings(self) -> Column:
        """Return the amounts that each job holds or was promised now (R, leaves)."""
        return self._snapshot.jobs.allocated_or_pipelined[:, self._rows]

    def settle(self, holdings: Column) -> Standing:
        """Compute shares from the leaves up to the root.

        Children that can use more are scaled to the smallest share among them before they are
        added up, so that a branch is judged by the share of each of its children.
        """
        n, size = self._n_leaves, self._n_leaves + self._n_branches
        amounts = np.zeros((len(holdings), size))
        amounts[:, :n] = holdings
        share, saturated = np.zeros(size), np.ones(size, dtype=bool)
        share[:n] = dominant_share(holdings, self._total)
        saturated[:n] = self._saturated(holdings)
        for members in self._levels:
            self._settle_level(members, amounts, share, saturated)
        weighted = share[n:] / np.asarray(self._weights)
        return Standing(weighted.tolist(), saturated[n:].tolist())

    def _saturated(self, holdings: Column) -> Mask:
        """Find jobs that have all they ask for of a resource, or request one that is exhausted."""
        taken = holdings.sum(axis=1, keepdims=True)
        exhausted = (self._total < STEP) | (taken >= self._total)
        asked = self._requests
        full = (holdings >= asked) | exhausted
        return np.asarray(((holdings >= STEP) & (asked != 0) & full).any(axis=0))

    def _settle_level(
        self, members: NDArray[np.intp], amounts: Column, share: Column, saturated: Mask
    ) -> None:
        """Set amounts, share and saturation of the parents of some members."""
        n_branches, n_leaves = self._n_branches, self._n_leaves
        parent, own, full = self._parent[members], share[members], saturated[members]
        least = np.ones(n_branches)
        grows = (own > 0) & ~full
        np.minimum.at(least, parent[grows], own[grows])
        scale = np.where(full, 1.0, least[parent] / np.where(own > 0, own, 1.0))
        scaled = amounts[:, members] * np.where(own > 0, scale, 0.0)
        sums = sum_by(scaled, parent, n_branches)
        parents = np.unique(parent)
        amounts[:, n_leaves + parents] = sums[:, parents]
        share[n_leaves + parents] = dominant_share(sums[:, parents], self._total)
        hungry = np.bincount(parent[~full], minlength=n_branches) > 0
        saturated[n_leaves + parents] = ~hungry[parents]

    def compare(self, left: int, right: int, standing: Standing) -> float:
        """Compare two queues (rows) down from the root: negative if the left one goes first."""
        root = [_ROOT]
        paths = (self._paths.get(left, root), self._paths.get(right, root))
        for a, b in zip(*paths, strict=False):
            if standing.saturated[a] != standing.saturated[b]:
                return 1.0 if standing.saturated[a] else -1.0
            if standing.share[a] != standing.share[b]:
                return standing.share[a] - standing.share[b]
        return 0.0


def _weight(text: list[str]) -> float:
    try:
        return max(1.0, float(text[0]))
    except (IndexError, ValueError):
        return 1.0


def _total_requests(snapshot: Snapshot) -> Column:
    """Sum the requests of all tasks of each job, finished ones too (R, jobs)."""
    owners = snapshot.tasks.job
    rows = np.flatnonzero(owners != NOWHERE)
    return sum_by(snapshot.requests(rows), owners[rows], snapshot.jobs.capacity)


SHARE_DELTA = 1e-6
"""Shares that differ by at most this are equal when a task looks for victims."""


@dataclass(kw_only=True)
class Drf(Plugin, name="drf"):
    """Order jobs by their largest share of any resource of the cluster.

    A task may take the place of one whose job would still have the larger share without it.  With
    ``enableHierarchy`` queues are compared by the shares of a tree from their annotations, and
    a task may reclaim from queues that would still come after its own.
    """

    foreseeable = True
    simulator = SimulatorAssumptions()
    spares = Spared.FAIR_SHARE
    hierarchy_hooks: ClassVar[Mapping[str, bool]] = {"compare_queues": True, "reclaimable": True}

    def on_open(self, ssn: PluginSession) -> None:
        """Store the cluster's total, the base of shares."""
        self._snapshot = ssn.snapshot
        self._total = ssn.total[:, None]
        self._moved = ssn.journal.moved
        self._standing: tuple[int, Standing] | None = None

    @cached_property
    def _tree(self) -> Hierarchy:
        """The tree, built when queues are first compared: an idle cycle needs none."""
        return Hierarchy(self._snapshot, self._total)

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put jobs with a small share first."""
        return dominant_share(jobs.allocated_or_pipelined, self._total)

    def compare_queues(self, left: Queue, right: Queue) -> float:
        """Compare the branches of two queues in the present tree."""
        now = len(self._moved)  # grows with every move and with every move undone
        if self._standing is None or self._standing[0] != now:
            self._standing = (now, self._tree.settle(self._tree.holdings()))
        return self._tree.compare(left.row, right.row, self._standing[1])

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer tasks of jobs that keep at least the share the preemptor's job would have."""
        snapshot = self._snapshot
        allocated_or_pipelined = snapshot.jobs.allocated_or_pipelined
        mine = self._share(allocated_or_pipelined[:, preemptor.job] + preemptor.request[:, 0])
        held: dict[int, Column] = {}
        out = np.zeros(len(candidates), dtype=bool)
        for i, row in enumerate(candidates):
            job = int(snapshot.tasks.job[row])
            if job == NOWHERE:
                continue
            held[job] = held.get(job, allocated_or_pipelined[:, job]) - snapshot.request(row)
            theirs = self._share(held[job])
            out[i] = mine < theirs or abs(mine - theirs) <= SHARE_DELTA
        return out

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask | None:
        """Judge each task as if it were the first victim of its job."""
        if hook != "preemptable":
            return None
        snapshot = self._snapshot
        allocated_or_pipelined = snapshot.jobs.allocated_or_pipelined
        mine = self._share(allocated_or_pipelined[:, asker.job] + asker.request[:, 0])
        left = allocated_or_pipelined[:, snapshot.tasks.job[candidates]] - snapshot.requests(
            candidates
        )
        return np.asarray(dominant_share(left, self._total) >= mine - SHARE_DELTA)

    def _share(self, amounts: Column) -> float:
        return float(dominant_share(amounts[:, None], self._total)[0])

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask:
        """Offer tasks whose queue, without the task, would still come after the reclaimer's.

        Each task is judged alone, with the reclaimer in place.
        """
        snapshot, tree = self._snapshot, self._tree
        before = tree.holdings()
        before[:, tree.leaf_of[reclaimer.job]] += reclaimer.request[:, 0]
        answers: dict[tuple[int, int], bool] = {}
        out = np.zeros(len(candidates), dtype=bool)
        for i, row in enumerate(candidates):
            task = Task(snapshot, row)
            if task.job not in tree.leaf_of:
                continue
            key = (task.job, task.shape.id)
            if key not in answers:
                after = before.copy()
                after[:, tree.leaf_of[task.job]] -= task.request[:, 0]
                order = tree.compare(reclaimer.queue, task.queue, tree.settle(after))
                answers[key] = order < 0
            out[i] = answers[key]
        return out
