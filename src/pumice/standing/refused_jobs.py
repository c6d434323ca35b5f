"""What a scheduler need not decide again: all of a cycle, or the jobs that it refused.

A refusal depends on the job itself, on its queue, on nodes and the pods on them, and on time.
While none of them has changed for equal jobs, they are left out of the cycle: each keeps its record
and its conditions, and costs nothing.  Else the first of them is tried, and the others follow it.
Where nothing has changed at all since a cycle that moved nothing, all of it stands.
"""

import logging
import math
from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import asdict

from pumice.api.decisions import Decisions
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import PENDING
from pumice.core.tables import NOWHERE
from pumice.core.views import ALL, Rows, Task
from pumice.framework.job_placement import JobMemory
from pumice.framework.placement.equal_jobs import Refused, are_alike
from pumice.framework.placing import Codes, distinct_rows, rows_of
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Refusal, Stage, Why, of_marked
from pumice.framework.session import Session

log = logging.getLogger(__name__)
CHECKED_EACH_S: Final = 60.0
"""How long what stands is not decided again, to compare."""
_HARMLESS: Final = frozenset({"enqueue", "backfill"})
"""Actions whose moves change nothing for jobs that were admitted and ask for something."""
_KNOWN: Final = frozenset({"allocate", "preempt", "reclaim", *_HARMLESS})
_BY_PLACE: Final = (Plugin.may_try, Plugin.may_start, Plugin.on_blocked)
"""Hooks whose answers depend on the jobs ahead: a plugin with one of them says who is tried."""
_PARTS: Final = (
    "records", "job_memory", "unschedulable", "scheduled", "conditions", "promises"
)  # fmt: skip
"""What a session knows of jobs when its actions are over."""


@dataclass
class _Group:
    """Equal jobs that were refused in the same way, the first in order first."""

    key: Hashable
    rows: list[int]
    refused: Refused
    tried: bool = False
    """Whether the first was tried in this cycle."""
    tasks: list[int] = field(default_factory=list)
    """The tasks of the first, in order, once they were asked for in this cycle."""

    @property
    def first(self) -> int:
        """The job that is tried for all of them."""
        return self.rows[0]


class _Last(NamedTuple):
    """What is left of a cycle."""

    snapshot: Snapshot
    asked: Any
    at: float
    until: float
    """When time alone may change what plugins decide."""
    all_changes: int
    """How much had changed by then."""
    changes: int
    """The same, pods and jobs that wait aside."""
    moved: set[int] | None
    """Nodes (rows) on which it moved something itself, which is undone; None: nothing at all."""
    size: tuple[int, int]
    """How many nodes and resources there were."""
    limits: Column
    groups: list[_Group]
    parts: dict[str, Any]
    decisions: Decisions | None
    """What was decided, if it moved nothing and will stand while nothing changes."""
    by_place: list[int]
    """Who was refused, where that depends on the jobs ahead."""


