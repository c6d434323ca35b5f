"""Jobs that were refused in the last cycle, and are not tried again while that stands.

A refusal depends on the job itself, on its queue, on nodes and the pods on them, and on time.
While none of them has changed for equal jobs, they are left out of the cycle: each keeps its record
and its conditions, and costs nothing.  Else the first of them is tried, and the others follow it.
"""

import logging
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from pumice.api.decisions import Decisions
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING
from pumice.core.tables import NOWHERE
from pumice.core.views import Task
from pumice.framework.fits import NO_ROOM
from pumice.framework.job_placement import JobMemory
from pumice.framework.job_records import Record, Records, Stage
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Refusal, Why
from pumice.framework.session import Session
from pumice.standing.standing_cycle import CHECKED_EACH_S, changes_at

log = logging.getLogger(__name__)
_HARMLESS: Final = frozenset({"enqueue", "backfill"})
"""Actions whose moves change nothing for jobs that were admitted and ask for something."""
_KNOWN: Final = frozenset({"allocate", "preempt", "reclaim", *_HARMLESS})
_BY_PLACE: Final = (Plugin.may_try, Plugin.may_start, Plugin.on_blocked)
"""Hooks whose answers depend on the jobs ahead: a plugin with one of them says who is tried."""
_MOVES: Final = frozenset({"task", "idle"})
"""Numbers of a record that differ between equal jobs, or with the room that is left."""


class _Outcome(NamedTuple):
    """How a job was refused, in the words of its record, and its tasks in order."""

    record: Record
    numbers: dict[str, Any]
    task: int
    """The place of the task that the record names; below 0 if it names none."""
    no_fit: list[dict[str, int] | None]
    barred: list[Mask | None]
    failed_roles: set[int]

    def is_like(self, other: "_Outcome") -> bool:
        """Return whether a job was refused in the same way."""
        mine, yours = self.record, other.record
        return (
            (mine.stage, mine.why, mine.code) == (yours.stage, yours.why, yours.code)
            and self.numbers == other.numbers
            and self.task == other.task
            and self.sounds_like(other)
        )

    def sounds_like(self, other: "_Outcome") -> bool:
        """Return whether the conditions of its pod group and pods are the same."""
        return (
            self.no_fit == other.no_fit
            and self.failed_roles == other.failed_roles
            and all(map(_are_alike, self.barred, other.barred))
        )


def _are_alike(left: Mask | None, right: Mask | None) -> bool:
    return left is right or (left is not None and right is not None and np.array_equal(left, right))


@dataclass
class _Group:
    """Equal jobs that were refused in the same way, the first in order first."""

    key: Hashable
    rows: list[int]
    outcome: _Outcome
    tried: bool = False
    """Whether the first was tried in this cycle."""

    @property
    def first(self) -> int:
        """The job that is tried for all of them."""
        return self.rows[0]


class _Last(NamedTuple):
    """What is left of a cycle."""

    snapshot: Snapshot
    size: tuple[int, int]
    """How many nodes and resources there were."""
    changes: int | None
    """How much had changed by then; None: it moved something itself, which is undone."""
    until: float
    """When time alone may change what plugins decide."""
    limits: Column
    groups: list[_Group]
    records: Records
    memory: dict[int, JobMemory]
    unschedulable: set[int]
    conditions: dict[int, tuple[str, str, str, str]]
    by_place: list[int]
    """Who was refused, where that depends on the jobs ahead."""


