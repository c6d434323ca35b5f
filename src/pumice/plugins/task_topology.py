"""task-topology: put tasks of a job together or apart, by annotations of its pod group."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import TASK_SPEC
from pumice.core.resources import MEMORY, STEP, Column
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.views import Job, Nodes, Task
from pumice.framework.alike_nodes import AlikeNodes
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


@dataclass
class Bucket:
    """Tasks of a job that should share a node."""

    index: int
    waiting: dict[int, Column] = field(default_factory=dict)
    """Members without a node, with their requests (R,)."""
    on_node: dict[int, int] = field(default_factory=dict)
    roles: dict[str, int] = field(default_factory=dict)
    loads: dict[int, float] = field(default_factory=dict)
    """The total request of members without a node at session open."""
    load: float = 0.0

    def dropped(self, task: int, room: Column) -> NDArray[np.int64]:
        """Count members that must stay out so that the rest fits beside a task (n,).

        The biggest members are left out first; in Volcano the order is random.
        """
        others = sorted(
            (t for t in self.waiting if t != task), key=self.loads.__getitem__, reverse=True
        )
        rest = [np.zeros(len(room)), *(self.waiting[other] for other in reversed(others))]
        left = self.waiting[task] + np.array(rest).cumsum(axis=0)
        # (m + 1, R): with 0, 1, … m others
        dropped = np.zeros(room.shape[1], dtype=np.int64)
        tight = np.flatnonzero((room + STEP <= left[-1][:, None]).any(axis=0))
        if not len(tight):
            return dropped
        fewest = np.full(len(tight), len(others))
        for need, have in zip(left.T, room[:, tight], strict=True):
            fewest = np.minimum(fewest, np.searchsorted(need, have + STEP, side="left") - 1)
        dropped[tight] = len(others) - np.maximum(fewest, 0)
        return dropped


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
        sizes = [len(b.waiting) + sum(b.on_node.values()) for b in self.buckets]
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
            request = task.request[:, 0]
            bucket.waiting[task.row] = request
            bucket.loads[task.row] = _load(request)
            bucket.load += bucket.loads[task.row]

    def key(self, task: int) -> float:
        """Rank a task in its job: bigger buckets first; those outside all buckets are equal."""
        bucket = self.bucket_of.get(task)
        if bucket is None:
            return 0.0
        n_grades = len(self._grades)
        per_size = n_grades * len(self.buckets)
        return bucket.index * n_grades + self._grades[task] - len(bucket.waiting) * float(per_size)

    def near(self, task: Task, bucket: Bucket) -> Iterable[tuple[int, int]]:
        """Return nodes with tasks of the job, and how much a task of a bucket wants to join them.

        A node may occur twice: most nodes do not occur at all.
        """
        yield from bucket.on_node.items()
        if self.wishes.apart:
            role = _marked_role(task)
            for row, roles in self.roles_on_node.items():
                yield row, min(0, self.wishes.weigh(role, roles, apart_only=True))

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
            bucket.waiting.pop(task.row, None)
        else:
            bucket.waiting[task.row] = task.request[:, 0]
            bucket.loads.setdefault(task.row, _load(task.request[:, 0]))


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
        if topology is None or bucket is None or task.row not in bucket.waiting:
            return None
        if self._alike is None:
            self._alike = AlikeNodes(self._snapshot)
        asked, group = self._alike.groups()
        kinds = Nodes(self._snapshot, asked)
        room = kinds.idle + kinds.releasing
        fits = np.asarray((room >= task.request).all(axis=0))
        score = np.where(fits, len(bucket.waiting) - bucket.dropped(task.row, room), 0).take(group)
        for row, count in topology.near(task, bucket):
            if fits[group[row]]:
                score[row] += count
        return np.asarray(score[nodes.rows] * (self.weight * float(_MAX_SCORE)) / topology.largest)

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
            self._journal.on_rollback(lambda: topology.move(task, node, -sign))


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
