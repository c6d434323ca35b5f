"""nodegroup: queues choose the node groups of their pods, and limits in them."""

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pumice.api.annotations import NODE_GROUP
from pumice.api.codes import Cause
from pumice.api.groups import NodeGroupAffinity, QueueAffinity
from pumice.core.resources import STEP, Column
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS
from pumice.core.tables import NOWHERE
from pumice.core.views import Nodes, Task
from pumice.framework.arguments import arg
from pumice.framework.plugin import Codes, Plugin, Reason
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession

LIMITS = "volcano.sh/nodegroup-resource-limits"

_BAD_LIMITS, _NO_LABEL, _NO_AFFINITY, _UNSUITED, _OVER_LIMIT = range(1, 6)


@dataclass(slots=True)
class _Policy:
    """One queue's rules for every group; the last place is that of nodes without a group."""

    codes: Codes
    scores: Column
    limit: Column | None
    """Most it may hold in each group (R, G + 1), infinite where not stated."""
    held: Column
    """What it holds or was promised there (R, G + 1)."""
    largest: Column
    """The largest request among its tasks, resource by resource (R,)."""
    stated_by: str
    """The queue that states its affinity: itself, or an ancestor."""
    named: list[str]
    """The groups that its affinity allows."""


@dataclass(kw_only=True)
class NodeGroup(Plugin, name="nodegroup"):
    """Restrict a queue's pods to the node groups it requires or prefers.

    Labelled nodes are closed to queues without affinity; unlabelled ones are closed to all, or
    with ``strict: false`` open to such queues.
    """

    simulator = SimulatorAssumptions()
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("queue's node group limits cannot be read", curable=False, code=Cause.NODE_GROUP),
        Reason("node group label not found", curable=False, code=Cause.NODE_GROUP),
        Reason("node group affinity not specified", curable=False, code=Cause.NODE_GROUP),
        Reason(
            "node does not satisfy the node group affinity", curable=False, code=Cause.NODE_GROUP
        ),
        Reason("node group resource limit exceeded", curable=False, code=Cause.NODE_GROUP),
    )
    strict: bool = arg("strict", default=True, doc="close unlabelled nodes to every queue")
    preferred_order: bool = arg(
        "enablePreferredOrder",
        default=False,
        doc="score preferred groups by their place in the list",
    )

    def on_open(self, ssn: PluginSession) -> None:
        """Compute each queue's rules for each group."""
        snapshot = ssn.snapshot
        self._snapshot, self._journal = snapshot, ssn.journal
        labels = [each.get(NODE_GROUP) for each in snapshot.nodes.labels]
        self._groups = sorted({label for label in labels if label is not None})
        place = {group: i for i, group in enumerate(self._groups)}
        self._group_of = np.array(
            [NOWHERE if label is None else place[label] for label in labels], dtype=np.intp
        )
        queues = snapshot.queues
        rows = [row for row in range(queues.n) if queues.listed[row]]
        self._policies = {row: self._policy(row) for row in rows}
        for row in ssn.jobs():
            policy = self._policies[int(snapshot.jobs.queue[row])]
            if policy.limit is not None:
                self._count(policy, snapshot.jobs.tasks[row])

    def vary_by(self, task: Task) -> Hashable:
        """Return the queue: pods of one shape differ by it."""
        return task.queue

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes:
        """Close the groups that a queue excludes, and those where it has reached its limit."""
        policy = self._policies[task.queue]
        codes = policy.codes
        if policy.limit is not None:
            over = (policy.held + task.request - policy.limit >= STEP).any(axis=0)
            codes = np.where((codes == 0) & over, np.int16(_OVER_LIMIT), codes)
        return codes[self._group_of[nodes.rows]]

    def score_nodes(self, task: Task, nodes: Nodes) -> Column:
        """Prefer required groups to preferred ones; avoid those that the queue prefers to avoid."""
        return self._policies[task.queue].scores[self._group_of[nodes.rows]]

    def refusal_numbers(self, task: Task) -> dict[str, Any]:
        """Return the queue of a task, the one that states its affinity, and the groups it names."""
        queue, policy = self._snapshot.queues.names[task.queue], self._policies[task.queue]
        stated = {"queue": queue, "statedBy": policy.stated_by, "affinity": policy.named}
        return {"nodeGroup": stated}

    def on_place(self, task: Task, node: int) -> None:
        """Count a task in its group."""
        self._change(task, node, 1)

    def on_evict(self, task: Task, node: int) -> None:
        """Stop counting a task in its group."""
        self._change(task, node, -1)

    def _change(self, task: Task, node: int, sign: int) -> None:
        policy, group = self._policies.get(task.queue), int(self._group_of[node])
        if policy is None or policy.limit is None or group == NOWHERE:
            return
        where = (slice(None), group)
        before = policy.held[where].copy()
        self._journal.save(policy.held, where)
        policy.held[where] += sign * task.request[:, 0]
        fullest = np.maximum(before, policy.held[where]) + policy.largest
        if (fullest - policy.limit[where] >= STEP).any():
            # near the limit the answer may change on every node of the group, not only on this one
            self._journal.touch(np.flatnonzero(self._group_of == group))

    def _count(self, policy: _Policy, rows: list[int]) -> None:
        tasks = self._snapshot.tasks
        for row in rows:
            node, request = int(tasks.node[row]), self._snapshot.request(row)
            policy.largest = np.maximum(policy.largest, request)
            if int(tasks.status[row]) in ALLOCATED_CLASS and node != NOWHERE:
                policy.held[:, self._group_of[node]] += request

    def _policy(self, row: int) -> _Policy:
        size = len(self._groups) + 1
        shape = (len(self._snapshot.resources), size)
        limits = _read_limits(self._snapshot, row)
        affinity, stated_by = _affinity(self._snapshot, row, inherit=self.hierarchy)
        codes, scores = np.zeros(size, dtype=np.int16), np.zeros(size)
        wishes = _Wishes(affinity)
        for i, group in enumerate(self._groups):
            codes[i] = wishes.code(group)
            scores[i] = wishes.score(group, in_order=self.preferred_order)
        codes[NOWHERE] = 0 if not self.strict and wishes.silent else _NO_LABEL
        if limits is None:
            codes[:] = _BAD_LIMITS
        limit = None
        if limits:
            limit = np.full(shape, np.inf)
            for i, group in enumerate(self._groups):
                limit[:, i] = limits.get(group, np.inf)
        held, largest = np.zeros(shape), np.zeros(shape[0])
        return _Policy(codes, scores, limit, held, largest, stated_by, wishes.allowed)


