"""When a waiting job can start, beside running jobs and what others are promised.

Where counting is not enough, promises are played on the session's own tables: pods end, promised
jobs take their places.  Placing asks every plugin as it does now, so all that decides placement
counts.  The journal puts everything back.
"""

import math
from collections import deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from pumice.core.resources import Column, IndexArray
from pumice.core.status import Status
from pumice.framework.future.demands import Demands
from pumice.framework.future.promises import Demand, Profile, Promise
from pumice.framework.future.room import Room, RunEnds, RunTimes, snapped
from pumice.framework.job_placement import JobMemory, JobPlacement
from pumice.framework.plugin import Plugin
from pumice.framework.refusals import Records, Verdict
from pumice.framework.session_state import SessionState
from pumice.framework.statement import Statement
from pumice.framework.topology.search import DomainSearch

_MOST_TRIES = 24
"""Times at which a job is tried that counting cannot place for certain; steps double between."""

_MOST_PLAYED = 100
"""Pods that are moved to find out where promised ones go, if counting them is enough."""

Places = dict[int, dict[int, int]]
"""Job to its pods and their nodes, all by row."""


class Play:
    """One course of events from now on."""

    def __init__(
        self, state: SessionState, ends: RunEnds, kept: Places, closing: Column | None
    ) -> None:
        self._state = state
        self._closing = closing
        """When nodes stop taking pods (n,)."""
        self._ends = ends
        self._kept = kept
        """Places that jobs take first."""
        self._ended = 0
        self._running: list[Promise] = []
        self._placed: dict[int, list[int]] = {}

    def run(self, promises: Sequence[Promise]) -> Places | Promise:
        """Play promises in the order of their starts; return the first that finds no place."""
        places: Places = {}
        with _aside(self._state) as stmt:
            self._begin(stmt)
            for promise in sorted(promises, key=lambda each: each.start):
                self._advance(stmt, promise.start)
                if promise.job in self._kept:
                    lead(self._state, promise.job, self._kept[promise.job])
                rows = self._place(stmt, promise.job, promise.start)
                if not rows:
                    return promise
                nodes = self._state.snapshot.tasks.node[rows].tolist()
                places[promise.job] = dict(zip(rows, nodes, strict=True))
                self._placed[promise.job] = rows
                self._running.append(promise)
        return places

    def _begin(self, stmt: Statement) -> None:
        """Take back places of jobs that wait, and the room that leaving pods still hold."""
        snapshot = self._state.snapshot
        for row in self._ends.set_aside.tolist():
            stmt.take_back(row)
        for row in self._ends.leaving.tolist():
            snapshot.linger(row)

    def _advance(self, stmt: Statement, moment: float) -> None:
        """End what has ended by then."""
        times, first = self._ends.times, self._ended
        self._ended = int(times.searchsorted(moment, side="right"))
        if self._ended > first:
            rows = self._ends.rows[first : self._ended]
            leaving = self._state.snapshot.tasks.status[rows] == Status.RELEASING
            stmt.evict_many(rows[~leaving].tolist(), "end")
            for row in rows[np.isin(rows, self._ends.leaving)].tolist():
                stmt.depart(row)
        over = [each for each in self._running if each.end <= moment]
        for promise in over:
            self._running.remove(promise)
            self._end(stmt, self._placed[promise.job])

    def _end(self, stmt: Statement, rows: list[int]) -> None:
        status = self._state.snapshot.tasks.status
        for row in rows:
            if status[row] == Status.PIPELINED:
                stmt.unpipeline(row)
            else:
                stmt.evict(row, "end")

    def _place(self, stmt: Statement, job: int, moment: float) -> list[int]:
        """Place what a job takes to start; empty if it finds too little."""
        state, mark = self._state, stmt.checkpoint()
        view, least = state.job(job), state.job(job).ready + 1
        nodes = None if self._closing is None else self._closing > moment

        def is_done() -> Verdict:
            found = view.ready + view.waiting
            if found + view.pending_best_effort < max(view.min_member, least):
                return False
            return state.policy.job_ready(job) or state.policy.job_pipelined(job)

        if state.topology.needs_search(job):
            search = DomainSearch(state, purpose="ahead", nodes=nodes)
            search.place(stmt, job, search.worksheet(job))
        else:
            tasks = deque(state.ordering.sort_tasks(state.tasks_to_allocate(job)))
            on_placed = state.topology.follow_job(job)
            JobPlacement(
                state, job, tasks, JobMemory(), is_done, allowed=nodes, on_placed=on_placed
            ).run(stmt)
            state.topology.stop_following()
        return [task for task, _, _ in stmt.moves_since(mark)] if is_done() else []