class RefusedJobs:
    """The jobs that a scheduler leaves out of its next cycle.

    Ingest names the jobs that have changed, and counts changes of nodes and of pods on them; queues
    are asked again; plugins foretell when time counts.
    """

    def __init__(self) -> None:
        self._last: _Last | None = None
        self._groups: list[_Group] = []
        self._is_check = False
        """Whether all jobs are tried, to compare."""
        self._checked_at = -math.inf
        self._is_same = False
        """Whether nothing but jobs that wait has changed since the last cycle, and no time came."""
        self._changed_limits: Mask = np.zeros(0, dtype=bool)
        """Queues that may hold more or less than in the last cycle (n,)."""
        self._has_moved = False
        self._mark = 0
        self._known: _Last | None = None
        """The last cycle, where it is said in their turn who is left out."""
        self.mismatches = 0
        """Cycles in which a job that would have been left out ended otherwise."""

    def leave_out(self, ssn: Session, *, try_all: bool = False) -> None:
        """Find the jobs that need not be tried, and put what is known of them in a session.

        With ``try_all``, and once a minute, they are tried all the same, and compared.
        """
        self._groups, self._has_moved, self._is_check = [], False, False
        if ssn.records.watched:  # all are tried, and what is known stays known
            return
        touched, ssn.snapshot.touched_jobs = ssn.snapshot.touched_jobs, set()
        last, self._last = self._last, None
        self._known = None
        if _is_by_place(ssn):
            is_due = not 0 <= ssn.now - self._checked_at < CHECKED_EACH_S or try_all
            if last is None or last.snapshot is not ssn.snapshot or NOWHERE in touched or is_due:
                self._checked_at = ssn.now
                return
            self._known = last
            ssn.known_refused = np.zeros(len(ssn.left_out), dtype=bool)
            ssn.known_refused[[row for row in last.by_place if row not in touched]] = True
            return
        if last is None or NOWHERE in touched or not _is_valid(last, ssn):
            self._checked_at = ssn.now
            return
        is_timely = ssn.now < last.until and not ssn.node_usage  # measurements change by themselves
        self._is_same = is_timely and last.changes == ssn.snapshot.other_changes
        self._changed_limits = _changed(last.limits, _limits(ssn), ssn.snapshot)
        for group in last.groups:
            rows = [row for row in group.rows if row not in touched]
            if rows:
                self._groups.append(_Group(group.key, rows, group.outcome))
        self._is_check = try_all or not 0 <= ssn.now - self._checked_at < CHECKED_EACH_S
        if self._is_check:
            self._checked_at = ssn.now
            return
        ssn.left_out[[row for group in self._groups for row in group.rows]] = True
        _take_over(last, ssn)

    # Each action

    def begin(self, ssn: Session, action: str) -> None:
        """Decide who takes part in an action."""
        self._mark = ssn.journal.mark()
        if not self._groups:
            return
        if action == "allocate":
            room = _Room(ssn, asks_nodes=not self._is_same)
            for group in self._groups:
                group.tried = not room.stays(group)
        elif action not in _HARMLESS:
            for group in self._groups:
                group.tried |= not self._finds_nobody(ssn, action, group)
        if not self._is_check:
            firsts = [group.first for group in self._groups if group.tried]
            for row in firsts if action == "allocate" else ():
                ssn.records.forget(row)
                ssn.job_memory.pop(row, None)
            ssn.considered = ~ssn.left_out
            ssn.considered[firsts] = action not in _HARMLESS

    def _finds_nobody(self, ssn: Session, action: str, group: _Group) -> bool:
        """Return whether it is known that equal jobs find nobody to evict, as before."""
        if self._has_moved or not self._is_same:
            return False
        if not self._changed_limits.any():
            return True
        queue = int(ssn.snapshot.jobs.queue[group.first])
        if action == "reclaim":
            tasks = (Task(ssn.snapshot, row) for row in _tasks(ssn, group.first))
            return not any(ssn.policy.preemptive(queue, each.request[:, 0]) for each in tasks)
        judges = (plugin for plugin, _ in ssn.hooks.bound(Plugin.preemptable))
        limits = (each.queue_limits(ssn.snapshot, ssn.total) for each in judges)
        return not self._changed_limits[queue] and all(each is None for each in limits)

    def end(self, ssn: Session, action: str) -> bool:
        """Return whether an action ended as if those who were left out had taken part.

        If it does not, the cycle must be decided again.
        """
        if action == "allocate" and self._known is not None:
            _take_over(self._known, ssn)
        if action in _HARMLESS or self._mark == ssn.journal.mark():
            return True
        self._has_moved = True
        if not self._groups:
            return True
        if self._is_check and action == "allocate":
            self._compare(ssn, _still_waits)
        # where pods are evicted, the order of jobs and queues depends on all that are there
        stands = action == "allocate" and self._follow(ssn) and self._stays(ssn)
        if not stands and self._is_check:
            self._groups = []
        return stands or self._is_check

    def _stays(self, ssn: Session) -> bool:
        """Return whether placements leave those refused who were refused before them.

        They take room and what queues have left: what holds at the end held all along.
        """
        hooks = ssn.hooks
        asked = [*hooks.bound(Plugin.overused), *hooks.bound(Plugin.allocatable)]
        if ssn.ordering.queues_by_pair or not all(plugin.foreseeable for plugin, _ in asked):
            return False
        room = _Room(ssn, asks_nodes=True)
        return all(map(room.stays, self._groups))

    def _follow(self, ssn: Session) -> bool:
        """Record for each job how the first of its group was refused; False if that one was not."""
        for group in self._groups:
            if not group.tried:
                continue
            outcome = _outcome(ssn, group.first)
            if outcome is None or ssn.failures.errors:
                return False
            if not self._is_check:
                _restate(ssn, group, outcome)
            group.outcome = outcome
        return True

    def hold(self, ssn: Session) -> bool:
        """Return whether all that were left out are refused once all actions are over."""
        holds = self._follow(ssn)
        if self._is_check:
            if holds:
                self._compare(ssn, _ends_as)
            self._groups = []
            return True
        ssn.left_out[[group.first for group in self._groups if group.tried]] = False
        if self._groups:
            ssn.considered = ~ssn.left_out
        return holds

    def _compare(self, ssn: Session, is_right: Callable[[Session, int, _Group], bool]) -> None:
        """Compare jobs that were tried although they need not be."""
        for group in self._groups:
            if not all(is_right(ssn, row, group) for row in group.rows):
                self.mismatches += 1
                self._groups = []
                log.warning("jobs that were refused before would have been left out wrongly")
                return

    # After the session

    def keep(self, ssn: Session, decisions: Decisions) -> None:
        """Remember who was refused, of those about whom nothing is left to write."""
        if ssn.failures.errors or ssn.records.watched:
            return
        by_place = []
        if _is_by_place(ssn):
            by_place = [row for row in ssn.records.by_job if _stands(ssn, row, decisions)]
        groups = {group.key: group for group in self._groups if not group.tried}
        known = {group.first: group for group in self._groups if group.tried}
        for row in [row for row in ssn.records.by_job if not (ssn.left_out[row] or by_place)]:
            key = ssn.equal_jobs.key(row, _tasks(ssn, row))
            if key is None and row in known:  # it took part in some actions only
                key = known[row].key
            outcome = None if key is None else _outcome(ssn, row)
            if outcome is None or _is_reported(ssn, row, decisions):
                continue
            group = groups.setdefault(key, _Group(key, [], outcome))
            if group.outcome.is_like(outcome):
                group.rows += known[row].rows if row in known else [row]
        jobs = ssn.snapshot.jobs
        for group in groups.values():
            group.rows.sort(key=lambda row: (jobs.created[row], jobs.keys[row]))
        self._last = _Last(
            ssn.snapshot,
            _size(ssn),
            None if self._has_moved else ssn.snapshot.other_changes,
            changes_at(ssn),
            _limits(ssn),
            [*groups.values()],
            ssn.records,
            ssn.job_memory,
            ssn.unschedulable,
            ssn.conditions,
            by_place,
        )


