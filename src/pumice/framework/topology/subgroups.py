"""Parts of a job that are placed as one: by ``subGroupPolicy``, or the whole job.

Read by plugins and by the search over network domains; nothing here moves a task.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.api.groups import NetworkTopology, PodGroup, SubGroupPolicy
from pumice.core.labels import selects
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, N_STATUS, PENDING, Status
from pumice.core.views import Job

_READY = np.zeros(N_STATUS, dtype=bool)
_READY[[int(s) for s in (*ALLOCATED_CLASS, Status.SUCCEEDED)]] = True


@dataclass(slots=True, eq=False)
class SubGroup:
    """Tasks of one job that must be placed together; ``size`` of them make it ready.

    ``limit`` is the highest tier of network domain it may spread over, None for any.
    """

    snapshot: Snapshot = field(repr=False)
    id: str
    job: int
    policy: str | None
    """The name of its policy, None for tasks of no policy."""
    size: int
    match_index: int = 0
    """The first label value if it is a number; orders sub-groups."""
    topology: NetworkTopology | None = None
    limit: int | None = None
    priority: int = 0
    """The highest priority of its tasks."""
    rows: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @property
    def n_tasks(self) -> int:
        """How many tasks it has, whatever their state."""
        return len(self.rows)

    @property
    def ready(self) -> int:
        """Tasks that hold a node, have succeeded, or wait and request nothing."""
        tasks = self.snapshot.tasks
        status = tasks.status[self.rows]
        idle = (status == PENDING) & tasks.best_effort[self.rows]
        return int((_READY[status] | idle).sum())

    @property
    def waiting(self) -> int:
        """Tasks that are pipelined."""
        return int((self.snapshot.tasks.status[self.rows] == Status.PIPELINED).sum())

    @property
    def is_ready(self) -> bool:
        """Whether enough tasks are placed."""
        return self.ready >= self.size

    @property
    def is_pipelined(self) -> bool:
        """Whether enough tasks are placed or pipelined."""
        return self.ready + self.waiting >= self.size


def split(job: Job) -> list[SubGroup]:
    """Divide a job's tasks by the policies of its pod group, in a fixed order.

    A pod belongs to the first policy that selects it and whose label keys it all has; pods of no
    policy, and jobs without any, form one sub-group that follows the job itself.
    """
    snapshot = job.snapshot
    group: PodGroup = job.group
    policies = group.spec.sub_group_policy
    if not policies:
        whole = _subgroup(job, None, ())
        whole.rows = np.asarray(job.tasks, dtype=np.intp)
        whole.priority = max([0, *snapshot.tasks.priority[whole.rows].tolist()])
        return [whole]
    found: dict[str, SubGroup] = {}
    rows: dict[str, list[int]] = {}
    for row in job.tasks:
        policy, values = _policy_of(policies, snapshot.tasks.pods[row])
        part = _subgroup(job, policy, values)
        found.setdefault(part.id, part)
        rows.setdefault(part.id, []).append(row)
    for name, part in found.items():
        part.rows = np.asarray(rows[name], dtype=np.intp)
        part.priority = max(0, int(snapshot.tasks.priority[part.rows].max()))
    return [found[name] for name in sorted(found)]


def _policy_of(
    policies: tuple[SubGroupPolicy, ...], pod: Any
) -> tuple[SubGroupPolicy | None, tuple[str, ...]]:
    labels = pod.metadata.labels
    for policy in policies:
        if policy.label_selector is not None and not selects(policy.label_selector, labels):
            continue
        values = tuple(labels.get(key, "") for key in policy.match_label_keys)
        if values and all(values):
            return policy, values
    return None, ()


def _subgroup(job: Job, policy: SubGroupPolicy | None, values: tuple[str, ...]) -> SubGroup:
    spec = job.group.spec
    if policy is None:
        size = 1 if spec.sub_group_policy else job.min_member
        return SubGroup(job.snapshot, job.key, job.row, None, size, topology=spec.network_topology)
    return SubGroup(
        job.snapshot,
        f"{job.key}/{policy.name}-{'-'.join(values)}",
        job.row,
        policy.name,
        1 if policy.sub_group_size is None else policy.sub_group_size,
        _number(values[0]),
        policy.network_topology,
    )


def _number(text: str) -> int:
    """Read a whole number as Go does, 0 for anything else."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else 0