class Standing:
    """What stands of the last cycle of a scheduler.

    Ingest names the jobs that have changed, and counts changes of nodes and of pods on them; queues
    are asked again; plugins foretell when time counts.
    """

    def __init__(self) -> None:
        self._last: _Last | None = None
        self._compared: Decisions | None = None
        """What stands, but is decided all the same."""
        self._groups: list[_Group] = []
        self._is_check = False
        """Whether all jobs are tried, to compare."""
        self._checked_at = -math.inf
        self._is_same = False
        """Whether nothing but jobs that wait has changed since the last cycle, and no time came."""
        self._nodes = _Nodes()
        self._changed_limits: Mask = np.zeros(0, dtype=bool)
        """Queues that may hold more or less than in the last cycle (n,)."""
        self._has_moved = False
        self._start = self._mark = 0
        """The length of the journal when the session, and an action, began."""
        self._known: _Last | None = None
        """The last cycle, where it is said before their turns who is left out."""
        self.mismatches = 0
        """Cycles that were decided to compare, and ended otherwise."""

    def repeat(self, ssn: Session, asked: Any) -> Decisions | None:
        """Put the outcome of the last cycle into a session and return its decisions, if it stands.

        ``asked`` is what the caller wants to know; None: the cycle must be decided.
        """
        last, self._start, self._compared = self._last, ssn.journal.mark(), None
        if last is None or last.decisions is None:
            return None
        if not _is_unchanged(last, ssn, asked):
            self._last = last._replace(decisions=None)
        elif ssn.now - last.at >= CHECKED_EACH_S or ssn.records.watched:
            self._compared = last.decisions
        else:
            for name, part in last.parts.items():
                setattr(ssn, name, part)
            ssn.records.compare = ssn.refusal_numbers
            return _copy(last.decisions)
        return None

    def leave_out(self, ssn: Session) -> None:
        """Find the jobs that need not be tried, and put what is known of them in a session.

        Once a minute they are tried all the same, and compared.
        """
        self._groups, self._has_moved, self._is_check = [], False, False
        if ssn.records.watched:  # all are tried, and what is known stays known
            return
        touched, ssn.snapshot.touched_jobs = ssn.snapshot.touched_jobs, set()
        moved, ssn.snapshot.touched_nodes = ssn.snapshot.touched_nodes, set()
        last, self._last = self._last, None
        self._known = None
        if _is_by_place(ssn):
            self._note_known(ssn, last, touched)
            return
        if last is None or NOWHERE in touched or not _is_valid(last, ssn):
            self._checked_at = ssn.now
            self._nodes.forget()
            return
        is_timely = ssn.now < last.until and not ssn.node_usage  # measurements change by themselves
        is_timely &= last.changes == ssn.snapshot.other_changes
        self._is_same = is_timely and not moved and last.moved is None
        if is_timely:
            self._nodes.follow(moved.union(last.moved or ()))
        else:
            self._nodes.forget()
        if last.groups:
            self._changed_limits = _changed(last.limits, _limits(ssn), ssn.snapshot)
        for group in last.groups:
            rows = [row for row in group.rows if row not in touched]
            if rows:
                self._groups.append(_Group(group.key, rows, group.refused))
        try_all = self._compared is not None
        self._is_check = try_all or not 0 <= ssn.now - self._checked_at < CHECKED_EACH_S
        if self._is_check:
            self._checked_at = ssn.now
            return
        ssn.left_out[[row for group in self._groups for row in group.rows]] = True
        _take_over(last, ssn)

    def _note_known(self, ssn: Session, last: _Last | None, touched: set[int]) -> None:
        """Note in a session of whom nothing is left to write; once a minute all are tried."""
        is_due = not 0 <= ssn.now - self._checked_at < CHECKED_EACH_S or self._compared is not None
        is_new = last is None or last.snapshot is not ssn.snapshot or NOWHERE in touched
        if last is None or is_new or is_due:
            self._checked_at = ssn.now
            return
        self._known = last
        ssn.known_refused = np.zeros(len(ssn.left_out), dtype=bool)
        ssn.known_refused[[row for row in last.by_place if row not in touched]] = True

    # Each action

    def begin(self, ssn: Session, action: str) -> None:
        """Decide who takes part in an action."""
        self._mark = ssn.journal.mark()
        if not self._groups:
            return
        if action == "allocate":
            room = _Room(ssn, None if self._is_same else self._nodes)
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
        room = _Room(ssn, self._nodes)
        return all(map(room.stays, self._groups))

    def _follow(self, ssn: Session) -> bool:
        """Record for each job how the first of its group was refused; False if that one was not."""
        for group in self._groups:
            if not group.tried:
                continue
            refused = _refused(ssn, group.first)
            if refused is None or ssn.failures.errors:
                return False
            if not self._is_check:
                _restate(ssn, group, refused)
            group.refused = refused
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

    def keep(self, ssn: Session, asked: Any, decisions: Decisions, *, jobs: bool) -> None:
        """Remember a cycle that was decided: who was refused, and all of it if it moved nothing.

        Without ``jobs`` none is left out of the next one.
        """
        if ssn.records.watched:  # it states more than others
            return
        if self._compared not in (None, decisions):
            self.mismatches += 1
            log.warning("a cycle in which nothing had changed was decided otherwise than before")
        self._last = None
        if ssn.failures.errors:
            return
        stands = not self._moved(ssn) and not ssn.node_usage
        groups = self._regroup(ssn, decisions) if jobs and not _is_by_place(ssn) else []
        self._last = _Last(
            ssn.snapshot,
            asked,
            ssn.now,
            changes_at(ssn),
            ssn.snapshot.changes,
            ssn.snapshot.other_changes,
            rows_of(ssn.journal.moved) if self._has_moved else None,
            _size(ssn),
            _limits(ssn) if groups else np.zeros((0, 0)),
            groups,
            {name: getattr(ssn, name) for name in _PARTS},
            _copy(decisions) if stands else None,
            [row for row in ssn.records.by_job if _stands(ssn, row, decisions)]
            if jobs and _is_by_place(ssn)
            else [],
        )

    def _moved(self, ssn: Session) -> bool:
        """Return whether a session wrote anything."""
        made = ssn.intents.made or ssn.intents.released_claims or ssn.queue_gates.opened
        return bool(ssn.journal.mark() != self._start or made)

    def _regroup(self, ssn: Session, decisions: Decisions) -> list[_Group]:
        """Group the jobs that were refused, of those about whom nothing is left to write."""
        groups = {group.key: group for group in self._groups if not group.tried}
        known = {group.first: group for group in self._groups if group.tried}
        grown: dict[Hashable, _Group] = {}
        for row in [row for row in ssn.records.by_job if not ssn.left_out[row]]:
            if not _has_nothing(ssn, row):
                continue
            key = ssn.equal_jobs.key(row, _tasks(ssn, row))
            if key is None and row in known:  # it took part in some actions only
                key = known[row].key
            refused = None if key is None else _refused(ssn, row)
            if refused is None or _is_reported(ssn, row, decisions):
                continue
            group = groups.setdefault(key, _Group(key, [], refused))
            if group.refused.is_like(refused):
                group.rows += known[row].rows if row in known else [row]
                grown[key] = group
        jobs = ssn.snapshot.jobs
        for group in grown.values():
            group.rows.sort(key=lambda row: (jobs.created[row], jobs.keys[row]))
        return [*groups.values()]


