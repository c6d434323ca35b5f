"""Cycles in which a single job waits, and starts for certain, without a session.

Admission, queues and the order of jobs have nothing to decide then; what is left is the choice of
nodes, which is asked of the same hooks.  Where anything is in doubt an ordinary cycle decides.
"""

from collections.abc import Sequence

import numpy as np

from pumice.api.decisions import Condition, Decisions, PodGroupState
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.close_session import SCHEDULED
from pumice.framework.equal_tasks import has_host_ports, has_plain_shape, pick_run
from pumice.scheduler import Scheduler
from pumice.sim.bounds import Bounds, Shortcuts
from pumice.sim.job_classes import JobClass
from pumice.sim.job_run import JobRun
from pumice.sim.kept_fits import KeptFits, KeptPlacing, is_common, looks_at_nodes_alone

_CONDITIONS: list[Condition] = [SCHEDULED]


class LoneStart:
    """Starts jobs that wait alone, under a configuration that allows it."""

    def __init__(
        self, snapshot: Snapshot, scheduler: Scheduler, shortcuts: Shortcuts, kept: KeptFits | None
    ) -> None:
        self._snapshot = snapshot
        self._seed = scheduler.seed
        self._hooks = scheduler.kept_hooks
        self._kept = kept if shortcuts.starts_alone and not scheduler.conf.queue_gates else None
        self._eligible: dict[JobClass, bool] = {}
        self._n_quiet = 0
        """The first shapes that are known to have nothing to do with other pods."""

    def decide(self, run: JobRun, bounds: Bounds | None) -> Decisions | None:
        """Decide a cycle in which nothing but this job waits; None if it takes a session."""
        if (
            self._kept is None
            or self._hooks is None
            or not self._kept.is_open
            or bounds is None
            or run.phase != "Pending"
            or run.conditions
            or not self._is_eligible(run.kind)
            or not self._all_quiet()
            or not bounds.surely_starts(run.kind)
        ):
            return None
        picked = self._pick(self._kept.placing(self._snapshot, self._hooks, self._seed), run)
        if picked is None or self._hooks.failures.errors:
            return None
        keys, names = self._snapshot.tasks.keys, self._snapshot.nodes.names
        binds = {keys[task]: names[node] for task, node in zip(*picked, strict=True)}
        return Decisions(binds, pod_groups={run.key: PodGroupState("Inqueue", _CONDITIONS)})

    def _pick(self, placing: KeptPlacing, run: JobRun) -> tuple[Sequence[int], list[int]] | None:
        """Return the tasks of a job in their order, and their nodes."""
        snapshot = self._snapshot
        rows = snapshot.jobs.tasks[snapshot.jobs.row_of[run.key]]
        if not rows:
            return None
        numbers = snapshot.tasks.index[rows].tolist()
        task = Task(snapshot, rows[0])
        key = placing.kind(task)
        if not is_common(key) or snapshot.tasks.best_effort[rows[0]] or numbers != sorted(numbers):
            return None
        snapshot.view_is_live = True  # for copies of a pod, as in a session with predicates
        try:
            with np.errstate(all="ignore"):
                if len(rows) == 1:
                    chosen = placing.choose(task, placing.fit_of(key, task))
                    nodes = [chosen[0]] if chosen is not None and chosen[1] else []
                else:
                    plain = has_plain_shape(task.shape)
                    nodes = pick_run(placing, task, len(rows), None) if plain else []
        finally:
            snapshot.view_is_live = False
        return (rows, nodes) if len(nodes) == len(rows) else None

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
            )
        return known

    def _all_quiet(self) -> bool:
        """Return whether no pod that was ever seen has to do with others, volumes or claims."""
        shapes = self._snapshot.shapes
        while self._n_quiet < len(shapes) and _is_quiet(shapes[self._n_quiet]):
            self._n_quiet += 1
        return self._n_quiet == len(shapes)


def _is_quiet(shape: Shape) -> bool:
    return not has_host_ports(shape.spec) and looks_at_nodes_alone(shape)
