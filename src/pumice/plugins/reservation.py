"""reservation: a job that finds no room gets a start time, and jobs behind it do not delay it."""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from pumice.api.codes import Cause
from pumice.api.duration import parse_duration
from pumice.core.resources import Column, Mask
from pumice.core.status import ALLOCATED_CLASS, PENDING, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job
from pumice.errors import InputError
from pumice.framework.arguments import Fault, arg
from pumice.framework.columns import Queues
from pumice.framework.future.promise_changes import remembered
from pumice.framework.future.promises import Promise
from pumice.framework.plugin import Plugin, Refusal, Verdict, Why
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession

MODES: Final = ("strict", "easy", "conservative")
SCOPES: Final = ("cluster", "queue", "subtree")
NEVER: Final = "never"
_NOT_REFUSED: Final = (sys.maxsize, math.inf, Refusal(Why.QUEUE_POSITION))
_HOLDING: Final = [int(status) for status in ALLOCATED_CLASS]
_LAST: Final = 2.0**62
"""The rank of a queue without jobs; keys must be finite."""
_DEPTHS: Final = {"strict": 1, "easy": 1, "conservative": sys.maxsize}


@dataclass
class _Line:
    """The jobs of a scope that wait with a promise, in the order of their turns."""

    promises: dict[int, Promise] = field(default_factory=dict)
    first: str = ""
    """The first job that found no room in this cycle."""
    refused: dict[Any, tuple[int, float, Refusal]] = field(default_factory=dict)
    """Kind of pods to how many, until when, were refused: no fewer, for no longer, are allowed."""


