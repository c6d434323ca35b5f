"""task-topology: put tasks of a job together or apart, by annotations of its pod group."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import TASK_SPEC
from pumice.core.resources import MEMORY, STEP, Column
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NodeTable
from pumice.core.views import Job, Nodes, Task
from pumice.framework.alike_nodes import AlikeNodes, Speakers
from pumice.framework.arguments import arg
from pumice.framework.columns import Tasks
from pumice.framework.plugin import Plugin
from pumice.framework.plugin_session import PluginSession
from pumice.framework.simulator_assumptions import SimulatorAssumptions

AFFINITY = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER = "volcano.sh/task-topology-task-order"
SELF_APART, TOGETHER, SELF_TOGETHER, APART = 4, 3, 2, 1
"""The urgency of a role by its preferences; the highest counts."""

_MAX_SCORE = 100
_MEBI = 1024 * 1024
_FEW = 8
"""Moved nodes up to which room is counted one by one."""

Pair = frozenset[str]
"""Two roles, or one with itself."""


@dataclass
class Wishes:
    """The preferences of one pod group about its roles, from its annotations."""

    together: set[Pair] = field(default_factory=set)
    apart: set[Pair] = field(default_factory=set)
    urgency: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    """Position in the wanted order, counted from its end."""

    def add(self, group: list[str], pairs: set[Pair], alone: int, among: int) -> None:
        """Add one group of roles."""
        if len(group) == 1:
            pairs.add(frozenset(group))
        pairs.update(frozenset(pair) for pair in combinations(group, 2))
        for role in group:
            grade = alone if len(group) == 1 else among
            self.urgency[role] = max(self.urgency.get(role, 0), grade)

    def grade(self, role: str) -> tuple[int, int]:
        """Rank a role; higher goes first."""
        return self.order.get(role, 0), self.urgency[role]

    def weigh(self, role: str, others: dict[str, int], *, apart_only: bool = False) -> int:
        """Add up tasks that a role prefers near, minus those it avoids."""
        total = 0
        for other, count in others.items():
            pair = frozenset((role, other))
            if pair in self.together and not apart_only:
                total += count
            if pair in self.apart:
                total -= count
        return total


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
        self._requests: Column = np.zeros((0, 0))
        """Their requests (m, R)."""
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
        load = _load(request)
        if task in self._waiting:
            return load
        at = bisect_left(self._loads, load)
        self._loads.insert(at, load)
        self._waiting.insert(at, task)
        self._even = None
        requests = self._requests.reshape(-1, len(request))
        self._requests = np.concatenate([requests[:at], request[None], requests[at:]])
        return load

    def settle(self, task: int) -> None:
        """Remove a member that waited, if it did."""
        if task in self._waiting:
            at = self._waiting.index(task)
            del self._waiting[at], self._loads[at]
            self._requests = np.concatenate([self._requests[:at], self._requests[at + 1 :]])

    def fitting(self, task: Task, alike: Speakers) -> NDArray[np.int64]:
        """Count members without a node, a given one first, for which groups of nodes have room.

        0 where that one has none.  The biggest of the others are left out first; in Volcano the
        order is random.
        """
        if self._even is None:
            even = (self._requests == self._requests[0]).all()
            self._even = EvenMembers(self._needs(task.row)) if even else False
        if self._even:
            return np.minimum(self._even.fitting(alike), len(self))
        return count_fitting(self._needs(task.row), alike.nodes.idle + alike.nodes.releasing)

    def _needs(self, task: int) -> Column:
        """Return the request of a member with 0, 1, … others, small ones first (m, R)."""
        at, requests = self._waiting.index(task), self._requests
        others = np.concatenate([np.zeros_like(requests[:1]), requests[:at], requests[at + 1 :]])
        return np.asarray(requests[at] + others.cumsum(axis=0))


class EvenMembers:
    """How many of several equal tasks fit on groups of nodes; follows the log of moved rows."""

    def __init__(self, needs: Column) -> None:
        """Make one; ``needs`` is the request of one, two, … tasks (m, R)."""
        self._needs = needs
        self._request: list[float] = needs[0].tolist()
        self._lines: list[list[float]] = needs.T.tolist()
        self._asked: list[int] = needs[-1].nonzero()[0].tolist()
        self._counts = np.zeros(0, dtype=np.int64)
        self._cursor = 0

    def fitting(self, alike: Speakers) -> NDArray[np.int64]:
        """Return how many of the tasks each group takes."""
        nodes, moved = alike.nodes, alike.nodes.snapshot.journal.moved
        news, self._cursor = moved[self._cursor :], len(moved)
        rows = [row for row in news if isinstance(row, int)]
        if not len(self._counts) or len(news) > _FEW or len(rows) < len(news):
            self._counts = count_fitting(self._needs, nodes.idle + nodes.releasing)
            return self._counts
        more = len(nodes) - len(self._counts)
        if more:
            self._counts = np.concatenate([self._counts, np.zeros(more, dtype=np.int64)])
        for row in rows:
            self._counts[alike.group[row]] = self._fitting_on(nodes.snapshot.nodes, row)
        return self._counts

    def _fitting_on(self, nodes: NodeTable, row: int) -> int:
        room: list[float] = (nodes.idle[:, row] + nodes.releasing[:, row]).tolist()
        if any(have < wanted for have, wanted in zip(room, self._request, strict=True)):
            return 0
        fewest = len(self._needs)
        for kind in self._asked:
            fewest = min(fewest, bisect_left(self._lines[kind], room[kind] + STEP))
        return max(1, fewest)


def count_fitting(needs: Column, room: Column) -> NDArray[np.int64]:
    """Count tasks for which there is room (R, n), of those that need this together (m, R).

    0 where the first one does not fit.
    """
    found = np.full(room.shape[1], len(needs))
    asked = needs[-1].nonzero()[0]
    some = room[asked] + STEP
    tight = (some <= needs[-1, asked, None]).any(axis=0).nonzero()[0]
    if len(tight):
        columns = zip(needs[:, asked].T, some[:, tight], strict=True)
        counts = [need.searchsorted(have) for need, have in columns]
        found[tight] = np.maximum(np.minimum.reduce(counts), 1)
    return np.where((room >= needs[0][:, None]).all(axis=0), found, 0)


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


@dataclass(kw_only=True)
class TaskTopology(Plugin, name="task-topology"):
    """Order tasks by bucket and prefer the node that can take most of a task's bucket."""

    simulator = SimulatorAssumptions(bounded=True)
    weight: int = arg("task-topology.weight", default=1, doc="weight of this plugin's score")

    def on_open(self, ssn: PluginSession) -> None:
        """Build the buckets of jobs that wait for nodes and state preferences."""
        self._journal = ssn.journal
        self._snapshot = ssn.snapshot
        self._alike: AlikeNodes | None = None
        self._jobs: dict[int, JobTopology] = {}
        for row in ssn.jobs():
            job = ssn.job(row)
            wishes = _read_wishes(job) if job.counts[Status.PENDING] else None
            if wishes is not None:
                self._jobs[row] = JobTopology(job, wishes)
        self.ordered_jobs = frozenset(self._jobs)
        # the order of tasks in a single bucket stays the same
        several = (row for row, topology in self._jobs.items() if len(topology.buckets) > 1)
        self.moving_jobs = frozenset(several)

    def order_tasks(self, tasks: Tasks) -> Column:
        """Put tasks in buckets first, and inside a job those of big buckets."""
        keys = np.zeros((2, len(tasks)))
        for i, (row, job) in enumerate(zip(tasks.rows.tolist(), tasks.job.tolist(), strict=True)):
            topology = self._jobs.get(job)
            if topology is not None:
                keys[:, i] = row not in topology.bucket_of, topology.key(row)
        return keys

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Count members of the bucket that are, or could be, on each node."""
        topology = self._jobs.get(task.job)
        bucket = None if topology is None else topology.bucket_of.get(task.row)
        if topology is None or bucket is None or task.row not in bucket:
            return None
        if self._alike is None:
            self._alike = AlikeNodes(self._snapshot)
        alike = self._alike.speakers()
        members = bucket.fitting(task, alike)
        best = self.weight * float(_MAX_SCORE)
        score = (members * best / topology.largest).take(alike.group)
        for row, count in topology.near(task, bucket).items():
            group = alike.group[row]
            if members[group]:
                score[row] = (int(members[group]) + count) * best / topology.largest
        return score[nodes.rows]

    def on_place(self, task: Task, node: int) -> None:
        """Remove the task from the waiting tasks of its bucket."""
        self._move(task, node, 1)

    def on_evict(self, task: Task, node: int) -> None:
        """Make a task that was pipelined wait again; one that is leaving still counts."""
        if task.status is Status.PENDING:
            self._move(task, node, -1)

    def _move(self, task: Task, node: int, sign: int) -> None:
        topology = self._jobs.get(task.job)
        if topology is not None:
            topology.move(task, node, sign)
            self._journal.on_rollback(self._take_back, topology, task, node, -sign)

    def _take_back(self, topology: JobTopology, task: Task, node: int, sign: int) -> None:
        if not self._journal.is_ending:  # else nobody reads the buckets again
            topology.move(task, node, sign)


def _marked_role(task: Task) -> str:
    """Return the role in a pod's annotation: elsewhere a label names one as well, here it does not.

    Volcano: a label only makes a role known, so that preferences may name it.
    """
    role: str = task.pod.metadata.annotations.get(TASK_SPEC, "")
    return role


def _load(request: Column) -> float:
    """Add up a request: milli-units of cpu and scalars and mebibytes weigh the same."""
    return float(request.sum() - request[MEMORY] + request[MEMORY] / _MEBI)


def _read_wishes(job: Job) -> Wishes | None:
    """Read a group's annotations; an unknown or repeated role makes all of them invalid."""
    marks = job.group.metadata.annotations
    if not {AFFINITY, ANTI_AFFINITY, TASK_ORDER} & marks.keys():
        return None
    roles = {Task(job.snapshot, row).role for row in job.tasks}
    together = _groups(marks.get(AFFINITY))
    apart = _groups(marks.get(ANTI_AFFINITY))
    order = _groups(marks.get(TASK_ORDER), separator=None)
    if not all(_is_sound(group, roles) for group in (*together, *apart, *order)):
        return None
    wishes = Wishes()
    for group in together:
        wishes.add(group, wishes.together, SELF_TOGETHER, TOGETHER)
    for group in apart:
        wishes.add(group, wishes.apart, SELF_APART, APART)
    for group in order:
        wishes.order = {role: len(group) - i for i, role in enumerate(group)}
    return wishes


def _groups(text: str | None, separator: str | None = ";") -> list[list[str]]:
    if text is None:
        return []
    return [part.split(",") for part in ([text] if separator is None else text.split(separator))]


def _is_sound(group: Iterable[str], roles: set[str]) -> bool:
    named = [role for role in group if role]
    return len(named) == len(set(named)) and roles.issuperset(named)
