"""How many nodes are left for a pod after each constraint, one after the other.

Every constraint is tested by itself over all nodes, so that each result is its own; the
order is fixed, with unchangeable constraints first.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from pumice.api.codes import Cause
from pumice.core.resources import PODS, STEP, Column, Mask
from pumice.core.views import NodeFacts, Nodes, Task
from pumice.examine.neighbours import Neighbours
from pumice.framework.plugin import Plugin, implements
from pumice.framework.session import Session

CAPACITY: Final = "capacity"
"""The first constraint: whether a node is large enough at all."""
ORDER: Final = (
    CAPACITY,
    Cause.NODE_UNSCHEDULABLE,
    Cause.NODE_NOT_READY,
    Cause.NODE_SELECTOR,
    Cause.NODE_AFFINITY,
    Cause.TAINT,
    Cause.NODE_GROUP,
    Cause.WINDOW_CLOSED,
    Cause.VOLUME,
    Cause.DEVICE,
    Cause.NUMA_POLICY,
    Cause.PLUGIN_FAILED,
    Cause.EXTENDER_REFUSED,
    Cause.PLUGIN_REFUSED,
    Cause.POD_LIMIT,
    Cause.HOST_PORT,
    Cause.INSUFFICIENT_RESOURCE,
    Cause.POD_AFFINITY,
    Cause.POD_ANTI_AFFINITY,
    Cause.TOPOLOGY_SPREAD,
    Cause.NODE_USAGE,
)
_LASTING: Final = frozenset(ORDER[: ORDER.index(Cause.VOLUME) + 1])
"""Constraints that hold in an empty cluster, too."""

OF_PODS: Final = (Cause.POD_AFFINITY, Cause.POD_ANTI_AFFINITY, Cause.TOPOLOGY_SPREAD)
"""Constraints of other pods."""


@dataclass(frozen=True)
class Constraint:
    """One constraint: the nodes that it refuses by itself (n,)."""

    name: str
    failed: Mask

    @property
    def is_lasting(self) -> bool:
        """Whether it holds in an empty cluster, too."""
        return self.name in _LASTING

    @property
    def code(self) -> Cause:
        """The cause of a job for which it leaves no node."""
        return Cause.INSUFFICIENT_RESOURCE if self.name == CAPACITY else Cause(self.name)


class Funnel:
    """The constraints on one pod at one moment of a session."""

    def __init__(self, ssn: Session, task: Task) -> None:
        self.snapshot = ssn.snapshot
        self.task = task
        self._room = Nodes(ssn.snapshot).future_idle.copy()  # the session continues
        self.beside = 0
        """Pods of the same job that were placed for the trial and count as placed."""
        self.plugins: dict[str, set[str]] = {}
        """Constraint to the plugins that refuse nodes for it."""
        self.texts: dict[str, set[str]] = {}
        """Constraint to the reasons as the filters state them."""
        self.words: dict[str, list[str]] = {}
        """Constraint to messages from external services."""
        found = self._resources()
        self.failures = ssn.failures
        for name, failed in self._filters(ssn).items():
            found[name] = found[name] | failed if name in found else failed
        self.compared = ssn.refusal_numbers(task)
        """Numbers that plugins compared, by their names."""
        self.constraints = [Constraint(name, found[name]) for name in ORDER if name in found]
        near = any(each.failed.any() for each in self.constraints if each.name in OF_PODS)
        self.neighbours = Neighbours.of(ssn, task) if near else None
        """The pods that close nodes, if any do."""

    @cached_property
    def lacking(self) -> Column:
        """What each node lacks of each resource once leaving pods are gone (R, n)."""
        lacking = np.asarray(self.task.need - self._room)
        lacking[PODS] = 0.0
        return np.where(lacking >= STEP, lacking, 0.0)

    @cached_property
    def undersized(self) -> Column:
        """What each node would lack if it were empty (R, n)."""
        lacking = np.asarray(self.task.need - NodeFacts(self.snapshot).allocatable)
        lacking[PODS] = 0.0
        return np.where(lacking >= STEP, lacking, 0.0)

    def _resources(self) -> dict[str, Mask]:
        full = self.task.need[PODS, 0] - self._room[PODS] >= STEP
        return {
            Cause.POD_LIMIT: np.asarray(full),
            CAPACITY: np.asarray((self.undersized > 0).any(axis=0)),
            Cause.INSUFFICIENT_RESOURCE: np.asarray((self.lacking > 0).any(axis=0)),
        }

    def _filters(self, ssn: Session) -> dict[str, Mask]:
        """Ask every plugin by itself."""
        found: dict[str, Mask] = {}
        for plugin in ssn.plugins:
            if not (implements(plugin, "filter_shape") or implements(plugin, "filter_nodes")):
                continue
            for name, failed in self._tests(ssn, plugin).items():
                found[name] = found[name] | failed if name in found else failed
                if failed.any() and plugin.own_words():
                    self.words[name] = plugin.own_words()
                if failed.any():
                    self.plugins.setdefault(name, set()).add(plugin.name)
        return found

    def _tests(self, ssn: Session, plugin: Plugin) -> dict[str, Mask]:
        nodes = Nodes(self.snapshot)
        codes = ssn.placing.plugin_codes(self.task, plugin.position)
        reasons = ssn.placing.reasons
        if codes is None:
            return {}
        reason_of = {int(code): reasons[code] for code in np.unique(codes[codes > 0]).tolist()}
        for reason in reason_of.values():
            self.texts.setdefault(reason.code, set()).add(reason.text)
        asked = ssn.hooks.ask_aside(plugin, Plugin.node_tests)(self.task, nodes)
        if asked is not None:
            failing = {code for code, one in reason_of.items() if one.code is Cause.PLUGIN_FAILED}
            failed = np.isin(codes, list(failing))
            return {**asked, Cause.PLUGIN_FAILED: failed} if failing else dict(asked)
        tests: dict[str, Mask] = {}
        for code, reason in reason_of.items():
            here = codes == code
            tests[reason.code] = tests[reason.code] | here if reason.code in tests else here
        return tests

    # Results

    @cached_property
    def left(self) -> list[tuple[Constraint, Mask]]:
        """The nodes that are left after each constraint (n,)."""
        out, left = [], np.ones(self.snapshot.nodes.n, dtype=bool)
        for constraint in self.constraints:
            left = left & ~constraint.failed
            out.append((constraint, left))
        return out

    @property
    def decisive(self) -> Constraint | None:
        """The constraint that leaves no node; None if some node is left."""
        return next((each for each, left in self.left if not left.any()), None)

    @property
    def holds_when_empty(self) -> bool:
        """Whether no node would fit in an empty cluster either."""
        decisive = self.decisive
        return decisive is not None and decisive.is_lasting

    @property
    def fitting(self) -> Mask:
        """The nodes that take the pod now (n,)."""
        return self.left[-1][1] if self.left else np.ones(self.snapshot.nodes.n, dtype=bool)

    @property
    def usable(self) -> Mask:
        """The nodes that would fit in an empty cluster (n,)."""
        usable = np.ones(self.snapshot.nodes.n, dtype=bool)
        for each in self.constraints:
            if each.is_lasting:
                usable &= ~each.failed
        return usable

    def alone(self) -> list[Constraint]:
        """List the constraints that by themselves leave no node."""
        return [each for each in self.constraints if each.failed.all()]

    def but_for(self) -> list[tuple[Constraint, Mask]]:
        """List the constraints without which nodes would be left, and those nodes (n,)."""
        out = []
        for each in self.constraints:
            others = [one.failed for one in self.constraints if one is not each]
            open_now = each.failed & ~np.logical_or.reduce(others or [np.zeros_like(each.failed)])
            if open_now.any():
                out.append((each, open_now))
        return out

    def nearest(self, among: Mask) -> tuple[str, dict[str, float]] | None:
        """Return the node of some that lacks least, in parts of the request, and what it lacks."""
        rows = np.flatnonzero(among & (self.lacking > 0).any(axis=0))
        if not len(rows):
            return None
        lacking = self.lacking[:, rows]
        parts = lacking / np.where(self.task.request > 0, self.task.request, 1.0)
        best = int(np.argmin(parts.max(axis=0)))
        names = self.snapshot.resources.names
        lacks = {
            names[row]: float(lacking[row, best])
            for row in np.flatnonzero(lacking[:, best]).tolist()
        }
        return self.snapshot.nodes.names[int(rows[best])], lacks

    def holds(self, among: Mask) -> int:
        """Count how many pods like this one some nodes would take, by their room alone."""
        need = self.task.need[:, 0]
        asked = need >= STEP
        asked[PODS] = False
        if not asked.any():
            return int(among.sum()) * 1000
        room = self._room[asked][:, among]
        return int(np.floor((room + STEP) / need[asked][:, None]).min(axis=0).clip(0).sum())
