"""Runs of equal tasks: place a whole gang with a few questions instead of a few for each task.

Hooks treat rows independently, so they can be asked about rows that do not exist yet: a node with
one, two, three more of the task on it.  The picks are those of task-by-task placement, bit for bit;
where that cannot be promised (terms between pods, ports, plugins that follow placements) no run is
made.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, Mask
from pumice.core.shapes import Shape
from pumice.core.snapshot import Snapshot
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.imagined_rows import ImaginedNodes, Load
from pumice.framework.placing import Fit, Placing
from pumice.framework.refusals import Verdict
from pumice.framework.session_state import SessionState

SHORTEST = 4
"""Shorter runs cost more than they save."""

_FEW = 4
"""Equals for each task still to place, up to which all of them are asked about at once."""
_DEEPEST = 64
"""Copies on one node to ask about at once."""


class Run:
    """Picks nodes for equal tasks one after the other, on imagined rows.

    ``_ahead[node]`` holds the node's values with one, two, … more copies on it, as far as they were
    asked for; questions about many nodes and several copies go out together.
    """

    def __init__(self, placing: Placing, task: Task, fit: Fit, allowed: Mask | None) -> None:
        self._placing = placing
        self._task = task
        self._fit = fit
        self._value = fit.value.copy() if allowed is None else np.where(allowed, fit.value, -np.inf)
        self._copies: dict[int, int] = {}
        self._ahead: dict[int, list[float]] = {}
        self._drops = True
        """Whether the node drawn last became worse than its equals."""

    def pick(self, n: int) -> list[int]:
        """Return nodes for up to n tasks; fewer if room runs out."""
        picks: list[int] = []
        value = self._value
        while len(picks) < n:
            best = value.max()
            if best == -np.inf:
                break
            ties = np.flatnonzero(value == best).tolist()
            if len(ties) == 1:
                self._fill(ties[0], n, picks)
            else:
                self._draw(ties, float(best), n, picks)
        return picks

    def _draw(self, ties: list[int], best: float, n: int, picks: list[int]) -> None:
        """Draw among equals until one is left or one becomes better than all."""
        spin = self._placing.spin
        while len(ties) > 1 and len(picks) < n:
            at = spin(len(ties))
            node = ties[at]
            if not self._knows(node):
                self._look_ahead([node, *self._likely(ties, at, n - len(picks) - 1)])
            after = self._add(node)
            picks.append(node)
            self._drops = after < best
            if self._drops:
                del ties[at]
            elif after > best:
                return

    def _likely(self, ties: list[int], at: int, n: int) -> list[int]:
        """Foresee the next draws, if nodes keep dropping out, or staying, as the last one did."""
        if len(ties) <= _FEW * n:
            return ties
        placing, state = self._placing, self._placing.state
        left = [*ties[:at], *ties[at + 1 :]] if self._drops else ties
        foreseen: dict[int, None] = {}
        for _ in range(min(n, len(left) - 1)):
            drawn = placing.spin(len(left))
            foreseen[left[drawn]] = None
            if self._drops:
                del left[drawn]
        placing.state = state
        foreseen.pop(ties[at], None)
        return list(foreseen)

    def _fill(self, node: int, n: int, picks: list[int]) -> None:
        """Fill the only best node while it stays the only best."""
        value = self._value
        value[node] = -np.inf
        second = value.max()
        while len(picks) < n:
            picks.append(node)
            if not self._knows(node):
                self._look_ahead([node])
            if self._add(node) <= second:
                return

    def _knows(self, node: int) -> bool:
        return len(self._ahead.get(node, ())) > self._copies.get(node, 0)

    def _add(self, node: int) -> float:
        """Put one more copy on a node and return its value after that."""
        copies = self._copies.get(node, 0)
        self._copies[node] = copies + 1
        after = self._ahead[node][copies]
        self._value[node] = after
        return after

    def _look_ahead(self, nodes: list[int]) -> None:
        """Ask about the next copies on those of the nodes that have used theirs up.

        One copy at first, then as many as are known already, so that a node that keeps winning is
        asked about a few times only.
        """
        ahead = self._ahead
        short = [i for i in dict.fromkeys(nodes) if not self._knows(i)]
        known = np.array([len(ahead.get(i, ())) for i in short])
        depth = np.clip(known, 1, _DEEPEST)
        rows = np.repeat(np.asarray(short, dtype=np.intp), depth)
        ends = depth.cumsum()
        level = np.arange(ends[-1]) - np.repeat(ends - depth, depth)
        values = self._values(rows, (np.repeat(known, depth) + level + 1.0)).tolist()
        for node, end, n in zip(short, ends.tolist(), depth.tolist(), strict=True):
            ahead.setdefault(node, []).extend(values[end - n : end])

    def _values(self, rows: NDArray[np.intp], copies: Column) -> Column:
        load = Load.of_copies(self._task.shape, copies)
        nodes = ImaginedNodes(self._placing.snapshot, rows, load)
        return self._placing.answers(self._fit, self._task, nodes, rows).value


def pick_run(placing: Placing, task: Task, n: int, allowed: Mask | None) -> list[int]:
    """Pick nodes with room now for n equal tasks, as ``choose`` would one after the other."""
    fit = placing.fit(task)
    return [] if placing.ranks(task, fit) else Run(placing, task, fit, allowed).pick(n)


def equal_run(
    state: SessionState,
    tasks: list[int],
    is_done: Callable[[], Verdict],
    most: Callable[[], int] | None = None,
) -> int:
    """Return how many of the first tasks can be placed as one run; 0 if they cannot.

    Ends where the job is complete and where its queue would refuse the next one; both are asked
    about sums that do not exist yet, because holding more never makes a queue allow more
    nor a job less ready.
    """
    rows = np.asarray(tasks, dtype=np.intp)
    table = state.snapshot.tasks
    same = (table.shape[rows] == table.shape[rows[0]]) & (table.role[rows] == table.role[rows[0]])
    same &= (table.nominated[rows] == NOWHERE) & ~table.gated[rows]
    n = len(rows) if same.all() else int(np.argmin(same))
    if most is not None:
        n = min(n, most())
    elif state.topology.has_policy(int(table.job[rows[0]])):
        return 0
    if n < SHORTEST or not is_plain(state, tasks[0]):
        return 0
    task = Task(state.snapshot, tasks[0])
    n = _alike(state, tasks[:n])

    def accepted(k: int) -> Verdict:
        with _imagine(state.snapshot, task, k - 1):
            return state.policy.allocatable(task.queue, task)

    def unfinished(k: int) -> bool:
        with _imagine(state.snapshot, task, k):
            return not is_done()

    n = longest(n, accepted)
    n = min(n, longest(n, unfinished) + 1)
    return n if n >= SHORTEST else 0


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
    if not state.policy.by_row:
        return False
    snapshot = state.snapshot
    group = snapshot.jobs.groups[snapshot.tasks.job[row]].spec
    if group.min_task_member:
        return False
    return has_plain_shape(snapshot.shapes[snapshot.tasks.shape[row]])


def has_plain_shape(shape: Shape) -> bool:
    """Return whether a shape has no terms about other pods, host ports, claims and devices."""
    plain = shape.memo.get("plain")
    if plain is None:
        spec = shape.spec
        ports = any(p.host_port for c in (*spec.containers, *spec.init_containers) for p in c.ports)
        claims = any(v.persistent_volume_claim or v.ephemeral for v in spec.volumes)
        claims = claims or spec.resource_claims
        special = spec.affinity or spec.topology_spread_constraints or claims or ports
        plain = shape.memo["plain"] = not special
    return bool(plain)


@contextmanager
def _imagine(snapshot: Snapshot, task: Task, n: int) -> Iterator[None]:
    """Pretend that n more tasks like this one are placed, in counts and sums only."""
    if n:
        snapshot.count_ahead(task.row, n)
    try:
        yield
    finally:
        if n:
            snapshot.count_ahead(task.row, -n)


def longest(n: int, holds: Callable[[int], Verdict]) -> int:
    """Return the largest k up to n for which ``holds(k)``, which turns false once and for all."""
    if n <= 0 or not holds(1):
        return 0
    if holds(n):
        return n
    low, high = 1, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
