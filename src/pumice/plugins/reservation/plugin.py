"""reservation: a job that finds no room gets a start time, and jobs behind it do not delay it."""

import math
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from pumice.api.codes import Cause
from pumice.api.duration import parse_duration
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.status import HOLDING, PENDING, Status
from pumice.core.tables import NOWHERE
from pumice.core.views import Job
from pumice.errors import InputError
from pumice.framework.arguments import Duration, Fault, arg
from pumice.framework.columns import Queues
from pumice.framework.future.promise_changes import remembered
from pumice.framework.future.promises import Demand, Profile, Promise
from pumice.framework.future.room import RunTimes, overdue_pods
from pumice.framework.plugin import Plugin, Refusal, Verdict, Why
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.plugins.reservation.run_history import HISTORY, RunHistory, kind_of

MODES: Final = ("strict", "easy", "conservative")
SCOPES: Final = ("cluster", "queue", "subtree")
NEVER: Final = "never"
_LAST: Final = 2.0**62
"""The rank of a queue without jobs; keys must be finite."""
_DEPTHS: Final = {"strict": 1, "easy": 1, "conservative": sys.maxsize}


@dataclass
class _Line:
    """The jobs of a scope that wait with a promise, in the order of their turns."""

    promises: dict[int, Promise] = field(default_factory=dict)
    first: str = ""
    """The first job that found no room in this cycle."""
    due: set[int] = field(default_factory=set)
    """Jobs that have places once pods are gone; the depth does not count them."""
    mark: int = -1
    """The length of the journal that profiles are of."""
    profiles: dict[Hashable, Profile | None] = field(default_factory=dict)
    """Room for pods of each kind beside the promises; None where counting is not enough."""

    def keep(self, promise: Promise) -> None:
        """Promise a start, in place of an earlier one."""
        kind, old = promise.demand.kind, self.promises.get(promise.job)
        profile = self.profiles.get(kind)
        self.profiles = {kind: profile} if kind in self.profiles else {}
        self.promises[promise.job] = promise
        if profile is not None:
            if old is not None:
                profile.put(old, back=True)
            profile.put(promise)

    @property
    def depth(self) -> int:
        """How many jobs are promised a start, beside those that wait for leaving pods."""
        return len(self.promises.keys() - self.due)

    def drop(self, job: int) -> None:
        """Forget the promise to a job, if it has one."""
        if self.promises.pop(job, None) is not None:
            self.profiles = {}


