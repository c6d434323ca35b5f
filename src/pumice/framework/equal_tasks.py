"""Runs of equal tasks: place a whole gang with a few questions instead of a few for each task.

Hooks treat rows independently, so they can be asked about rows that do not exist yet: a node with
one, two, three more of the task on it.  The picks are those of task-by-task placement, bit for bit;
where that cannot be promised (terms between pods, ports, plugins that follow placements) no run is
made.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from pumice.api.pods import PodSpec
from pumice.core.resources import IndexArray, Mask
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.status import Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.equal_runs import Run
from pumice.framework.placing import Placing
from pumice.framework.refusals import Verdict
from pumice.framework.session_state import SessionState

SHORTEST = 4
"""Shorter runs cost more than they save."""


def pick_run(placing: Placing, task: Task, n: int, allowed: Mask | None) -> list[int]:
    """Pick nodes with room now for n equal tasks, as ``choose`` would one after the other."""
    fit = placing.fit(task)
    return [] if placing.ranks(task, fit) else Run(placing, task, fit, allowed).pick(n)


def equal_run(
    state: SessionState,
    tasks: list[int],
    is_done: Callable[[], Verdict],
    most: Callable[[], int] | None = None,
    *,
    any_role: bool = False,
) -> int:
    """Return how many of the first tasks, of ``SHORTEST`` at least, can be placed as one run.

    0 if they cannot; only those of one role, unless ``any_role`` will do.  A run ends where the job
    is complete and where its queue would refuse the next one; both are asked about sums that do
    not exist yet, because holding more never makes a queue allow more nor a job less ready.
    """
    table, first = state.snapshot.tasks, tasks[0]
    if table.shape[tasks[SHORTEST - 1]] != table.shape[first]:
        return 0
    if not state.policy.by_row_ahead or not state.policy.imaginable:
        return 0
    task = Task(state.snapshot, first)
    fit = state.placing.fit(task)
    if fit.no_node is not None or not fit.has_room:
        return 0  # no node has room now
    rows = np.asarray(tasks, dtype=np.intp)
    n = _equal_heads(state.snapshot, rows, any_role=any_role)
    if most is not None:
        n = min(n, most())
    elif state.topology.has_policy(task.job):
        return 0
    if n < SHORTEST:
        return 0
    n = _alike(state, tasks[:n])

    def accepted(k: int) -> Verdict:
        with Imagined(state.snapshot, task, k - 1):
            return state.policy.allocatable(task.queue, task)

    def unfinished(k: int) -> bool:
        with Imagined(state.snapshot, task, k), _relabelled(state.snapshot, rows[:k]):
            return not is_done()

    n = longest(n, accepted)
    n = longest(n - 1, unfinished) + 1
    return n if n >= SHORTEST else 0


def _equal_heads(snapshot: Snapshot, rows: IndexArray, *, any_role: bool) -> int:
    """Return how many of the first tasks have the shape and role of the first, and may be placed.

    A task with a nominated node or a closed gate is placed by itself.
    """
    table, first = snapshot.tasks, rows[0]
    same = table.shape[rows] == table.shape[first]
    if not any_role:
        same &= table.role[rows] == table.role[first]
    same &= (table.nominated[rows] == NOWHERE) & ~table.gated[rows]
    return len(rows) if same.all() else int(np.argmin(same))


def _alike(state: SessionState, tasks: list[int]) -> int:
    """Return how many of the first tasks get the same answers as the first one."""
    for vary_by in state.placing.varying:
        first = vary_by(Task(state.snapshot, tasks[0]))
        for i in range(1, len(tasks)):
            if vary_by(Task(state.snapshot, tasks[i])) != first:
                tasks = tasks[:i]
                break
    return len(tasks)


def is_plain(state: SessionState, row: int) -> bool:
    """Return whether a task's answers follow from node rows alone, also while copies are placed."""
    snapshot = state.snapshot
    shape = snapshot.shapes[snapshot.tasks.shape[row]]
    group = snapshot.jobs.groups[snapshot.tasks.job[row]].spec
    return state.policy.by_row and not group.min_task_member and has_plain_shape(shape)


def has_plain_shape(shape: Shape) -> bool:
    """Return whether a shape has no terms about other pods, host ports, claims and devices."""
    plain = shape.memo.get("plain")
    if plain is None:
        spec = shape.spec
        claims = any(v.persistent_volume_claim or v.ephemeral for v in spec.volumes)
        claims = claims or spec.resource_claims
        special = (
            spec.affinity or spec.topology_spread_constraints or claims or has_host_ports(spec)
        )
        plain = shape.memo["plain"] = not special
    return bool(plain)


def has_host_ports(spec: PodSpec) -> bool:
    """Return whether a container wants a port of its node."""
    containers = (*spec.containers, *spec.init_containers)
    return any(port.host_port for container in containers for port in container.ports)


class Imagined:
    """A context in which n more tasks like a given one are placed, in counts and sums only.

    A class, because each run asks in it: a generator takes three times as long.
    """

    __slots__ = ("_n", "_pipelined", "_row", "_snapshot")

    def __init__(self, snapshot: Snapshot, task: Task, n: int, *, pipelined: bool = False) -> None:
        self._snapshot = snapshot
        self._row = task.row
        self._n = n
        self._pipelined = pipelined

    def __enter__(self) -> None:
        if self._n:
            self._snapshot.count_ahead(self._row, self._n, pipelined=self._pipelined)

    def __exit__(self, *_: object) -> None:
        if self._n:
            self._snapshot.count_ahead(self._row, -self._n, pipelined=self._pipelined)


@contextmanager
def placed_ahead(snapshot: Snapshot, tasks: list[int]) -> Iterator[None]:
    """Pretend that these pending tasks of one job are placed, in counts, sums and statuses."""
    by_shape: dict[int, list[int]] = {}
    for row in tasks:
        by_shape.setdefault(int(snapshot.tasks.shape[row]), []).append(row)
    with ExitStack() as stack:
        for rows in by_shape.values():
            stack.enter_context(Imagined(snapshot, Task(snapshot, rows[0]), len(rows)))
        stack.enter_context(_relabelled(snapshot, np.array(tasks, dtype=np.intp)))
        yield


@contextmanager
def _relabelled(snapshot: Snapshot, rows: IndexArray) -> Iterator[None]:
    """Pretend that these pending tasks are placed: minimum numbers of roles go by status."""
    status = snapshot.tasks.status
    status[rows] = Status.ALLOCATED
    try:
        yield
    finally:
        status[rows] = Status.PENDING


def longest(n: int, holds: Callable[[int], Verdict]) -> int:
    """Return the largest k up to n for which ``holds(k)``, which turns false once and for all."""
    if n <= 0:
        return 0
    if holds(n):
        return n
    if n == 1 or not holds(1):
        return 0
    low, high = 1, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
