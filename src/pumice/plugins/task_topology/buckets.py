"""Buckets: tasks of a job that should share a node, and where their members are."""

from bisect import bisect_left
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import TASK_SPEC
from pumice.core.resources import MEMORY, Column
from pumice.core.snapshot import Snapshot
from pumice.core.views import Job, Task
from pumice.plugins.task_topology.room import EvenMembers, count_fitting, room_of
from pumice.plugins.task_topology.wishes import Wishes

_MEBI = 1024 * 1024


class Bucket:
    """Tasks of a job that should share a node."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.on_node: dict[int, int] = {}
        self.roles: dict[str, int] = {}
        self.load = 0.0
        """The total request of members without a node at session open."""
        self._loads: list[float] = []
        self._waiting: list[int] = []
        """Members without a node, small ones first; of equal ones the last to come."""
        self._requests: list[Column] = []
        """Their requests (R,)."""
        self._even: EvenMembers | Literal[False] | None = None
        """Where they fit, if they are equal; None: not known whether they are."""

    def __len__(self) -> int:
        """Return how many members have no node."""
        return len(self._waiting)

    def __contains__(self, task: int) -> bool:
        """Return whether a member has no node."""
        return task in self._waiting

    def wait(self, task: int, request: Column) -> float:
        """Add a member without a node and its request (R,), once; return its load."""
        load = load_of(request)
        if task in self._waiting:
            return load
        at = bisect_left(self._loads, load)
        self._loads.insert(at, load)
        self._waiting.insert(at, task)
        self._requests.insert(at, request)
        self._even = None
        return load

    def settle(self, task: int) -> None:
        """Remove a member that waited, if it did."""
        if task in self._waiting:
            at = self._waiting.index(task)
            del self._waiting[at], self._loads[at], self._requests[at]

    def fitting(self, task: Task, snapshot: Snapshot) -> NDArray[np.int64]:
        """Count members without a node, a given one first, for which nodes have room (n,).

        0 where that one has none.  The biggest of the others are left out first; in Volcano the
        order is random.
        """
        if self._even is None:
            even = (np.array(self._requests) == self._requests[0]).all()
            self._even = EvenMembers(self._needs(task.row)) if even else False
        if self._even:
            return np.minimum(self._even.fitting(snapshot), len(self))
        return count_fitting(self._needs(task.row), room_of(snapshot))

    def _needs(self, task: int) -> Column:
        """Return the request of a member with 0, 1, … others, small ones first (m, R)."""
        at, requests = self._waiting.index(task), np.array(self._requests)
        others = np.concatenate([np.zeros_like(requests[:1]), requests[:at], requests[at + 1 :]])
        return np.asarray(requests[at] + others.cumsum(axis=0))


class JobTopology:
    """The buckets of one job and the placements of its tasks since."""

    def __init__(self, job: Job, wishes: Wishes) -> None:
        self.wishes = wishes
        self.buckets: list[Bucket] = []
        self.bucket_of: dict[int, Bucket] = {}
        self.roles_on_node: dict[int, dict[str, int]] = {}
        """Tasks by node and role, placed in this session."""
        self._grades: dict[int, int] = {}
        self._fill(job)
        sizes = [len(bucket) + sum(bucket.on_node.values()) for bucket in self.buckets]
        self.largest = max(sizes, default=0)

    def _fill(self, job: Job) -> None:
        """Put tasks into buckets: placed ones by node, then by preference."""
        snapshot, wishes = job.snapshot, self.wishes
        marked = ((task, _marked_role(task)) for task in (Task(snapshot, row) for row in job.tasks))
        role_of = {task: role for task, role in marked if role and role in wishes.urgency}
        grade_of = {role: wishes.grade(role) for role in set(role_of.values())}
        grades = sorted(set(grade_of.values()), reverse=True)
        self._grades = {task.row: grades.index(grade_of[role]) for task, role in role_of.items()}
        by_node: dict[str, Bucket] = {}
        for task in sorted(role_of, key=self._turn):
            node, role = task.pod.spec.node_name, role_of[task]
            bucket = by_node.get(node) if node else self._best_bucket(role)
            if bucket is None:
                bucket = Bucket(len(self.buckets))
                self.buckets.append(bucket)
                if node:
                    by_node[node] = bucket
            self._join(bucket, task, role, snapshot)

    def _turn(self, task: Task) -> tuple[bool, str, int, str]:
        node = task.pod.spec.node_name
        return (not node, node, 0 if node else self._grades[task.row], task.name)

    def _best_bucket(self, role: str) -> Bucket | None:
        best: tuple[int, float, Bucket] | None = None
        for bucket in self.buckets:
            wish = self.wishes.weigh(role, bucket.roles)
            if best is None or (-wish, bucket.load) < (-best[0], best[1]):
                best = (wish, bucket.load, bucket)
        return best[2] if best is not None and best[0] >= 0 else None

    def _join(self, bucket: Bucket, task: Task, role: str, snapshot: Snapshot) -> None:
        self.bucket_of[task.row] = bucket
        bucket.roles[role] = bucket.roles.get(role, 0) + 1
        node = task.pod.spec.node_name
        if node in snapshot.nodes.row_of:
            row = snapshot.nodes.row_of[node]
            bucket.on_node[row] = bucket.on_node.get(row, 0) + 1
        elif not node:
            bucket.load += bucket.wait(task.row, task.request[:, 0])

    def key(self, task: int) -> float:
        """Rank a task in its job: bigger buckets first; those outside all buckets are equal."""
        bucket = self.bucket_of.get(task)
        if bucket is None:
            return 0.0
        n_grades = len(self._grades)
        per_size = n_grades * len(self.buckets)
        return bucket.index * n_grades + self._grades[task] - len(bucket) * float(per_size)

    def near(self, task: Task, bucket: Bucket) -> dict[int, int]:
        """Return nodes with tasks of the job, and how much a task of a bucket wants to join them.

        Most nodes do not occur.
        """
        if not self.wishes.apart:
            return bucket.on_node
        role, found = _marked_role(task), dict(bucket.on_node)
        for row, roles in self.roles_on_node.items():
            away = min(0, self.wishes.weigh(role, roles, apart_only=True))
            found[row] = found.get(row, 0) + away
        return found

    def move(self, task: Task, node: int, sign: int) -> None:
        """Count a task on a node, or remove it again."""
        role = _marked_role(task)
        if role:
            roles = self.roles_on_node.setdefault(node, {})
            roles[role] = roles.get(role, 0) + sign
        bucket = self.bucket_of.get(task.row)
        if bucket is None:
            return
        bucket.on_node[node] = bucket.on_node.get(node, 0) + sign
        if sign > 0:
            bucket.settle(task.row)
        else:
            bucket.wait(task.row, task.request[:, 0])


def _marked_role(task: Task) -> str:
    """Return the role in a pod's annotation: elsewhere a label names one as well, here it does not.

    Volcano: a label only makes a role known, so that preferences may name it.
    """
    role: str = task.pod.metadata.annotations.get(TASK_SPEC, "")
    return role


def load_of(request: Column) -> float:
    """Add up a request: milli-units of cpu and scalars and mebibytes weigh the same."""
    return float(request.sum() - request[MEMORY] + request[MEMORY] / _MEBI)