@dataclass(kw_only=True)
class Reservation(Plugin, name="reservation"):
    """Promise starts to jobs that find no room; others start only if they delay none of these."""

    simulator = SimulatorAssumptions(timed=True, foretold=True, all_jobs=True)
    admits_all = True  # one that waits to be admitted could not be promised a start
    mode: str = arg(
        "reservation.mode",
        default="easy",
        choices=MODES,
        doc="`strict`: nobody passes the first job without room; `easy`: who does not delay it "
        "may; `conservative`: every job without room has a start that nobody may delay",
    )
    scope: str = arg(
        "reservation.scope",
        default="cluster",
        choices=SCOPES,
        doc="who is held back for a job: all, its queue, or the part of the tree its queue is in",
    )
    depth: int = arg(
        "reservation.depth",
        default=0,
        minimum=0,
        doc="how many jobs get a start; 0: one, with `conservative` all",
    )
    unknown_ends: str = arg(
        "reservation.unknownEnds",
        default=NEVER,
        doc="when jobs end that state no run time: `never`, or so long after their start",
    )

    def faults(self) -> Iterable[Fault]:
        """Report a duration that cannot be read."""
        if self._unknown_s is None:
            wanted = "never, or a duration such as 1h30m"
            yield Fault("reservation.unknownEnds", wanted, self.unknown_ends)

    @cached_property
    def _unknown_s(self) -> float | None:
        if self.unknown_ends == NEVER:
            return math.inf
        try:
            return parse_duration(str(self.unknown_ends))
        except InputError:
            return None

    def on_open(self, ssn: PluginSession) -> None:
        """Recall what was promised, and find out whether room appeared early."""
        self._ssn = ssn
        self._depth = self.depth or _DEPTHS[self.mode]
        ssn.future.unknown_s = math.inf if self._unknown_s is None else self._unknown_s
        self._lines: dict[int, _Line] = {}
        self._tried: set[int] = set()
        self._ranks: dict[int, list[tuple[int, int]]] | None = None
        self._waits = _waiting(ssn)
        self._looks = True
        """Whether jobs that have a promise are looked at again."""
        self._is_open = False

    # Who goes first

    def _ranked(self) -> dict[int, list[tuple[int, int]]]:
        """Return the ranks of the waiting jobs of each queue among all, and the jobs, last first.

        Rows of queues and jobs.
        """
        ssn, jobs = self._ssn, self._ssn.snapshot.jobs
        waiting = [row for row in ssn.jobs() if self._waits[row]]
        found: dict[int, list[tuple[int, int]]] = {}
        for rank, row in enumerate(ssn.sort_jobs(waiting)):
            found.setdefault(int(jobs.queue[row]), []).append((rank, row))
        return {queue: ranks[::-1] for queue, ranks in found.items()}

    def order_queues(self, queues: Queues) -> Column:
        """Put the queue first whose next job is first, unless other plugins order queues."""
        if self.scope == "queue" or self._ssn.others_order_queues(self.name):
            return np.zeros(len(queues))
        return np.array([self._next_rank(row) for row in queues.index.tolist()])

    def _next_rank(self, queue: int) -> float:
        if self._ranks is None:
            self._ranks = self._ranked()
        ranks = self._ranks.get(queue, [])
        while ranks and (ranks[-1][1] in self._tried or not self._still_waits(ranks[-1][1])):
            ranks.pop()
        return float(ranks[-1][0]) if ranks else _LAST

    # Who may start

    def may_try(self, job: Job) -> Verdict:
        """Refuse a job for which the answer is known before it is placed."""
        line = self._line(job.queue)
        refusal = self._known_refusal(line, job.row)
        if refusal is not None:
            return refusal
        if line.promises and self._waits[job.row]:
            self._ssn.future.demand(job.row)  # now, as it is about tasks that wait
        return True

    def _known_refusal(self, line: _Line, job: int) -> Refusal | None:
        if not self._waits[job]:
            return None
        if self.mode == "strict":
            return self._behind(line) if line.first else None
        own = line.promises.get(job)
        if own is not None:
            return self._too_early(line, own)
        if not line.refused:
            return None
        demand = self._ssn.future.demand(job)
        count, end, refusal = line.refused.get(demand.kind, _NOT_REFUSED)
        return refusal if demand.count >= count and self._end(job) >= end else None

    def _too_early(self, line: _Line, own: Promise) -> Refusal | None:
        """Refuse a job before its start; one whose time has come is led to its places."""
        future = self._ssn.future
        if own.start <= future.now:
            future.nominate(own.job)
            return None
        if self._looks:
            return None
        first = next((each for row, each in line.promises.items() if row != own.job), own)
        return self._would_delay(first, own.end - own.start + future.now)

    def may_start(self, job: Job) -> Verdict:
        """Allow a job to start that delays none of the promised ones."""
        line, future = self._line(job.queue), self._ssn.future
        refusal = self._known_refusal(line, job.row)
        if refusal is not None:
            return refusal
        others, end = self._others(line, job.row), self._end(job.row)
        near = any(each.start < end for each in others)
        delayed = future.first_delayed(others) if near else None
        if delayed is None:
            return True
        refusal = self._would_delay(delayed, end)
        if self._waits[job.row]:
            demand = future.demand(job.row)
            line.refused[demand.kind] = demand.count, end, refusal
        return refusal

    def on_blocked(self, job: Job) -> None:
        """Promise a start to a job that found no room, as far as the depth allows."""
        self._tried.add(job.row)
        self._ssn.journal.tick()  # the next one of its queue may be far behind jobs of others
        if not self._waits[job.row] or job.waiting:
            return
        line = self._line(job.queue)
        line.first = line.first or job.key
        own = line.promises.get(job.row)
        if own is not None and own.start > self._ssn.future.now and not self._looks:
            return
        if own is None and len(line.promises) >= self._depth and not self._gives_way(line, job):
            return
        line.promises[job.row] = self._promise(line, job.row)
        line.refused.clear()

    def _promise(self, line: _Line, job: int) -> Promise:
        """Return the earliest start of a job, no later than it was promised if that can be kept."""
        others, future = self._others(line, job), self._ssn.future
        found, own = future.promise(job, others, later=True), line.promises.get(job)
        if own is None or not future.now < own.start < found.start:
            return found
        return own if future.first_delayed([*others, own]) is None else found

    def _gives_way(self, line: _Line, job: Job) -> bool:
        """Drop the promise to a job behind this one, if there is one."""
        behind = [row for row in line.promises if self._is_before(job.row, row)]
        if behind:
            del line.promises[behind[-1]]
        return bool(behind)

    def _is_before(self, job: int, other: int) -> bool:
        """Return whether a job had its turn before one that is first no longer."""
        if self.mode != "easy" or other in self._tried:
            return False
        queue = self._ssn.snapshot.jobs.queue
        return bool(queue[job] == queue[other]) or self._ssn.sort_jobs([job, other])[0] == job

    def _others(self, line: _Line, job: int = NOWHERE) -> list[Promise]:
        """Return the promises to other jobs that still wait, and that this one may not delay."""
        rows = [row for row in line.promises if row != job]
        if job != NOWHERE:
            rows = [row for row in rows if not self._is_before(job, row)]
        still = _lacking(self._ssn)[rows] if rows else ()
        return [line.promises[row] for row, lacks in zip(rows, still, strict=True) if lacks]

    def _still_waits(self, job: int) -> bool:
        view = self._ssn.job(job)
        return bool(self._waits[job]) and view.ready < max(view.min_member, 1)

    def _behind(self, line: _Line) -> Refusal:
        """Refuse a job because another one is first."""
        numbers = {"delayed": line.first, "start": None, "by_s": None}
        return Refusal(Why.WOULD_DELAY, numbers, Cause.WOULD_DELAY)

    def _would_delay(self, promise: Promise, end: float) -> Refusal:
        """Refuse a job that would run until some time beyond the start of another."""
        by_s = end - promise.start if math.isfinite(end) else math.inf
        numbers = {"delayed": promise.key, "start": promise.start, "by_s": by_s}
        numbers = {name: None if x == math.inf else x for name, x in numbers.items()}
        return Refusal(Why.WOULD_DELAY, numbers, Cause.WOULD_DELAY)

    def _end(self, job: int) -> float:
        (seconds,) = self._ssn.future.seconds(np.array([job]))
        return self._ssn.future.now + seconds

    def _line(self, queue: int) -> _Line:
        if not self._is_open:
            self._is_open = True
            if self.mode != "strict":
                self._recall_places()
                self._recall()
        return self._lines.setdefault(self._scope_of(queue), _Line())

    def _scope_of(self, queue: int) -> int:
        if self.scope == "cluster":
            return NOWHERE
        parent = self._ssn.snapshot.queues.parent
        if self.scope == "subtree":
            while parent[queue] != NOWHERE and parent[parent[queue]] != NOWHERE:
                queue = int(parent[queue])
        return queue

    # What outlives a cycle

    @property
    def _memory(self) -> dict[str, Any]:
        return remembered(self._ssn)

    def _recall(self) -> None:
        """Take up the promises of earlier cycles; those that cannot be kept are made again."""
        ssn, jobs = self._ssn, self._ssn.snapshot.jobs
        self._looks = self.mode == "easy" or self._has_room_early()
        for key, start in self._memory.get("starts", {}).items():
            row = jobs.row_of.get(key)
            if row is None or not jobs.listed[row] or not self._waits[row]:
                self._looks = True
                continue
            (seconds,) = ssn.future.seconds(np.array([row]))
            at = max(start, ssn.future.now)
            line = self._line(int(jobs.queue[row]))
            line.promises[row] = Promise(row, key, at, at + seconds, ssn.future.demand(row))
        for line in self._lines.values():
            if ssn.future.is_short([*line.promises.values()]):
                line.promises.clear()
                self._looks = True

    def _recall_places(self) -> None:
        """Take up where promised jobs were found places."""
        jobs, tasks, nodes = (getattr(self._ssn.snapshot, n) for n in ("jobs", "tasks", "nodes"))
        for key, places in self._memory.get("places", {}).items():
            found = {tasks.row_of.get(pod): nodes.row_of.get(node) for pod, node in places.items()}
            if key in jobs.row_of and None not in {*found, *found.values()}:
                self._ssn.future.kept[jobs.row_of[key]] = found

    def _places(self, kept: Iterable[Promise]) -> dict[str, dict[str, str]]:
        tasks, nodes = self._ssn.snapshot.tasks.keys, self._ssn.snapshot.nodes.names
        return {
            each.key: {tasks[row]: nodes[node] for row, node in places.items()}
            for each in kept
            if (places := self._ssn.future.kept.get(each.job))
        }

    def _has_room_early(self) -> bool:
        """Return whether pods ended before they were expected to, or nodes came.

        Nobody knows what came between the promises that were read and now: it may be room.
        """
        ssn, jobs = self._ssn, self._ssn.snapshot.jobs
        if "ends" not in self._memory:
            return True
        if (ssn.total > self._memory.get("total", ssn.total)[: len(ssn.total)]).any():
            return True
        for key, (end, count) in self._memory.get("ends", {}).items():
            row = jobs.row_of.get(key)
            if end > ssn.future.now and (row is None or jobs.counts[_HOLDING, row].sum() < count):
                return True
        return False

    def on_close(self, ssn: PluginSession) -> None:
        """Remember what is promised, and when the jobs that run are expected to end."""
        self._line(NOWHERE)  # also if no job had a turn
        kept = [each for line in self._lines.values() for each in self._others(line)]
        ssn.promises.update((each.job, each) for each in kept)
        starts = {each.key: float(each.start) for each in kept if math.isfinite(each.start)}
        self._memory.update(starts=starts, places=self._places(kept))
        if self.mode == "conservative":
            jobs, keys = ssn.snapshot.jobs, ssn.snapshot.jobs.keys
            due = (jobs.counts[Status.PIPELINED] > 0) & self._waits  # once pods have left its nodes
            starts |= {keys[row]: ssn.now for row in np.flatnonzero(due).tolist()}
            ends = {keys[job]: told for job, told in ssn.future.ends_of_jobs().items()}
            self._memory.update(ends=ends, total=ssn.total)

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when the next promised start is due: if it cannot be kept, that is an event."""
        if self.mode != "conservative" and ssn.started_at is None:
            return None
        starts = (each.start for each in ssn.promises.values())
        return min((start for start in starts if ssn.future.now < start < math.inf), default=None)


def _waiting(ssn: PluginSession) -> Mask:
    """Mark the jobs that have fewer tasks on nodes than they need to start (n,)."""
    jobs = ssn.snapshot.jobs
    waits: Mask = (jobs.counts[PENDING] > 0) & _lacking(ssn)
    return waits


def _lacking(ssn: PluginSession) -> Mask:
    """Mark the jobs that have fewer tasks on nodes at this moment than they need (n,)."""
    jobs = ssn.snapshot.jobs
    ready = jobs.counts[[*_HOLDING, int(Status.SUCCEEDED)]].sum(axis=0)
    lacks: Mask = ready < np.maximum(jobs.min_member, 1)
    return lacks
