"""Refusals of plugins, and records of where each job stopped, why, and the numbers compared.

Messages are rendered from records; nothing is decided from them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pumice.api.codes import Cause
from pumice.api.decisions import Short
from pumice.core.resources import PODS, STEP, Column, Mask, holds_any
from pumice.core.snapshot import Snapshot
from pumice.core.views import Task

PERMIT, ABSTAIN, REJECT = 1, 0, -1
"""Votes."""


@dataclass(frozen=True)
class Reason:
    """Why a node does not fit, and whether evicting pods could change that."""

    text: str
    curable: bool = True
    code: Cause = Cause.PLUGIN_REFUSED
    """Its cause, where a job waits for it."""
    lasting: bool = True
    """Whether actions leave a node out, unasked, for a task that allocate saw refused by it; of
    reasons that are not curable. An error counts for the action that met it alone."""
    vetoes: bool = False
    """Whether the task cannot be placed at all while it holds, also by actions that evict without
    asking filters afterwards: what the task needs could not be assigned to it."""


class Why(Enum):
    """The closed list of reasons, in the order of the stages."""

    NOT_VALID = "not valid"
    PLUGIN_FAILED = "a plugin failed"
    NOT_ENQUEUED = "not enqueued"
    NOT_TAKEN = "no action places its pods"
    QUEUE_OVERUSED = "queue has its share"
    QUEUE_CLOSED = "queue is not open"
    QUEUE_MISPLACED = "queue has no valid place in the tree"
    QUEUE_POSITION = "jobs before it take the room"
    WOULD_DELAY = "would delay a job that is promised a start"
    OVER_QUOTA = "over quota"
    NO_NODE_FITS = "no node fits"
    NO_DOMAIN_FITS = "no network domain fits"
    GANG_SHORT = "not ready with what was placed"
    WAITING_FOR_EVICTION = "waiting for evicted pods to leave"
    SCHEDULED = "scheduled"


_NEEDED: Final[Mapping[Why, frozenset[str]]] = {
    Why.NOT_VALID: frozenset({"problem"}),
    Why.PLUGIN_FAILED: frozenset({"problem"}),
    Why.QUEUE_MISPLACED: frozenset({"problem"}),
    Why.WOULD_DELAY: frozenset({"delayed", "start", "by_s"}),
    Why.NO_NODE_FITS: frozenset({"task", "nodes", "need", "idle"}),
    Why.NO_DOMAIN_FITS: frozenset({"limit", "large", "total"}),
    Why.GANG_SHORT: frozenset({"placed", "needed"}),
    Why.WAITING_FOR_EVICTION: frozenset({"victims"}),
}
"""The numbers that the message of a reason needs."""
_COMPARED: Final = frozenset({"at", "used", "request", "limit"})


@dataclass(frozen=True)
class Refusal:
    """A no with its reason: false where a hook answers yes or no, a reject where it votes.

    ``numbers`` are those that were compared; ``queue`` among them is a row.
    """

    why: Why
    numbers: Mapping[str, Any] = field(default_factory=dict)
    code: Cause = Cause.PLUGIN_REFUSED
    """Its cause, where a job waits for it."""

    def __post_init__(self) -> None:
        """Refuse a refusal that could not be explained.

        Raises:
            ValueError: A number is missing.
        """
        needed = _COMPARED if "resource" in self.numbers else _NEEDED.get(self.why, frozenset())
        missing = needed - self.numbers.keys()
        if missing:
            raise ValueError(f"a refusal for '{self.why.value}' needs {', '.join(sorted(missing))}")

    def __bool__(self) -> bool:
        return False


Verdict = bool | Refusal
"""Yes, or no with or without a reason."""
Vote = int | Refusal
"""PERMIT, ABSTAIN or REJECT; a refusal is a reject with a reason."""


@dataclass(frozen=True)
class Failed:
    """A plugin that failed in a hook; ``reasons`` are those that the plugin states."""

    plugin: str
    hook: str
    reasons: Sequence[Reason] = ()

    @property
    def text(self) -> str:
        """The message to the objects for which it failed."""
        return f"plugin {self.plugin} failed in {self.hook}"

    @property
    def reason(self) -> Reason:
        """The same as a reason against nodes, which no eviction cures."""
        return Reason(self.text, curable=False, code=Cause.PLUGIN_FAILED)

    @property
    def refusal(self) -> Refusal:
        """The same as a no with its reason."""
        return Refusal(Why.PLUGIN_FAILED, {"problem": self.text}, Cause.PLUGIN_FAILED)


def queue_closed(queue: int) -> Refusal:
    """Refuse any request to a queue (row): it is not open."""
    return Refusal(Why.QUEUE_CLOSED, {"queue": queue}, Cause.QUEUE_CLOSED)


def over_quota(
    short: Sequence[Short], *, queue: int, at: str, code: Cause = Cause.PLUGIN_REFUSED
) -> Refusal:
    """Refuse a request for the resources that are short; ``at`` names the owner of the limit.

    That is a queue, a resource quota or the cluster.  The first resource is among the numbers
    itself, others under ``more``.
    """
    first, *more = (each.numbers() for each in short)
    numbers = {"queue": queue, "at": at, **first}
    return Refusal(Why.OVER_QUOTA, {**numbers, "more": more} if more else numbers, code)


def within_quota(
    names: Sequence[str],
    used: Column,
    request: Column,
    limit: Column,
    *,
    queue: int,
    at: str,
    code: Cause = Cause.PLUGIN_REFUSED,
) -> Verdict:
    """Allow a request (R,) that fits beside the used amounts, in all it names except ``pods``.

    Compared strictly as floats; the refusal lists every resource that is exceeded.
    """
    over = (used + request > limit) & (request > 0)
    over[PODS] = False
    if not holds_any(over):
        return True
    short = [
        Short(names[row], float(used[row]), float(request[row]), float(limit[row]))
        for row in np.flatnonzero(over).tolist()
    ]
    return over_quota(short, queue=queue, at=at, code=code)


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
        self.given_up |= of_marked(last.given_up, marked, owners)

    def forget(self, job: int) -> None:
        """Remove the records of a job that is to be tried again."""
        self.by_job.pop(job, None)
        self.stops.pop(job, None)
        for row in self._snapshot.jobs.tasks[job]:
            self.no_fit.pop(row, None)
            self.barred.pop(row, None)
            self.given_up.pop(row, None)

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