def lead(state: SessionState, job: int, places: Mapping[int, int]) -> None:
    """Make pods (rows) of a job try some nodes first, until the journal is rolled back."""
    nominated = state.snapshot.tasks.nominated
    state.topology.led.add(job)
    for row, node in places.items():
        state.journal.save(nominated, row)
        nominated[row] = node


@contextmanager
def _aside(state: SessionState) -> Iterator[Statement]:
    """Open a statement of which nothing is left afterwards, records and draws included."""
    records, draws = state.records, state.placing.state
    state.records = Records(state.snapshot)
    stmt = Statement(state)
    mark = stmt.checkpoint()
    try:
        yield stmt
    finally:
        stmt.rollback(mark)
        state.records, state.placing.state = records, draws


class Future:
    """The future of a session as it stands; its answers follow every move."""

    def __init__(self, state: SessionState, now: float) -> None:
        self._state = state
        self.now: float = snapped(now)
        """This moment, to the microsecond."""
        self.unknown_s = math.inf
        """How long jobs run of which nobody states it."""
        self.kept: Places = {}
        """Where promised jobs were in the latest course of events in which all found places."""
        self._known: tuple[int, RunEnds, Room] | None = None
        self._kept_room: tuple[int, RunEnds, Room] | None = None
        self._seconds: dict[int, float] = {}

    @cached_property
    def _closing(self) -> Column | None:
        """When nodes stop taking pods (n,); None if they all stay as they are."""
        hooks = self._state.hooks
        asked = (hooks.ask_aside(each, Plugin.closes_at)() for each in hooks.plugins)
        times = [each for each in asked if each is not None]
        closing = np.min(times, axis=0) if times else np.full(1, math.inf)
        return closing if np.isfinite(closing).any() else None

    @cached_property
    def _demands(self) -> Demands:
        return Demands(self._state, nodes_close=self._closing is not None)

    def _play(self, promises: Sequence[Promise], kept: Places) -> Places | Promise:
        return Play(self._state, self._ends(), kept, self._closing).run(promises)

    def seconds(self, jobs: IndexArray) -> list[float]:
        """Return how long jobs (rows) run at most."""
        found = RunTimes.of(self._state.snapshot).longest(jobs, self.unknown_s)
        return found.tolist()

    def longest(self, job: int) -> float:
        """Return how long a job (row) runs at most."""
        if job not in self._seconds:
            (self._seconds[job],) = self.seconds(np.array([job]))
        return self._seconds[job]

    def promise(self, job: int, others: Sequence[Promise], before: float = math.inf) -> Promise:
        """Return the earliest start of a job beside all others that finds no place now.

        Infinite if it has none ``before`` some time.
        """
        demand, seconds = self.demand(job), self.longest(job)
        key, room = self._state.snapshot.jobs.keys[job], self._settled_room()
        start = room.earliest(demand, seconds, others, self.now)
        if start <= self.now:
            start = room.earliest(demand, seconds, others, room.next_after(self.now, others))
        found = Promise(job, key, start, start + seconds, demand)
        if start >= before or self._is_certain([*others, found]):
            return found
        return self._played(found, seconds, others, before)

    def _played(
        self, found: Promise, seconds: float, others: Sequence[Promise], before: float
    ) -> Promise:
        """Look for the first time at which a job finds places when all promises are played."""
        room, step = self._room(), 1
        for _ in range(_MOST_TRIES):
            if found.start >= before or not isinstance(self._course([*others, found]), Promise):
                return found
            after = found.start
            for _ in range(step):
                after = room.next_after(after, others)
            start = math.inf
            if not math.isinf(after):
                start = room.earliest(found.demand, seconds, others, after)
            found, step = found._replace(start=start, end=start + seconds), 2 * step
        return found._replace(start=math.inf, end=math.inf)

    def first_delayed(self, promises: Sequence[Promise]) -> Promise | None:
        """Return a promise that cannot be kept as things stand now."""
        short = self._room().short_for(promises)
        if short is not None or self._is_certain(promises):
            return short
        played = self._course(promises)
        return played if isinstance(played, Promise) else None

    def is_short(self, promises: Sequence[Promise]) -> bool:
        """Return whether there is too little room for promises, by counting alone."""
        return self._room().short_for(promises) is not None

    def ends_of_jobs(self) -> dict[int, tuple[float, int]]:
        """Return when running jobs (rows) are expected to end, and how many pods they have."""
        ends = self._ends()
        jobs = self._state.snapshot.tasks.job[ends.rows]
        rows, first, counts = np.unique(jobs, return_index=True, return_counts=True)
        times = ends.times[first]
        return dict(
            zip(rows.tolist(), zip(times.tolist(), counts.tolist(), strict=True), strict=True)
        )

    def places(self, promises: Sequence[Promise]) -> dict[int, list[int]] | Promise:
        """Return on which nodes promised jobs will be, or one that will find no place.

        Many plain pods are counted: which of the equal nodes they will have is open anyway.
        """
        known = [each for each in promises if math.isfinite(each.start)]
        ended = self._ends().times.searchsorted(max((each.start for each in known), default=0.0))
        if ended + sum(each.demand.count for each in known) > _MOST_PLAYED:
            room = self._settled_room()
            if self._is_certain(promises):
                return room.places(known)
        found = self._course(known, keep=False)
        if isinstance(found, Promise):
            return found
        return {job: [*places.values()] for job, places in found.items()}

    def _course(self, promises: Sequence[Promise], *, keep: bool = True) -> Places | Promise:
        """Play a course of events; return where promised jobs are, or one that finds no place.

        Room that appears early may lead jobs to places that are worse for others; then those of
        the last time are taken.
        """
        found = self._play(promises, {})
        if isinstance(found, Promise) and self.kept:
            found = self._play(promises, self.kept)
        if not isinstance(found, Promise) and keep:
            self.kept.update(found)
        return found

    def lead(self, promise: Promise) -> None:
        """Lead a job to the places that it was found last, if they have room now."""
        now = [promise.moved(self.now)]
        places = self.kept.get(promise.job)
        if places and not isinstance(self._play(now, self.kept), Promise):
            lead(self._state, promise.job, places)

    def _ends(self) -> RunEnds:
        return self._now()[1]

    def _room(self) -> Room:
        return self._now()[2]

    def _now(self) -> tuple[int, RunEnds, Room]:
        """Return the state as it stands, with places that may be rolled back."""
        moved = len(self._state.journal.moved)
        if self._known is None or self._known[0] != moved:
            self._known = moved, *self._made()
        return self._known

    def _settled_room(self) -> Room:
        """Return the room beside what is kept; asked while nothing is being tried."""
        mark = self._state.journal.mark()
        if self._kept_room is None or self._kept_room[0] != mark:
            self._kept_room = mark, *self._made()
        self._known = len(self._state.journal.moved), *self._kept_room[1:]
        return self._kept_room[2]

    def _made(self) -> tuple[RunEnds, Room]:
        ends = RunEnds(self._state.snapshot, self.now, self.unknown_s)
        return ends, Room(self._state.snapshot, ends)

    def _is_certain(self, promises: Sequence[Promise]) -> bool:
        """Return whether counting alone shows that promises can be kept."""
        kinds = {each.demand.kind for each in promises}
        return len(kinds) < 2 and all(p.demand.plain for p in promises)

    def demand(self, job: int) -> Demand:
        """Return the least that a job takes to start; asked first while its tasks wait."""
        return self._demands.of(job)

    def profile(self, demand: Demand, promises: Sequence[Promise]) -> Profile | None:
        """Return the room for such pods beside promises; None if counting is not enough."""
        kinds = {each.demand.kind for each in promises} | {demand.kind}
        room = self._settled_room()
        if not demand.plain or len(kinds) > 1 or not self._is_certain(promises):
            return None
        made = room.profile(demand)
        made.add(promises)
        return made

    def without_room(self, jobs: Sequence[int], *, in_line: bool = False) -> set[int]:
        """Return those of some jobs that surely find too little room now, and while pods stay.

        ``in_line``: while nobody lacks room, each starts before those behind it.
        """
        room, slots = self._settled_room(), dict[Hashable, float]()
        if not self._ends().is_settled:
            return set()
        demands = [self.demand(job) for job in jobs]
        in_line &= len({each.kind for each in demands}) == 1 and all(p.plain for p in demands)
        found = set()
        for job, demand in zip(jobs, demands, strict=True):
            if demand.kind not in slots:
                no_kind = demand.kind is None
                slots[demand.kind] = math.inf if no_kind else room.slots_now(demand)
            if demand.count > slots[demand.kind]:
                found.add(job)
            elif in_line and not found:
                slots[demand.kind] -= demand.count
        return found
