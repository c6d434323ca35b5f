"""Turns in vain: one that left nothing behind ends the same way for an equal job until one does.

Such a job is not tried, and what the turn recorded (``Refused``) is recorded for it, too.
"""

from collections.abc import Collection, Hashable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Self

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pumice.core.resources import IndexArray, Mask
from pumice.core.status import PENDING
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.placement.ahead import has_plain_shape
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Place, Record, Records
from pumice.framework.session_state import SessionState

ASKED_IN_VAIN: Final = (
    Plugin.job_valid,
    Plugin.job_ready,
    Plugin.job_pipelined,
    Plugin.job_starving,
    Plugin.order_jobs,
    Plugin.overused,
    Plugin.allocatable,
    Plugin.filter_task,
    Plugin.preemptive,
    Plugin.preemptable,
    Plugin.reclaimable,
    Plugin.on_place,
    Plugin.on_evict,
)
"""Hooks that a turn asks beside those about nodes, which answer by shape.

Not `may_start`: it is asked only where a job has places, so that something moved.
"""

_MOVES: Final = frozenset({"task", "idle"})
"""Numbers of a record that differ between equal jobs, or with the room that is left."""


class EqualJobs:
    """Finds equal jobs of a session without asking plugins about each of them.

    Only among jobs none of whose tasks has a place: a turn asks least about these.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._numbers: dict[int, bytes] = {}
        """Job to what equal ones have in common, their tasks aside."""
        self._kinds = np.empty(0, dtype=np.int32)
        """The number of each task's kind; below 0 for a kind of its own (n,)."""
        if self._agree():
            self._tell_apart()

    def _agree(self) -> bool:
        """Return whether all plugins answer equal jobs alike, and nothing is tried for others."""
        state = self._state
        asked = (plugin for hook in ASKED_IN_VAIN for plugin, _ in state.hooks.bound(hook))
        return (
            state.placing.imagines
            and state.ordering.keeps_orders
            and not state.queue_gates.held
            and not state.queue_gates.is_reserving
            and all(plugin.foreseeable for plugin in asked)
        )

    def key(self, job: int, tasks: Sequence[int]) -> Hashable | None:
        """Return what equal jobs with these tasks to try have in common; None: it has no equal."""
        known, jobs = self._numbers.get(job), self._state.snapshot.jobs
        if known is None or self._state.hooks.failures.errors:
            return None
        if jobs.counts[PENDING, job] != jobs.n_tasks[job]:  # it was given something
            return None
        kinds = self._kinds[tasks].tolist()
        return (known, *kinds) if kinds and min(kinds) >= 0 else None

    def _tell_apart(self) -> None:
        state, jobs = self._state, self._state.snapshot.jobs
        whole = (jobs.counts[PENDING] == jobs.n_tasks) & (jobs.n_tasks > 0) & ~jobs.has_topology
        groups: list[Any] = jobs.groups
        rows = [
            row
            for row in state.admitted_jobs(whole)
            if not groups[row].spec.min_task_member and row not in state.records.watched
        ]
        if not rows:
            return
        tasks = list(chain.from_iterable(jobs.tasks[row] for row in rows))
        self._kinds = np.full(len(state.snapshot.tasks.status), NOWHERE, dtype=np.int32)
        self._kinds[tasks] = self._kinds_of(np.array(tasks, dtype=np.intp))
        self._numbers = dict(zip(rows, self._numbers_of(np.array(rows)), strict=True))

    def _numbers_of(self, rows: IndexArray) -> list[bytes]:
        """Return the columns of jobs, and by what plugins order them, as bytes."""
        jobs, n = self._state.snapshot.jobs, len(rows)
        ranks = np.array(self._state.ordering.job_policy_keys(rows.tolist()), dtype=float)
        names = "queue", "namespace", "phase", "priority", "min_member", "n_tasks"
        columns = [getattr(jobs, name)[rows].reshape(1, n) for name in names]
        sums = jobs.sums[:, :, rows].reshape(-1, n)
        return _bytes_of(np.concatenate([*columns, sums, ranks.T.reshape(-1, n)], dtype=float))

    def _kinds_of(self, rows: IndexArray) -> NDArray[np.int32]:
        """Number the kinds of tasks."""
        state, tasks = self._state, self._state.snapshot.tasks
        pods: list[Any] = [tasks.pods[row] for row in rows.tolist()]
        never = [pod.spec.preemption_policy == "Never" for pod in pods]
        nominated = np.array([bool(pod.status.nominated_node_name) for pod in pods], dtype=bool)
        columns: list[NDArray[Any]] = [
            tasks.shape[rows],
            tasks.role[rows],
            tasks.priority[rows],
            tasks.gated[rows],
            tasks.preemptable[rows],
            np.array(never),
        ]
        if state.placing.varying:
            known = self._known("classes")
            views = (Task(state.snapshot, row) for row in rows.tolist())
            keys = (state.placing.class_key(view) for view in views)
            columns.append(np.array([known.setdefault(key, len(known)) for key in keys]))
        numbers = self._known("kinds")
        found = _bytes_of(np.stack(columns).astype(np.int64))
        kinds = np.array([numbers.setdefault(each, len(numbers)) for each in found], dtype=np.int32)
        nominated |= tasks.nominated[rows] != NOWHERE
        kinds[nominated | ~self._are_plain(tasks.shape[rows])] = NOWHERE
        return kinds

    def _known(self, what: str) -> dict[Hashable, int]:
        """Return numbers that outlive the session, so that keys of several can be compared."""
        known: dict[Hashable, int] = self._state.snapshot.derived.setdefault(what, {})
        return known

    def _are_plain(self, shapes: NDArray[np.int32]) -> Mask:
        """Mark tasks whose shape has no claims, and no terms about others (n,)."""
        known = {each: has_plain_shape(self._state.snapshot.shapes[each]) for each in {*shapes}}
        return np.array([known[each] for each in shapes.tolist()], dtype=bool)