class _Wishes:
    """The four lists of a queue's node group affinity."""

    def __init__(self, affinity: QueueAffinity | None) -> None:
        near = (affinity and affinity.node_group_affinity) or NodeGroupAffinity()
        far = (affinity and affinity.node_group_anti_affinity) or NodeGroupAffinity()
        self.required, self.avoided, self.disliked = (
            frozenset(groups) for groups in (near.required, far.required, far.preferred)
        )
        self.preferred = {group: i for i, group in enumerate(near.preferred)}
        self.silent = not (self.required or self.preferred or self.avoided or self.disliked)

    @property
    def allowed(self) -> list[str]:
        """The groups that it names and that are not closed."""
        return sorted({*self.required, *self.preferred, *self.disliked} - self.avoided)

    def code(self, group: str) -> int:
        """Return why a group is closed, 0 if open; preferred anti-affinity does not close it."""
        if self.silent:
            return _NO_AFFINITY
        wanted = group in self.required or group in self.preferred
        suits = (wanted and group not in self.avoided) or group in self.disliked
        return 0 if suits else _UNSUITED

    def score(self, group: str, *, in_order: bool) -> float:
        """Score a group: 100 required, up to 50 preferred, -1 avoided."""
        if group in self.disliked:
            return -1.0
        score = 100.0 if group in self.required else 0.0
        if group in self.preferred:
            n = len(self.preferred)
            score += 50.0 * (n - self.preferred[group]) / n if in_order else 50.0
        return score


def _affinity(snapshot: Snapshot, row: int, *, inherit: bool) -> tuple[QueueAffinity | None, str]:
    """Return a queue's affinity, or the nearest ancestor's if it may inherit, and whose it is."""
    queues = snapshot.queues
    own = queues.names[row]
    seen: set[int] = set()
    while row not in seen:
        seen.add(row)
        spec = queues.objects[row].spec  # type: ignore[attr-defined]
        found: QueueAffinity | None = spec.affinity
        if found is not None or not inherit or queues.names[row] == "root":
            return found, own if found is None else queues.names[row]
        parent = queues.row_of.get(spec.parent or "root")
        if parent is None or queues.objects[parent] is None:
            return None, own
        row = parent
    return None, own


def _read_limits(snapshot: Snapshot, row: int) -> dict[str, Column] | None:
    """Read a queue's limits by group (R,); None if they cannot be read."""
    text = snapshot.queues.objects[row].metadata.annotations.get(LIMITS, "")  # type: ignore[attr-defined]
    try:
        groups: Any = json.loads(text) if text else None
        return {
            group: snapshot.resources.vector({} if amounts is None else amounts, missing=np.inf)
            for group, amounts in ({} if groups is None else groups).items()
        }
    except (ValueError, AttributeError, TypeError):
        return None
