"""Records of every decision: where a job stopped, why, and the numbers compared.

Messages are rendered from records; nothing is decided from them.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.api.codes import Cause
from pumice.core.resources import PODS, STEP, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task
from pumice.framework.refusals import Refusal, Vote, Why

A = TypeVar("A")


class Stage(Enum):
    """How far a job got in this cycle."""

    VALIDATE = "validate"
    ENQUEUE = "enqueue"
    QUEUE = "queue"
    QUOTA = "quota"
    NODES = "nodes"
    GANG = "gang"
    EVICTION = "eviction"
    DONE = "done"


class Record(msgspec.Struct):
    """One job in one cycle."""

    stage: Stage
    why: Why
    numbers: dict[str, Any] = msgspec.field(default_factory=dict)
    code: Cause | None = None
    """The cause that a plugin gave; None where stage and reason imply it."""


class NoNode(msgspec.Struct):
    """Why no node takes a task; shared by equal tasks until a node moves."""

    nodes: dict[str, int]
    """Nodes by reason."""
    barred: Mask | None = None
    """Those that no eviction could open (n,)."""
    short: Mask | None = None
    """Those that would fit if they had more left (n,)."""
    amounts: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    """What is needed, and the most that is idle on nodes that lack it; filled in by records."""


def of_marked(
    found: dict[int, A], marked: Mask, owners: NDArray[np.int32] | None = None
) -> dict[int, A]:
    """Return what is known of marked jobs (n,); with ``owners`` keys are tasks, else jobs.

    Most are marked: a copy, less the others, takes a tenth of the time of picking one by one.
    """
    rows = np.fromiter(found, dtype=np.intp, count=len(found))
    kept = found.copy()
    for row in rows[~marked[rows if owners is None else owners[rows]]].tolist():
        del kept[row]
    return kept


class Place(NamedTuple):
    """The node of a task, and whether the task was only pipelined to it."""

    node: int
    pipelined: bool


class Records:
    """Records by job row; the last one of a cycle counts."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.by_job: dict[int, Record] = {}
        self.no_fit: dict[int, dict[str, int]] = {}
        """Task row to nodes by reason, of the last attempt that found no node."""
        self.barred: dict[int, Mask | None] = {}
        """Task row to the mask of nodes that no eviction could open, of that attempt."""
        self.given_up: dict[int, Place] = {}
        """Tasks that last had a node, but lost it because their gang was not complete."""
        self.turns: dict[int, int] = {}
        """Job row to its place in the order in which jobs were first taken to be placed."""
        self.stops: dict[int, dict[Stage, Record]] = {}
        """Job row to the last refusal of each stage; absent for jobs without refusals."""
        self.compare: Callable[[Task], Mapping[str, Any]] = lambda _: {}
        """Returns the numbers that plugins compared for a task that found no node."""
        self.watched: frozenset[int] = frozenset()
        """Jobs (rows) that are tried although they were refused before, to explain why."""

    def take_over(self, last: "Records", marked: Mask) -> None:
        """Take the records of marked jobs (n,) from those of the last session, which are over."""
        owners = self._snapshot.tasks.job
        self.by_job |= of_marked(last.by_job, marked)
        self.stops |= of_marked(last.stops, marked)
        self.no_fit |= of_marked(last.no_fit, marked, owners)
        self.barred |= of_marked(last.barred, marked, owners)

    def forget(self, job: int) -> None:
        """Remove the records of a job that is to be tried again."""
        self.by_job.pop(job, None)
        self.stops.pop(job, None)
        for row in self._snapshot.jobs.tasks[job]:
            self.no_fit.pop(row, None)
            self.barred.pop(row, None)

    def schedulable(self, rows: Iterable[int]) -> list[int]:
        """Return those of some tasks that had room on a node, and lost it with their gang."""
        lost = self.given_up
        return [row for row in rows if row in lost and not lost[row].pipelined] if lost else []

    def found_again(self, rows: Iterable[int]) -> None:
        """Record that tasks have a node for good."""
        for row in rows if self.given_up else ():
            self.given_up.pop(row, None)

    def no_node(self, task: Task, why: NoNode) -> None:
        """Record that a task found no node."""
        self.no_fit[task.row] = why.nodes
        self.barred[task.row] = why.barred
        why.amounts = why.amounts or self._amounts(task, why.short)
        numbers: dict[str, Any] = {**why.amounts, **self.compare(task)}
        found = {"task": task.key, "nodes": why.nodes, **numbers}
        self.note(task.job, Stage.NODES, Why.NO_NODE_FITS, **found)

    def _amounts(self, task: Task, short: Mask | None) -> dict[str, dict[str, float]]:
        """Return what a task needs, and the most that is idle on short nodes that lack it."""
        names, request = self._snapshot.resources.names, task.request[:, 0]
        asked = [row for row in np.flatnonzero(request).tolist() if row != PODS]
        need = {names[row]: float(request[row]) for row in asked}
        idle: dict[str, float] = {}
        for row in asked if short is not None else ():
            column = self._snapshot.nodes.idle[row]
            tight = short & (request[row] - column >= STEP)
            if tight.any():
                idle[names[row]] = float(column[tight].max())
        return {"need": need, "idle": idle}

    def note_refused(self, job: int, stage: Stage, no: Vote, why: Why, **numbers: Any) -> None:
        """Record a refusal; the reason of a plugin takes precedence."""
        if isinstance(no, Refusal):
            why, numbers = no.why, {**numbers, **no.numbers}
        self.note(job, stage, why, **numbers)
        if isinstance(no, Refusal):
            self.by_job[job].code = no.code

    def note_eviction(self, job: int, victims: list[str]) -> None:
        """Record that a job waits for pods to leave, and which of them leave for it."""
        self.note(job, Stage.EVICTION, Why.WAITING_FOR_EVICTION, victims=victims)

    def take_turn(self, job: int) -> None:
        """Record that a job is taken to be placed; its first turn counts."""
        self.turns.setdefault(job, len(self.turns))

    def note(self, job: int, stage: Stage, why: Why, **numbers: Any) -> None:
        """Record the state of a job."""
        record = self.by_job[job] = Record(stage, why, numbers)
        if stage is not Stage.DONE:
            self.stops.setdefault(job, {})[stage] = record