@dataclass(kw_only=True)
class Reservation(Plugin, name="reservation"):
    """Promise starts to jobs that find no room; others start only if they delay none of these."""

    simulator = SimulatorAssumptions(all_jobs=True)
    admits_all = True  # one that waits to be admitted could not be promised a start
    mode: str = arg(
        "reservation.mode",
        default="easy",
        choices=MODES,
        doc="`strict`: no job passes the first one without room; `easy`: jobs that do not delay "
        "it may; `conservative`: every job without room has a start that no other may delay",
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
    learn: bool = arg(
        "reservation.learn",
        default=False,
        doc="learn how long jobs run that state nothing from equal ones that ended",
    )
    learn_quantile: float = arg(
        "reservation.learnQuantile",
        default=0.95,
        above=0,
        maximum=1.0,
        doc="part of the ended jobs that ran no longer than what is expected of the next ones",
    )
    config_map: str = arg(
        "reservation.configMap",
        default="volcano-system/pumice-run-times",
        doc="namespace and name of the ConfigMap with what was learned",
    )
    min_priority: int = arg(
        "reservation.minPriority",
        default=-(2**31),
        doc="others are held back only for jobs of at least this priority",
    )
    max_hold: Duration = arg(
        "reservation.maxHold",
        default=Duration(0.0),
        minimum=0.0,
        doc="others are held back for a job from so long before its start on; 0: from the first",
    )
    suffices_within: Duration = arg(
        "reservation.sufficesWithin",
        default=Duration(0.0),
        minimum=0.0,
        doc="no pod is evicted for a job that is promised a start within this time",
    )
    enforce_walltime: bool = arg(
        "reservation.enforceWalltime",
        default=False,
        doc="evict pods that run longer than their bound; needs the action `shuffle`",
    )

    def faults(self) -> Iterable[Fault]:
        """Report what cannot be read, and a bound that no action enforces."""
        if self._unknown_s is None:
            wanted = "never, or a duration such as 1h30m"
            yield Fault("reservation.unknownEnds", wanted, self.unknown_ends)
        if self.config_map.count("/") != 1 or not all(self.config_map.split("/")):
            wanted = "a namespace, a slash and a name"
            yield Fault("reservation.configMap", wanted, self.config_map)
        if self.enforce_walltime:
            wanted, hint = "the action shuffle beside it", "without it no pod is evicted"
            on = self.enforce_walltime
            yield Fault("reservation.enforceWalltime", wanted, on, hint, "odd", "shuffle")

    def config_maps(self) -> Iterable[str]:
        """Return the ConfigMap with what was learned."""
        return [self.config_map] if self.learn and self.config_map.count("/") == 1 else []

    def learned_seconds(self, snapshot: Snapshot) -> Callable[[int], float | None] | None:
        """Return what was learned of jobs that state nothing, if that is asked for."""
        if not self.learn:
            return None
        known = RunHistory.read(snapshot, self.config_map)
        return lambda job: known.expected(kind_of(snapshot, job), self.learn_quantile)

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
        RunTimes.of(ssn.snapshot).learned = self._learned if self.learn else None
        self._lines: dict[int, _Line] = {}
        self._tried: set[int] = set()
        self._ranks: dict[int, list[tuple[int, int]]] | None = None
        self._place: dict[int, int] = {}
        """The place of each job in the order, where some have no turn."""
        self._silent: deque[int] = deque()
        """Jobs without a turn that are promised a start in their place."""
        self._cleared = NOWHERE
        """The job that is being tried, if counting shows that it delays nobody."""
        self._waits = _waiting(ssn)
        self._pods_leave = bool((ssn.snapshot.tasks.status == Status.RELEASING).any())
        self._looks = True
        """Whether jobs that have a promise are looked at again."""
        self._is_live = False
        """Whether what is said of jobs is written, so that it should not change back and forth."""
        self._is_open = False

    @property
    def _history(self) -> RunHistory:
        known = self._memory
        if HISTORY not in known:
            known[HISTORY] = RunHistory.read(self._ssn.snapshot, self.config_map)
        found: RunHistory = known[HISTORY]
        return found

    def _learned(self, job: int) -> float | None:
        return self._history.expected(kind_of(self._ssn.snapshot, job), self.learn_quantile)

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
        if self.scope == "queue" or self._is_ordered:
            return np.zeros(len(queues))
        return np.array([self._next_rank(row) for row in queues.index.tolist()])

    @cached_property
    def _is_ordered(self) -> bool:
        return self._ssn.others_order_queues(self.name)

    def _next_rank(self, queue: int) -> float:
        if self._ranks is None:
            self._ranks = self._ranked()
        ranks = self._ranks.get(queue, [])
        while ranks and (ranks[-1][1] in self._tried or not self._still_waits(ranks[-1][1])):
            ranks.pop()
        return float(ranks[-1][0]) if ranks else _LAST

    # Who may start

    def refused_ahead(self, jobs: list[int], known: Mask) -> list[int]:
        """Return known jobs that need no turn: they find no room, or may not start yet.

        Those that are to be promised a start get one in their place in the order.
        """
        ssn, table = self._ssn, self._ssn.snapshot.jobs
        self._is_live = True
        several = len({*table.queue[jobs].tolist()}) > 1
        if (several and (self.scope != "cluster" or self._is_ordered)) or self.max_hold:
            return []
        line, order = self._line(int(table.queue[jobs[0]])), ssn.sort_jobs(jobs)
        lacks = self._waits & (table.n_pending_best_effort == 0)
        waiting = [row for row in order if lacks[row]]
        blocked = ssn.future.without_room(waiting, in_line=self.mode != "conservative")
        left = self._depth
        if self.mode == "conservative":
            left -= line.depth
        skipped: list[int] = []
        silent: list[int] = []
        for row in waiting:
            own, takes = line.promises.get(row), table.priority[row] >= self.min_priority
            if self._is_early(own) or (self.mode == "strict" and left < self._depth):
                skipped.append(row)
            elif row in blocked and own is None and (not takes or left <= 0):
                skipped.append(row)
                if takes and self.mode != "strict":  # one before it may have no start
                    silent.append(row)
            elif row in blocked and takes:
                if own is None or self.mode != "conservative":
                    left -= 1
                if self.mode == "conservative":
                    silent.append(row)
                    skipped.append(row)
        skipped = [row for row in skipped if known[row]]
        self._silent.extend(row for row in silent if known[row])
        self._place = {row: place for place, row in enumerate(order)}
        self._tried.update(skipped)
        return skipped

    def _is_early(self, own: Promise | None) -> bool:
        """Return whether it is known of a promised job that it does not start yet."""
        if own is None or self.mode != "conservative" or self._looks:
            return False
        return own.start > self._ssn.future.now

    def _catch_up(self, job: int = NOWHERE) -> None:
        """Promise starts to the jobs without a turn that come before a job; by default, to all."""
        until = self._place.get(job, len(self._place))
        while self._silent and self._place[self._silent[0]] < until:
            row = self._silent.popleft()
            line = self._line(int(self._ssn.snapshot.jobs.queue[row]))
            if row in line.promises or line.depth < self._depth:
                self._reserve(line, row)

    def may_try(self, job: Job) -> Verdict:
        """Refuse a job for which the answer is known before it is placed."""
        self._catch_up(job.row)
        self._cleared = NOWHERE
        line = self._line(job.queue)
        refusal = self._known_refusal(line, job.row)
        if refusal is not None:
            return refusal
        if self._waits[job.row] and (line.promises or self._pods_leave):
            self._ssn.future.demand(job.row)  # now, as it is about tasks that wait
        return True

    def _known_refusal(self, line: _Line, job: int) -> Refusal | None:
        if not self._waits[job]:
            return None
        if self.mode == "strict":
            holds = line.first and self._holding(line.promises.values())
            return self._behind(line) if holds else None
        own, now = line.promises.get(job), self._ssn.future.now
        if own is not None and self._is_early(own):
            return self._early_refusal(line, own) if self._is_live else self._too_early(line, own)
        demand = self._ssn.future.demand(job)
        profile = self._profile(line, demand) if line.promises else None
        if own is not None and profile is None:
            self._ssn.future.lead(own)
        if own is not None and own.start <= now:  # its time has come
            self._clear(job, is_sure=profile is not None)
        elif profile is not None and demand.count <= profile.now:
            return self._delays(line, job, profile)
        return None  # it is not sure, or it finds no room and leaves others all that they have

    def _early_refusal(self, line: _Line, own: Promise) -> Refusal | None:
        """Refuse a job whose time has not come as if it were looked at again.

        None where it finds no room for all that is known: it is placed in vain, and that is said.
        """
        profile = self._profile(line, own.demand)
        if profile is None or own.demand.count > profile.now:
            return None
        refusal = self._delays(line, own.job, profile) or self._too_early(line, own)
        self._cleared = NOWHERE
        return refusal

    def _too_early(self, line: _Line, own: Promise) -> Refusal:
        """Refuse a job whose time has not come, as nothing ended early."""
        return self._would_delay((self._others(line, own.job) or [own])[0], self._end(own.job))

    def _delays(self, line: _Line, job: int, profile: Profile) -> Refusal | None:
        """Refuse a job that has room if it would delay another one; else it is cleared."""
        own, demand = line.promises.get(job), self._ssn.future.demand(job)
        if self.mode == "easy" and (own is not None or self._is_ahead(line, job)):
            return None
        with profile.without(own):
            at = profile.short(demand.count, self._end(job))
        self._clear(job, is_sure=at is None)
        if at is None:
            return None
        others = self._others(line, job)
        delayed = next((each for each in others if each.start <= at < each.end), others[0])
        return self._would_delay(delayed, self._end(job))

    def _is_ahead(self, line: _Line, job: int) -> bool:
        """Return whether a job comes before the first that is promised a start."""
        others = self._others(line)
        return not others or self._is_before(job, others[0].job)

    def _clear(self, job: int, *, is_sure: bool) -> None:
        self._cleared = job if is_sure and self._still_waits(job) else NOWHERE

    def _profile(self, line: _Line, demand: Demand) -> Profile | None:
        """Return the room for such pods beside promises; None if counting is not enough."""
        mark = self._ssn.journal.mark()
        if line.mark != mark:
            line.mark, line.profiles = mark, {}
        if demand.kind not in line.profiles:
            made = None
            if not self.max_hold:  # else some promises hold nobody back
                made = self._ssn.future.profile(demand, self._others(line))
            line.profiles[demand.kind] = made
        return line.profiles[demand.kind]

    def may_start(self, job: Job) -> Verdict:
        """Allow a job to start that delays none of the promised ones."""
        line, future = self._line(job.queue), self._ssn.future
        if self._cleared == job.row:
            return True
        if self.mode == "strict":
            refusal = self._known_refusal(line, job.row)
            return True if refusal is None else refusal
        own = line.promises.get(job.row)
        if own is not None and self._is_early(own):
            return self._too_early(line, own)
        others, end = self._holding(self._others(line, job.row)), self._end(job.row)
        near = any(each.start < end for each in others)
        delayed = future.first_delayed(others) if near else None
        if delayed is None:
            return True
        return self._would_delay(delayed, end)

    def on_blocked(self, job: Job) -> None:
        """Promise a start to a job that found no room, as far as the depth allows."""
        self._catch_up(job.row)
        self._tried.add(job.row)
        self._ssn.journal.tick()  # the next one of its queue may be far behind jobs of others
        if not self._waits[job.row] or job.priority < self.min_priority:
            return
        line = self._line(job.queue)
        line.first = line.first or job.key
        own = line.promises.get(job.row)
        if self._is_early(own):
            return
        last = NOWHERE
        if job.waiting:
            line.due.add(job.row)
        elif own is None and line.depth >= self._depth:
            last = self._last_behind(line, job.row)
            if last == NOWHERE:
                return
        self._reserve(line, job.row, instead_of=last)

    def _reserve(self, line: _Line, job: int, instead_of: int = NOWHERE) -> None:
        """Promise a job its earliest start; one for which none is foreseen holds nobody back."""
        found = self._promise(line, job)
        if math.isinf(found.start) and self.mode != "strict":
            line.drop(job)
        else:
            line.drop(instead_of)
            line.keep(found)

    def _promise(self, line: _Line, job: int) -> Promise:
        """Return the earliest start of a job, no later than it was promised if that can be kept."""
        future, own = self._ssn.future, line.promises.get(job)
        demand = future.demand(job)
        profile = self._profile(line, demand) if self.mode == "conservative" else None
        if profile is not None:
            asked = demand.count, future.longest(job)
            with profile.without(own):
                start = profile.earliest(*asked)
                start = start if start > future.now else profile.earliest(*asked, later=True)
            return Promise(job, self._ssn.snapshot.jobs.keys[job], start, start + asked[1], demand)
        others = self._others(line, job)
        if own is None or own.start <= future.now or future.first_delayed([*others, own]):
            return future.promise(job, others)
        found = future.promise(job, others, own.start)
        return found if found.start < own.start else own

    def _last_behind(self, line: _Line, job: int) -> int:
        """Return the last promised job behind this one, which gives way to it, if there is one."""
        if self.mode != "easy":
            return NOWHERE
        behind = [row for row in line.promises if self._is_before(job, row)]
        return behind[-1] if behind else NOWHERE

    def _is_before(self, job: int, other: int) -> bool:
        """Return whether a job had its turn before one that is first no longer."""
        if other in self._tried:
            return False
        queue = self._ssn.snapshot.jobs.queue
        return bool(queue[job] == queue[other]) or self._ssn.sort_jobs([job, other])[0] == job

    def _others(self, line: _Line, job: int = NOWHERE) -> list[Promise]:
        """Return the promises to other jobs that still wait, and that this one may not delay."""
        rows = [row for row in line.promises if row != job]
        if job != NOWHERE and self.mode == "easy":
            rows = [row for row in rows if not self._is_before(job, row)]
        still = _lacking(self._ssn)[rows] if rows else ()
        return [line.promises[row] for row, lacks in zip(rows, still, strict=True) if lacks]

    def _holding(self, promises: Iterable[Promise]) -> list[Promise]:
        """Return the promises for which others are held back already."""
        last = self._ssn.future.now + (self.max_hold or math.inf)
        return [each for each in promises if each.start <= last]

    # Who is evicted

    def job_starving(self, job: Job) -> bool:
        """Refuse to evict others for a job that is promised a start within the stated time."""
        self._catch_up()
        own = self._line(job.queue).promises.get(job.row)
        soon = self._ssn.future.now + self.suffices_within
        is_soon = self.suffices_within > 0 and own is not None and own.start <= soon
        return job.ready + job.waiting < len(job.tasks) and not is_soon

    def victims(self, running: list[int]) -> list[int]:
        """Name the pods that run longer than their bound, if that is enforced."""
        return (
            overdue_pods(self._ssn.snapshot, running, self._ssn.now)
            if self.enforce_walltime
            else []
        )

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
        return self._ssn.future.now + self._ssn.future.longest(job)

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
        known = self._memory.get("starts", {})
        rows = {key: row for key in known if (row := jobs.row_of.get(key)) is not None}
        waits = self._waits & jobs.listed
        rows = {key: row for key, row in rows.items() if waits[row]}
        self._looks |= len(rows) < len(known)
        lasts = ssn.future.seconds(np.array([*rows.values()], dtype=np.intp))
        for (key, row), seconds in zip(rows.items(), lasts, strict=True):
            at, line = max(known[key], ssn.future.now), self._line(int(jobs.queue[row]))
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
        held, row_of, now = jobs.counts[HOLDING].sum(axis=0).tolist(), jobs.row_of, ssn.future.now
        return any(
            end > now and (key not in row_of or held[row_of[key]] < count)
            for key, (end, count) in self._memory["ends"].items()
        )

    def on_close(self, ssn: PluginSession) -> None:
        """Remember what is promised, and when the jobs that run are expected to end."""
        self._line(NOWHERE)  # also if no job had a turn
        self._catch_up()
        if self.learn:
            self._history.observe(ssn, self.learn_quantile)
            self._history.store(ssn, self.config_map)
        kept = [each for line in self._lines.values() for each in self._others(line)]
        ssn.promises.update((each.job, each) for each in kept)
        starts = {each.key: float(each.start) for each in kept if math.isfinite(each.start)}
        self._memory.update(starts=starts, places=self._places(kept))
        if self.mode == "conservative":
            keys = ssn.snapshot.jobs.keys
            ends = {keys[job]: told for job, told in ssn.future.ends_of_jobs().items()}
            self._memory.update(ends=ends, total=ssn.total)

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when the next promised start is due: if it cannot be kept, that is an event."""
        now, times = ssn.future.now, [math.inf]
        if self.mode == "conservative" or ssn.started_at is not None:
            times += [each.start for each in ssn.promises.values()]
        if self.enforce_walltime:
            times += [end for end, _ in ssn.future.ends_of_jobs().values()]
        soonest = min(at for at in times if at > now)
        return None if math.isinf(soonest) else soonest


def _waiting(ssn: PluginSession) -> Mask:
    """Mark the jobs that have fewer tasks on nodes than they need to start (n,)."""
    jobs = ssn.snapshot.jobs
    waits: Mask = (jobs.counts[PENDING] > 0) & _lacking(ssn)
    return waits


def _lacking(ssn: PluginSession) -> Mask:
    """Mark the jobs that have fewer tasks on nodes at this moment than they need (n,)."""
    jobs = ssn.snapshot.jobs
    ready = jobs.counts[[*HOLDING, int(Status.SUCCEEDED)]].sum(axis=0)
    lacks: Mask = ready < np.maximum(jobs.min_member, 1)
    return lacks