class _Refusing(msgspec.Struct):
    """Why nodes refuse a kind of pods."""

    codes: Codes
    """As ``Placing.refusals`` numbers it (n,)."""
    moved: set[int]
    """Nodes on which something moved since, in other sessions."""
    cursor: int
    """How much of the log of moved nodes was read, if in this session."""
    reasons: dict[str, int]
    barred: Mask
    """Nodes that no eviction could open."""
    is_open: bool
    """Whether some node refuses none of them."""


class _Nodes:
    """Why nodes refuse kinds of pods, from cycle to cycle: only nodes that moved are asked again.

    Pods of these kinds have no terms about other pods, so that a node answers for itself.
    """

    def __init__(self) -> None:
        self._kinds: dict[Hashable, _Refusing] = {}

    def forget(self) -> None:
        """Ask all nodes from now on."""
        self._kinds.clear()

    def follow(self, moved: set[int]) -> None:
        """Note before a session on which nodes something has moved since the last one."""
        for each in self._kinds.values():
            each.moved |= moved
            each.cursor = 0

    def ask(self, ssn: Session, task: Task) -> _Refusing:
        """Return why nodes refuse a task as they are now."""
        kind, placing, log = ssn.placing.kind(task), ssn.placing, ssn.journal.moved
        known = self._kinds.get(kind)
        if known is not None and not known.moved and known.cursor == len(log):
            return known
        rows: Rows = ALL
        if known is not None:
            rows = distinct_rows([*known.moved, *log[known.cursor :]], len(known.codes))
        codes = placing.refusals_on(task, rows)
        if known is not None and (known.codes[rows] == codes).all():
            known.moved, known.cursor = set(), len(log)
            return known
        if known is not None:
            whole = known.codes.copy()
            whole[rows] = codes
            codes = whole
        barred = placing.lasting[np.maximum(codes, 0)]
        is_open = not codes.all()
        found = _Refusing(codes, set(), len(log), placing.count_reasons(codes), barred, is_open)
        self._kinds[kind] = found
        return found


class _Room:
    """Whether jobs would be refused as they were."""

    def __init__(self, ssn: Session, nodes: _Nodes | None) -> None:
        """Ask queues, and nodes unless None: these answer as before."""
        self._ssn = ssn
        self._nodes = nodes

    def stays(self, group: _Group) -> bool:
        """Return whether the queue, and the nodes, answer the first of equal jobs as before."""
        ssn, refused = self._ssn, group.refused
        record, queue = refused.record, int(ssn.snapshot.jobs.queue[group.first])
        if bool(ssn.policy.overused(queue)) is not (record.why is Why.QUEUE_OVERUSED):
            return False
        if record.why is Why.QUEUE_OVERUSED:
            return True
        tasks = group.tasks = group.tasks or _tasks(ssn, group.first)
        if any(refused.given_up):  # the others were asked with these placed
            return False
        if record.stage is Stage.QUOTA:
            verdict = ssn.policy.allocatable(queue, Task(ssn.snapshot, tasks[refused.task]))
            said = record.why, record.code, refused.numbers
            return isinstance(verdict, Refusal) and said == (
                verdict.why,
                verdict.code,
                {"queue": queue, **verdict.numbers},
            )
        if record.stage is not Stage.NODES:
            return False
        tried = zip(tasks, refused.no_fit, refused.barred, strict=True)
        return all(self._has_none(queue, *each) for each in tried if each[1])

    def _has_none(
        self, queue: int, row: int, no_fit: dict[str, int] | None, barred: Mask | None
    ) -> bool:
        ssn, task = self._ssn, Task(self._ssn.snapshot, row)
        if not ssn.policy.allocatable(queue, task):
            return False
        if self._nodes is None or ssn.policy.filter_task(task) is not None:
            return True
        found = self._nodes.ask(ssn, task)
        return not found.is_open and found.reasons == no_fit and are_alike(found.barred, barred)