def _bytes_of(numbers: NDArray[Any]) -> list[bytes]:
    """Return each column (k, n) as bytes."""
    rows = np.ascontiguousarray(numbers.T)
    found: list[bytes] = rows.view(f"V{rows.strides[0]}")[:, 0].tolist()
    return found


class Refused(NamedTuple):
    """How a job was refused, in the words of its record; its tasks in the order of their turns."""

    record: Record
    task: int
    """The place of the task that the record names; below 0 if it names none."""
    no_fit: list[dict[str, int] | None]
    """Why each task found no node; None for those that were not tried."""
    barred: list[Mask | None]
    """The nodes that no eviction could open for it."""
    failed_roles: Collection[int]
    given_up: list[Place | None]
    """The node that each task had until its gang was given up."""

    @classmethod
    def of(
        cls, records: Records, job: int, names: list[str], tasks: Sequence[int], failed: set[int]
    ) -> Self | None:
        """Read the records of a job; None if it was refused in several ways, or not at all."""
        record, stops = records.by_job.get(job), records.stops.get(job, {})
        if record is None or len(stops) != 1 or stops.get(record.stage) is not record:
            return None
        named = record.numbers.get("task")
        if named not in (None, *names):
            return None
        return cls(
            record,
            NOWHERE if named is None else names.index(named),
            [records.no_fit.get(row) for row in tasks],
            [records.barred.get(row) for row in tasks],
            failed,
            [records.given_up.get(row) for row in tasks],
        )

    @property
    def numbers(self) -> dict[str, Any]:
        """What was compared, without what differs between equal jobs, or with the room left."""
        return {name: each for name, each in self.record.numbers.items() if name not in _MOVES}

    def is_like(self, other: "Refused") -> bool:
        """Return whether a job was refused in the same way."""
        mine, yours = self.record, other.record
        return (
            (mine.stage, mine.why, mine.code) == (yours.stage, yours.why, yours.code)
            and self.numbers == other.numbers
            and self.task == other.task
            and self.sounds_like(other)
        )

    def sounds_like(self, other: "Refused") -> bool:
        """Return whether the conditions of its pod group and pods are the same."""
        return (
            self.no_fit == other.no_fit
            and self.failed_roles == other.failed_roles
            and self.given_up == other.given_up
            and all(map(are_alike, self.barred, other.barred))
        )

    def put(self, state: SessionState, job: int, tasks: Sequence[int]) -> None:
        """Record the same for an equal job."""
        self.put_record(state, job, tasks)
        for row, no_fit, barred in zip(tasks, self.no_fit, self.barred, strict=True):
            if no_fit is not None:
                state.records.no_fit[row], state.records.barred[row] = no_fit, barred
        lost = zip(tasks, self.given_up, strict=True)
        state.records.given_up.update((row, place) for row, place in lost if place is not None)

    def put_record(self, state: SessionState, job: int, tasks: Sequence[int]) -> None:
        """Record the same for an equal job, but not why its tasks found no node."""
        names = state.snapshot.tasks.keys
        named = {} if self.task == NOWHERE else {"task": names[tasks[self.task]]}
        new = replace(self.record, numbers=self.record.numbers | named)
        state.records.by_job[job] = state.records.stops.setdefault(job, {})[new.stage] = new


