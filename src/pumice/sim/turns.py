"""The order and the limits of a cycle without a session: whom queues admit, and whose turn it is.

Amounts are compared as plugins compare them, on plain numbers.
"""

from collections.abc import Iterable, Sequence

from pumice.core.resources import STEP
from pumice.framework.queue_limits.limits import ClusterLimit
from pumice.framework.queue_limits.weighted import WeightedLimits
from pumice.sim.bounds import Bounds
from pumice.sim.job_run import JobRun

QueueKey = tuple[float | str, ...]
"""Keys of the policy, age and name of a queue; the least goes first."""


def _by_queue(runs: Iterable[JobRun]) -> dict[str, list[JobRun]]:
    found: dict[str, list[JobRun]] = {}
    for run in runs:
        found.setdefault(run.kind.queue, []).append(run)
    return found


def _queue_key(bounds: Bounds, queue: str, held: list[float] | None = None) -> QueueKey:
    """Return the place of a queue in their order, at present or with what it will hold."""
    queues, limits = bounds.snapshot.queues, bounds.limits
    row = queues.row_of[queue]
    policy: tuple[float, ...] = ()
    if bounds.by_share and isinstance(limits, WeightedLimits):
        amounts = bounds.held(row) if held is None else held
        policy = limits.key_of(row, amounts, bounds.deserved(limits, row))
    return *policy, float(queues.created[row]), queue


class Admission:
    """Admits jobs in the order of queues, as long as all limits on reservations are kept."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._taken: dict[tuple[str, int], float] = {}
        """Reserved by the jobs admitted so far, by queue ("" for all of them) and resource."""
        self._used_and_limits: dict[str, list[tuple[str, list[float], list[float]]]] = {}

    def admit(self, runs: Sequence[JobRun]) -> list[JobRun]:
        """Return those of some jobs, oldest first, that are admitted."""
        if len(runs) == 1:
            return [*runs] if self._admits(runs[0]) else []
        by_queue = _by_queue(runs)
        order = [*by_queue]
        if len(order) > 1 and not self._has_clear_room(runs, order):
            order.sort(key=lambda queue: _queue_key(self._bounds, queue))
        return [run for queue in order for run in by_queue[queue] if self._admits(run)]

    def _has_clear_room(self, runs: Sequence[JobRun], queues: Iterable[str]) -> bool:
        """Return whether all jobs are admitted in any order."""
        needed: dict[int, float] = {}
        for run in runs:
            for at, amount in run.kind.reserved_amounts:
                needed[at] = needed.get(at, 0.0) + amount
        rooms = [self._bounds.clear_room(queue) for queue in queues]
        return all(room[at] >= amount for room in rooms for at, amount in needed.items())

    def _admits(self, run: JobRun) -> bool:
        kind, taken, get = run.kind, self._taken, self._taken.get
        room = self._bounds.clear_room(kind.queue)
        if any(room[at] - get(("", at), 0.0) < amount for at, amount in kind.reserved_amounts):
            for name, used, limit in self._limits_of(kind.queue):
                for at, amount in kind.reserved_amounts:
                    if used[at] + get((name, at), 0.0) + amount > limit[at]:
                        return False
        for name in ("", kind.queue):
            for at, amount in kind.reserved_amounts:
                taken[name, at] = get((name, at), 0.0) + amount
        return True

    def _limits_of(self, queue: str) -> list[tuple[str, list[float], list[float]]]:
        """List limits with what counts against them: whose reservations, used, limit."""
        known = self._used_and_limits.get(queue)
        if known is None:
            row, known = self._bounds.snapshot.queues.row_of[queue], []
            for limit in self._bounds.admission_limits:
                if isinstance(limit, ClusterLimit):
                    idle, reserved = self._bounds.idle_and_reserved(limit)
                    known.append(("", reserved, idle))
                elif isinstance(limit, WeightedLimits):
                    most = limit.real_capability[:, row].tolist()
                    known.append((queue, self._bounds.committed(limit, row), most))
            self._used_and_limits[queue] = known
        return known


class Turns:
    """Whose turn it is to be placed: the best queue, its oldest job, and how much it may take."""

    def __init__(self, bounds: Bounds, runs: Sequence[JobRun]) -> None:
        self._bounds = bounds
        self._waiting = _by_queue(runs)
        self._keys: dict[str, QueueKey] = {}
        self._deserved: dict[str, list[float]] = {}
        """What queues deserve, unless that is certain to be all that they ask for."""
        self._held: dict[str, list[float]] = {}
        if isinstance(bounds.limits, WeightedLimits):
            for queue in self._waiting:
                self._learn(queue, bounds.limits)

    def _learn(self, queue: str, limits: WeightedLimits) -> None:
        bounds, row = self._bounds, self._bounds.snapshot.queues.row_of[queue]
        if bounds.is_divided or len(self._waiting) > 1 or not bounds.meets_demand(limits, row):
            self._deserved[queue] = bounds.deserved(limits, row)
            self._held[queue] = [*bounds.held(row)]

    def next(self) -> tuple[JobRun, int] | None:
        """Return whose turn it is and how many of its pods its queue allows; None: all had one."""
        while self._waiting:
            queue = next(iter(self._waiting))
            if len(self._waiting) > 1:
                queue = min(self._waiting, key=self._key)
            runs = self._waiting[queue]
            if not runs or self._is_overused(queue):
                del self._waiting[queue]
                continue
            run = runs.pop(0)
            n = self._allowed(run)
            if n:
                return run, n
        return None

    def hold(self, run: JobRun) -> None:
        """Count what a job has taken."""
        held = self._held.get(run.kind.queue)
        if held is not None:
            for at, amount in run.kind.requested_amounts:
                held[at] += amount
            self._keys.pop(run.kind.queue, None)

    def _key(self, queue: str) -> QueueKey:
        known = self._keys.get(queue)
        if known is None:
            held = self._held.get(queue)
            known = self._keys[queue] = _queue_key(self._bounds, queue, held)
        return known

    def _is_overused(self, queue: str) -> bool:
        deserved = self._deserved.get(queue)
        return deserved is not None and all(
            part - held < STEP for part, held in zip(deserved, self._held[queue], strict=True)
        )

    def _allowed(self, run: JobRun) -> int:
        """Return how many pods of a job its queue allows."""
        n, kind = run.kind.size, run.kind
        deserved = self._deserved.get(kind.queue)
        if deserved is None:
            return n
        held = self._held[kind.queue]
        for at, amount in kind.reserved_amounts:
            each = amount / kind.size
            n = min(n, max(int((deserved[at] - held[at]) // each) + 1, 0))
            while n and held[at] + n * each > deserved[at]:
                n -= 1
        return n