def _has_nothing(ssn: Session, job: int) -> bool:
    """Return whether no pod of a job has a place."""
    jobs = ssn.snapshot.jobs
    return bool(jobs.counts[PENDING, job] == jobs.n_tasks[job])


def _still_waits(ssn: Session, job: int, group: _Group) -> bool:
    return group.tried or _has_nothing(ssn, job)


def _ends_as(ssn: Session, job: int, group: _Group) -> bool:
    refused = _refused(ssn, job)
    return refused is not None and refused.is_like(group.refused)


def _restate(ssn: Session, group: _Group, refused: Refused) -> None:
    """Record for the others of a group how the first was refused, if that was another way."""
    if refused.record is group.refused.record:
        return
    says_else = not refused.sounds_like(group.refused)
    for row in group.rows[1:]:
        if says_else:
            ssn.left_out[row] = False
            ssn.job_memory[row] = JobMemory({*refused.failed_roles})
            ssn.records.forget(row)
            refused.put(ssn, row, _tasks(ssn, row))
        else:
            ssn.records.stops.pop(row, None)
            tasks = [] if refused.task == NOWHERE else _tasks(ssn, row)
            refused.put_record(ssn, row, tasks)


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
        and not _is_by_place(ssn)
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
    parts = last.parts
    ssn.records.take_over(parts["records"], ssn.left_out)
    ssn.job_memory |= of_marked(parts["job_memory"], ssn.left_out)
    ssn.conditions |= of_marked(parts["conditions"], ssn.left_out)
    ssn.unschedulable |= of_marked(dict.fromkeys(parts["unschedulable"]), ssn.left_out).keys()


def _tasks(ssn: Session, job: int) -> list[int]:
    return ssn.ordering.sort_tasks(ssn.pending_tasks(job))


def _is_reported(ssn: Session, job: int, decisions: Decisions) -> bool:
    """Return whether something about a job or its pods is to be written."""
    jobs, tasks, waiting = ssn.snapshot.jobs, ssn.snapshot.tasks.keys, decisions.waiting_pods
    key = jobs.keys[job]
    if key in decisions.pod_groups or key in decisions.failed_for:
        return True
    return bool(waiting) and any(tasks[row] in waiting for row in jobs.tasks[job])


def _refused(ssn: Session, job: int) -> Refused | None:
    """Return how a job was refused; None if in several ways, in part, or not at all."""
    if job not in ssn.records.by_job or not _has_nothing(ssn, job):
        return None
    rows, keys = _tasks(ssn, job), ssn.snapshot.tasks.keys
    memory = ssn.job_memory.get(job, JobMemory())
    return Refused.of(ssn.records, job, [keys[row] for row in rows], rows, memory.failed_roles)


def _is_unchanged(last: _Last, ssn: Session, asked: Any) -> bool:
    return (
        last.snapshot is ssn.snapshot
        and last.all_changes == ssn.snapshot.changes
        and last.asked == asked
        and last.at <= ssn.now < last.until
        and not ssn.node_usage
    )


def _copy(decisions: Decisions) -> Decisions:
    """Copy decisions, of which those who write them may leave some out."""
    return Decisions(**{name: copy(value) for name, value in asdict(decisions).items()})


def changes_at(ssn: Session) -> float:
    """Return when time alone may change what plugins decide; at once for those that do not say."""
    soonest = math.inf
    for plugin in ssn.plugins:
        if plugin.simulator is None:
            return -math.inf
        at = ssn.hooks.ask_aside(plugin, Plugin.changes_at)(ssn)
        soonest = min(soonest, math.inf if at is None else float(at))
    return soonest