class _Room:
    """Whether jobs would be refused as they were."""

    def __init__(self, ssn: Session, *, asks_nodes: bool) -> None:
        self._ssn = ssn
        self._asks_nodes = asks_nodes
        self._known: dict[Hashable, tuple[dict[str, int], Mask] | None] = {}
        """Why nodes refuse a kind of pods, and those that no eviction could open; None: not all."""

    def stays(self, group: _Group) -> bool:
        """Return whether the queue, and the nodes, answer the first of equal jobs as before."""
        ssn, outcome = self._ssn, group.outcome
        record, queue = outcome.record, int(ssn.snapshot.jobs.queue[group.first])
        if bool(ssn.policy.overused(queue)) is not (record.why is Why.QUEUE_OVERUSED):
            return False
        if record.why is Why.QUEUE_OVERUSED:
            return True
        tasks = _tasks(ssn, group.first)
        if record.stage is Stage.QUOTA:
            verdict = ssn.policy.allocatable(queue, Task(ssn.snapshot, tasks[outcome.task]))
            said = record.why, record.code, outcome.numbers
            return isinstance(verdict, Refusal) and said == (
                verdict.why,
                verdict.code,
                {"queue": queue, **verdict.numbers},
            )
        if record.stage is not Stage.NODES:
            return False
        tried = zip(tasks, outcome.no_fit, outcome.barred, strict=True)
        return all(self._has_none(queue, *each) for each in tried if each[1])

    def _has_none(
        self, queue: int, row: int, no_fit: dict[str, int] | None, barred: Mask | None
    ) -> bool:
        ssn, task = self._ssn, Task(self._ssn.snapshot, row)
        if not ssn.policy.allocatable(queue, task):
            return False
        if not self._asks_nodes or ssn.policy.filter_task(task) is not None:
            return True
        kind = ssn.placing.kind(task)
        if kind not in self._known:
            self._known[kind] = self._reasons(task)
        found = self._known[kind]
        return found is not None and found[0] == no_fit and _are_alike(found[1], barred)

    def _reasons(self, task: Task) -> tuple[dict[str, int], Mask] | None:
        placing, fit = self._ssn.placing, self._ssn.placing.fit(task)
        if ((fit.verdict == 0) & (fit.room != NO_ROOM)).any():
            return None
        refusals = placing.refusals(task, fit)
        return placing.count_reasons(refusals), placing.lasting[np.maximum(refusals, 0)]