def are_alike(left: Mask | None, right: Mask | None) -> bool:
    """Return whether the same nodes are marked."""
    return left is right or (left is not None and right is not None and np.array_equal(left, right))


class _Turn(NamedTuple):
    """A turn that has begun: its key, and how much was kept, drawn, moved and recorded by then."""

    key: Hashable
    job: int
    tasks: tuple[int, ...]
    mark: int
    """The length of the journal: what is kept makes it longer, and nothing shorter."""
    lots: int
    moved: int
    record: Record | None


class RefusedTurns:
    """The turns of one action that left nothing behind."""

    def __init__(self, state: SessionState, equals: EqualJobs) -> None:
        self._state = state
        self._equals = equals
        self._known: dict[Hashable, tuple[int, int, Refused | None]] = {}
        """The job, the length of the journal, and what the turn left in the records."""
        self._turn: _Turn | None = None

    def begin(self, job: int, tasks: Sequence[int], *more: Hashable) -> int:
        """Refuse a job at once that is equal to one refused since anything moved; return that one.

        Below 0 there is none, and a turn begins.  ``tasks`` are those to be tried, in order;
        ``more`` is what the turn depends on besides.
        """
        self._turn = None
        key = self._equals.key(job, tasks)
        if key is None:
            return NOWHERE
        key, journal = (key, *more), self._state.journal
        equal, mark, refused = self._known.get(key, (NOWHERE, NOWHERE, None))
        if mark != journal.mark():
            record = self._state.records.by_job.get(job)
            moves = journal.mark(), self._state.placing.state, len(journal.moved)
            self._turn = _Turn(key, job, tuple(tasks), *moves, record)
            return NOWHERE
        if refused is not None:
            refused.put(self._state, job, tasks)
        return equal

    def end(self) -> None:
        """Remember the turn that has begun, if it left nothing behind."""
        turn, journal, records = self._turn, self._state.journal, self._state.records
        if turn is None or (turn.mark, turn.lots) != (journal.mark(), self._state.placing.state):
            return
        refused = None
        if records.by_job.get(turn.job) is not turn.record:
            names = [self._state.snapshot.tasks.keys[row] for row in turn.tasks]
            refused = Refused.of(records, turn.job, names, turn.tasks, set())
            if turn.record is not None or refused is None:
                return  # it was refused for several reasons
        elif turn.moved != len(journal.moved):
            return  # tasks may have lost other nodes than its record says
        self._known[turn.key] = turn.job, turn.mark, refused
