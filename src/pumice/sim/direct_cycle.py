"""Cycles that admit and start gangs of equal pods without a session.

Such jobs have nothing to do with each other but limits, order and nodes: limits and the order of
queues come from the same values as in a session, nodes are asked of the same hooks.  Where anything
else may count an ordinary cycle decides.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pumice.core.resources import PODS
from pumice.core.shapes import Shape
from pumice.core.views import Task
from pumice.framework.placement.ahead import has_host_ports, has_plain_shape
from pumice.scheduler import Scheduler
from pumice.sim.bounds import Bounds
from pumice.sim.job_classes import JobClass
from pumice.sim.job_run import JobRun
from pumice.sim.kept_fits import KeptFits, KeptPlacing, is_common, looks_at_nodes_alone
from pumice.sim.shortcuts import Shortcuts
from pumice.sim.sim_cluster import SimCluster
from pumice.sim.turns import Admission, Turns


@dataclass(slots=True)
class DirectDecisions:
    """What such a cycle decides."""

    admitted: list[JobRun] = field(default_factory=list)
    started: dict[JobRun, list[int]] = field(default_factory=dict)
    """Jobs, in the order of their turns, with the rows of their nodes; they count there by now."""


class DirectCycle:
    """Decides cycles of jobs that are gangs of equal pods, under a configuration that allows it."""

    def __init__(
        self,
        scheduler: Scheduler,
        shortcuts: Shortcuts,
        kept: KeptFits | None,
        cluster: SimCluster,
    ) -> None:
        self._snapshot = cluster.snapshot
        self._states = cluster.node_states
        self._unlisted = cluster.unlisted
        self._seed = scheduler.seed
        self._hooks = scheduler.kept_hooks
        self._kept = kept if shortcuts.starts_alone and not scheduler.conf.queue_gates else None
        self._knows_order = shortcuts.knows_order
        self._eligible: dict[JobClass, bool] = {}
        self._n_quiet = 0
        """The first shapes that are known to have nothing to do with other pods."""

    def decide(
        self, admitted: Sequence[JobRun], new: Sequence[JobRun], bounds: Bounds | None
    ) -> DirectDecisions | None:
        """Decide about the jobs of a cycle, admitted and new ones; None if it takes a session."""
        kept, hooks = self._kept, self._hooks
        if kept is None or hooks is None or not kept.is_open or bounds is None:
            return None
        everyone = [*admitted, *new]
        if not (self._are_eligible(everyone) and self._all_quiet()):
            return None
        if not bounds.knows_limits(everyone) or not self._has_known_order(everyone):
            return None
        decisions = DirectDecisions(Admission(bounds).admit(_by_age(new)))
        turns = Turns(bounds, _by_age([*admitted, *decisions.admitted]))
        state = None
        while (turn := turns.next()) is not None:
            run, n = turn
            placing = kept.placing(self._snapshot, hooks, self._seed)
            placing.state = placing.state if state is None else state
            nodes = self._pick(placing, run, n)
            if nodes:
                decisions.started[run] = nodes
                turns.hold(run)
            if nodes is None or hooks.failures.errors:
                self._undo(decisions)
                kept.ranked.clear()  # these answers may have been given in error
                return None
            state = placing.state
        return decisions

    def may_go_on_unlisted(self, run: JobRun) -> bool:
        """Return whether a job with rows runs as those do that start without a session."""
        return (
            self._kept is not None
            and run.running == run.kind.size
            and min(run.ends) == max(run.ends)
            and self._are_eligible([run])
            and self._all_quiet()
        )

    def _undo(self, decisions: DirectDecisions) -> None:
        for run, nodes in decisions.started.items():
            self._unlisted.count_on_nodes(run, nodes, -1)

    def _pick(self, placing: KeptPlacing, run: JobRun, n: int) -> list[int] | None:
        """Return nodes with room now for a job of which n pods may start, which count there now.

        None if they are compared beyond their scores, or something is about to leave them; none
        if there is no room for all of the job.
        """
        task = self._unlisted.sample(run)
        key = placing.kind(task)
        if not is_common(key):
            return None
        states, ranked = self._states, placing.ranked(key, task)
        if ranked is not None and not ranked.frees_room:
            nodes: list[int] | None = ranked.pick(n, placing.spin)
        else:
            states.write_due()
            nodes = self._pick_by_fit(placing, key, task, n)
            states.count(task.shape, nodes or (), 1)
        if nodes and len(nodes) < run.kind.size:
            states.count(task.shape, nodes, -1)
            return []
        if nodes:
            self._unlisted.keep_on_nodes(run)
        return nodes

    def _pick_by_fit(
        self, placing: KeptPlacing, key: Hashable, task: Task, n: int
    ) -> list[int] | None:
        """Return nodes with room now for n equal tasks; fewer if there are not as many.

        None if they are compared beyond their scores, or something is about to leave them.
        """
        snapshot = self._snapshot
        snapshot.view_is_live = True  # for copies of a pod, as in a session with predicates
        try:
            with np.errstate(all="ignore"):
                fit = placing.fit_of(key, task)
                if n > 1:
                    return None
                chosen = placing.choose(task, fit)
                if chosen is None:
                    return []
                return [chosen[0]] if chosen[1] else None
        finally:
            snapshot.view_is_live = False

    def _has_known_order(self, runs: Sequence[JobRun]) -> bool:
        """Return whether it is known which of several jobs goes first."""
        first = runs[0].kind.group.priority_class_name
        return len(runs) == 1 or (
            self._knows_order and all(run.kind.group.priority_class_name == first for run in runs)
        )

    def _are_eligible(self, runs: Iterable[JobRun]) -> bool:
        """Return whether jobs are gangs of equal pods and nothing more."""
        return all(map(self.is_eligible, runs))

    def is_eligible(self, run: JobRun) -> bool:
        """Return whether a job is a gang of equal pods and nothing more."""
        known = self._eligible.get(run.kind)
        return self._learn(run) if known is None else known

    def _learn(self, run: JobRun) -> bool:
        kind = run.kind
        group = kind.group
        found = (
            kind.is_steady
            and len(kind.specs) == 1
            and not kind.late_pods
            and kind.size == (group.min_member or 0)
            and not kind.specs[0].scheduling_gates
            and not (group.min_task_member or group.sub_group_policy)
            and group.network_topology is None
            and _needs_what_it_holds(kind)
            and self._is_plain(run)
        )
        self._eligible[kind] = found
        return found

    def _is_plain(self, run: JobRun) -> bool:
        """Return whether pods of a job ask for something, in exact amounts, and for no more."""
        shape = self._unlisted.sample(run).shape
        return not (shape.coarse or shape.best_effort) and (
            run.kind.size == 1 or has_plain_shape(shape)
        )

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


def _by_age(runs: Sequence[JobRun]) -> Sequence[JobRun]:
    """Return jobs of equal priority in the order in which their queues take them."""
    if len(runs) < 2:
        return runs
    return sorted(runs, key=lambda run: run.age)