def _has_nothing(ssn: Session, job: int) -> bool:
    """Return whether no pod of a job has a place."""
    jobs = ssn.snapshot.jobs
    return bool(jobs.counts[PENDING, job] == jobs.n_tasks[job])


def _still_waits(ssn: Session, job: int, group: _Group) -> bool:
    return group.tried or _has_nothing(ssn, job)


def _ends_as(ssn: Session, job: int, group: _Group) -> bool:
    outcome = _outcome(ssn, job)
    return outcome is not None and outcome.is_like(group.outcome)


def _restate(ssn: Session, group: _Group, outcome: _Outcome) -> None:
    """Record for the others of a group how the first was refused, if that was another way."""
    if outcome.record is group.outcome.record:
        return
    records, others, keys = ssn.records, group.rows[1:], ssn.snapshot.tasks.keys
    says_else = not outcome.sounds_like(group.outcome)
    for row in others:
        tasks = _tasks(ssn, row) if outcome.task != NOWHERE or says_else else []
        named = {} if outcome.task == NOWHERE else {"task": keys[tasks[outcome.task]]}
        record = records.by_job[row] = replace(
            outcome.record, numbers={**outcome.record.numbers, **named}
        )
        records.stops[row] = {record.stage: record}
        if says_else:
            ssn.left_out[row] = False
            ssn.job_memory[row] = JobMemory({*outcome.failed_roles})
            for task, no_fit, barred in zip(tasks, outcome.no_fit, outcome.barred, strict=True):
                records.no_fit.pop(task, None)
                records.barred.pop(task, None)
                if no_fit is not None:
                    records.no_fit[task], records.barred[task] = no_fit, barred


