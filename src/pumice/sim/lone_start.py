"""Cycles in which a single job waits, and starts for certain, without a session.

Admission, queues and the order of jobs have nothing to decide then; what is left is the choice of
nodes, which is asked of the same hooks.  Where anything is in doubt an ordinary cycle decides.
"""

import numpy as np

from pumice.core.resources import PODS
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.equal_tasks import has_host_ports, has_plain_shape, pick_run
from pumice.scheduler import Scheduler
from pumice.sim.bounds import Bounds, Shortcuts
from pumice.sim.job_classes import JobClass
from pumice.sim.job_run import JobRun
from pumice.sim.kept_fits import KeptFits, KeptPlacing, is_common, looks_at_nodes_alone
from pumice.sim.unlisted_jobs import UnlistedJobs


class LoneStart:
    """Chooses nodes for jobs that wait alone, under a configuration that allows it."""

    def __init__(
        self,
        snapshot: Snapshot,
        scheduler: Scheduler,
        shortcuts: Shortcuts,
        kept: KeptFits | None,
        unlisted: UnlistedJobs,
    ) -> None:
        self._snapshot = snapshot
        self._unlisted = unlisted
        self._seed = scheduler.seed
        self._hooks = scheduler.kept_hooks
        self._kept = kept if shortcuts.starts_alone and not scheduler.conf.queue_gates else None
        self._eligible: dict[JobClass, bool] = {}
        self._n_quiet = 0
        """The first shapes that are known to have nothing to do with other pods."""

    def choose(self, run: JobRun, bounds: Bounds | None) -> list[int] | None:
        """Choose the nodes of a new job if nothing else waits; None if it takes a session."""
        if (
            self._kept is None
            or self._hooks is None
            or not self._kept.is_open
            or bounds is None
            or not self._is_eligible(run.kind)
            or not self._all_quiet()
            or not bounds.surely_starts(run.kind)
        ):
            return None
        task = self._unlisted.sample(run)
        if task.shape.coarse or task.shape.best_effort:
            return None
        placing = self._kept.placing(self._snapshot, self._hooks, self._seed)
        nodes = self._pick(placing, task, run.kind.size)
        return nodes if len(nodes) == run.kind.size and not self._hooks.failures.errors else None

    def _pick(self, placing: KeptPlacing, task: Task, n: int) -> list[int]:
        """Return nodes with room now for n equal tasks; fewer if there are not as many."""
        key = placing.kind(task)
        if not is_common(key):
            return []
        snapshot = self._snapshot
        snapshot.view_is_live = True  # for copies of a pod, as in a session with predicates
        try:
            with np.errstate(all="ignore"):
                if n > 1:
                    return pick_run(placing, task, n, None) if has_plain_shape(task.shape) else []
                chosen = placing.choose(task, placing.fit_of(key, task))
                return [chosen[0]] if chosen is not None and chosen[1] else []
        finally:
            snapshot.view_is_live = False

    def _is_eligible(self, kind: JobClass) -> bool:
        """Return whether jobs of a class are gangs of equal pods and nothing more."""
        known = self._eligible.get(kind)
        if known is None:
            group = kind.group
            known = self._eligible[kind] = (
                kind.is_steady
                and len(kind.specs) == 1
                and not kind.late_pods
                and kind.size == (group.min_member or 0)
                and not kind.specs[0].scheduling_gates
                and not (group.min_task_member or group.sub_group_policy)
                and group.network_topology is None
                and _needs_what_it_holds(kind)
            )
        return known

    def _all_quiet(self) -> bool:
        """Return whether no pod ever seen has to do with others, or makes sums inexact."""
        shapes = self._snapshot.shapes
        while self._n_quiet < len(shapes) and _is_quiet(shapes[self._n_quiet]):
            self._n_quiet += 1
        return self._n_quiet == len(shapes)


def _is_quiet(shape: Shape) -> bool:
    return not (has_host_ports(shape.spec) or shape.coarse) and looks_at_nodes_alone(shape)


def _needs_what_it_holds(kind: JobClass) -> bool:
    """Return whether jobs of a class reserve exactly what they hold once they run."""
    held = kind.request.copy()
    held[PODS] = 0.0  # which no limit counts
    return bool((held == kind.reserve).all())