def _limits(ssn: Session) -> Column:
    """Return what queues may hold, by all plugins that limit it (k, n)."""
    found = (plugin.queue_limits(ssn.snapshot, ssn.total) for plugin in ssn.plugins)
    columns = [
        column
        for each in found
        if each is not None
        for column in (each.guarantee, each.deserved, each.real_capability, each.capability)
    ]
    return np.concatenate(columns) if columns else np.zeros((0, ssn.snapshot.queues.capacity))


def _changed(before: Column, now: Column, snapshot: Snapshot) -> Mask:
    """Mark queues with other limits (n,): all of them, if one has in a tree."""
    if before.shape != now.shape:
        return np.ones(now.shape[1], dtype=bool)
    changed = np.asarray((before != now).any(axis=0))
    is_tree = bool((snapshot.queues.parent != NOWHERE).any())
    return np.full_like(changed, changed.any()) if is_tree else changed


def _is_valid(last: _Last, ssn: Session) -> bool:
    return (
        last.snapshot is ssn.snapshot
        and last.size == _size(ssn)
        and ssn.considered is None
        and _KNOWN.issuperset(ssn.actions)
    )


def _size(ssn: Session) -> tuple[int, int]:
    return ssn.snapshot.nodes.n, len(ssn.snapshot.resources)


def _is_by_place(ssn: Session) -> bool:
    return any(map(ssn.hooks.tiers, _BY_PLACE))


def _stands(ssn: Session, job: int, decisions: Decisions) -> bool:
    """Return whether a job has nothing, and what is stated of it is what is to be stated."""
    if ssn.left_out[job]:
        return True
    is_refused = ssn.records.by_job[job].stage not in (Stage.DONE, Stage.VALIDATE)
    return is_refused and _has_nothing(ssn, job) and not _is_reported(ssn, job, decisions)


def _take_over(last: _Last, ssn: Session) -> None:
    """Put what is known of those who are left out in a session."""
    ssn.records.take_over(last.records, ssn.left_out)
    ssn.job_memory.update(_of(last.memory, ssn.left_out))
    ssn.conditions.update(_of(last.conditions, ssn.left_out))
    ssn.unschedulable.update(row for row in last.unschedulable if ssn.left_out[row])


def _of(found: dict[int, Any], marked: Mask) -> dict[int, Any]:
    return {row: each for row, each in found.items() if marked[row]}


def _tasks(ssn: Session, job: int) -> list[int]:
    return ssn.ordering.sort_tasks(ssn.pending_tasks(job))


def _is_reported(ssn: Session, job: int, decisions: Decisions) -> bool:
    """Return whether something about a job or its pods is to be written."""
    jobs, tasks, waiting = ssn.snapshot.jobs, ssn.snapshot.tasks.keys, decisions.waiting_pods
    key = jobs.keys[job]
    if key in decisions.pod_groups or key in decisions.failed_for:
        return True
    return bool(waiting) and any(tasks[row] in waiting for row in jobs.tasks[job])


def _outcome(ssn: Session, job: int) -> _Outcome | None:
    """Return how a job was refused; None if in several ways, in part, or not at all."""
    records = ssn.records
    record, stops = records.by_job.get(job), records.stops.get(job, {})
    if record is None or len(stops) != 1 or stops.get(record.stage) is not record:
        return None
    if not _has_nothing(ssn, job):
        return None
    rows = _tasks(ssn, job)
    if not records.given_up.keys().isdisjoint(rows):  # it drew lots for nodes
        return None
    keys, named = ssn.snapshot.tasks.keys, record.numbers.get("task")
    names = [keys[row] for row in rows]
    memory = ssn.job_memory.get(job)
    return _Outcome(
        record,
        {name: each for name, each in record.numbers.items() if name not in _MOVES},
        names.index(named) if named in names else NOWHERE,
        [records.no_fit.get(row) for row in rows],
        [records.barred.get(row) for row in rows],
        set() if memory is None else memory.failed_roles,
    )
