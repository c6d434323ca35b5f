"""tdm: lend nodes to pods that can be evicted again, during certain hours of the day (UTC)."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import (
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    PREEMPTABLE,
    REVOCABLE_ZONE,
)
from pumice.api.codes import Cause
from pumice.api.meta import is_true
from pumice.core.resources import Column, Mask
from pumice.core.status import FINISHED, Status
from pumice.core.tables import NOWHERE, Shape
from pumice.core.views import Job, NodeFacts, Task
from pumice.framework.arguments import Duration, Fault, arg, arg_pattern
from pumice.framework.columns import Jobs
from pumice.framework.plugin import PERMIT, REJECT, Codes, Plugin, Reason
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession

_NOT_REVOCABLE = 1
_DAY = 86400
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_NUMBER = re.compile(r"([+-]?[0-9]+)(%?)")


def _closed(text: str) -> Reason:
    return Reason(text, curable=False, code=Cause.WINDOW_CLOSED)


@dataclass(kw_only=True)
class Tdm(Plugin, name="tdm"):
    """Open the nodes of a revocable zone only in its window, and only to revocable pods.

    When the window is over, shuffle evicts preemptable pods, a few at a time for each job.
    """

    foreseeable = True
    simulator = SimulatorAssumptions(all_jobs=True)
    reasons: ClassVar[tuple[Reason, ...]] = (_closed("not allow to dispatch to revocable node"),)
    windows: dict[str, str] = arg_pattern(
        "tdm.revocable-zone.*", doc="hours of a zone in UTC, such as 10:00-21:00"
    )
    evict_period: Duration = arg(
        "tdm.evict.period", default=Duration(60.0), doc="shortest time between two evictions"
    )

    def faults(self) -> Iterator[Fault]:
        """Report windows that cannot be read."""
        for zone, hours in self.windows.items():
            if _read_window(hours) is None:
                key, hint = f"tdm.revocable-zone.{zone}", "the zone stays closed"
                yield Fault(key, "hours such as 10:00-21:00", hours, hint)

    def on_open(self, ssn: PluginSession) -> None:
        """Find the zones that are open now, and the jobs that may be preempted as a whole."""
        snapshot = ssn.snapshot
        self._ssn, self._snapshot = ssn, snapshot
        self._waits_for_turn = False
        self._zones = [labels.get(REVOCABLE_ZONE, "") for labels in snapshot.nodes.labels]
        open_zones = {zone for zone, hours in self.windows.items() if _is_open(hours, ssn.now)}
        self._closed_zones = frozenset(self.windows) - open_zones
        self._revocable = np.array([zone != "" for zone in self._zones], dtype=bool)
        self._open = np.array([zone in open_zones for zone in self._zones], dtype=bool)
        closed = sorted({*self._zones} - open_zones - {""})
        self.reasons = (  # type: ignore[misc]  # distinguished apart by the zones that nodes name
            *type(self).reasons,
            *(_closed(self._hours_text(zone)) for zone in closed),
        )
        codes = {zone: code for code, zone in enumerate(closed, _NOT_REVOCABLE + 1)}
        self._closed = np.array([codes.get(zone, 0) for zone in self._zones], dtype=np.int16)
        self._preemptable = np.zeros(snapshot.jobs.n)
        for row in ssn.jobs():
            self._preemptable[row] = _is_preemptable(ssn.job(row))

    def filter_shape(self, shape: Shape, facts: NodeFacts) -> Codes:
        """Close revocable nodes outside their hours to all, inside to pods that must stay."""
        inside = 0 if _is_revocable(shape) else _NOT_REVOCABLE
        codes = np.where(self._open[facts.rows], inside, self._closed[facts.rows])
        return codes.astype(np.int16)

    def _hours_text(self, zone: str) -> str:
        hours = self.windows.get(zone)
        if hours is None:
            return f"revocable zone {zone} not support"
        return f"current time beyond revocable zone {zone}:{hours}"

    def score_shape(self, shape: Shape, facts: NodeFacts) -> Column | None:
        """Prefer open revocable nodes for pods that may use them."""
        return np.where(self._open[facts.rows], 100.0, 0.0) if _is_revocable(shape) else None

    def order_jobs(self, jobs: Jobs) -> Column:
        """Put jobs that may not be preempted first."""
        return self._preemptable[jobs.rows]

    def job_pipelined(self, job: Job) -> int:
        """Count placed and pipelined tasks against the minimum number."""
        enough = job.ready + job.waiting + job.pending_best_effort >= job.min_member
        return PERMIT if enough else REJECT

    def job_starving(self, job: Job) -> bool:
        """Allow a job that may not be preempted to evict others for any task it waits for."""
        return not self._preemptable[job.row] and job.counts[Status.PENDING] > 0

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        """Offer preemptable work on ordinary nodes, as much of each job as its budget allows."""
        mask = self.bound_victims("preemptable", preemptor, np.array(candidates, dtype=np.intp))
        left: dict[int, int] = {}
        for i in np.flatnonzero(mask).tolist():
            job = int(self._snapshot.tasks.job[candidates[i]])
            if job not in left:
                left[job] = _budget(Job(self._snapshot, job))
            mask[i] = left[job] > 0
            left[job] -= 1
        return mask

    def bound_victims(self, hook: str, asker: Task, candidates: NDArray[np.intp]) -> Mask:
        """Mark preemptable work on ordinary nodes; none if the preemptor is preemptable itself."""
        if asker.preemptable or _is_revocable(asker.shape):
            return np.zeros(len(candidates), dtype=bool)
        return self._may_go(candidates) & ~self._revocable[self._snapshot.tasks.node[candidates]]

    def victims(self, running: list[int]) -> list[int]:
        """Choose preemptable tasks on nodes of closed zones, within each job's budget."""
        ssn, tasks = self._ssn, self._snapshot.tasks
        by_job: dict[tuple[str, int], list[int]] = {}
        rows = np.array(running, dtype=np.intp)
        for row in rows[self._may_go(rows)].tolist():
            zone = self._zones[tasks.node[row]]
            if zone in self._closed_zones:
                by_job.setdefault((zone, int(tasks.job[row])), []).append(row)
        last = ssn.memory.get(self.name)
        if last is not None and last + self.evict_period > ssn.now:
            self._waits_for_turn = bool(by_job)
            return []
        ssn.memory[self.name] = ssn.now
        out = []
        for (_, job), leaving in by_job.items():
            least_wanted = ssn.sort_tasks(leaving)[::-1]
            out += least_wanted[: _budget(ssn.job(job))]
        return out

    def changes_at(self, ssn: PluginSession) -> float | None:
        """Return when a window opens or closes next, or when more pods may be evicted."""
        today = ssn.now - ssn.now % _DAY
        read = [found for hours in self.windows.values() if (found := _read_window(hours))]
        bounds = {bound for opens, closes in read for bound in (opens, closes + 1, _DAY)}
        times = [today + day + bound for bound in bounds for day in (0.0, _DAY)]
        if self._waits_for_turn:
            times.append(ssn.memory[self.name] + math.ceil(self.evict_period))
        return min((each for each in times if each > ssn.now), default=None)

    def closes_at(self) -> Column | None:
        """Return when the open windows of nodes are over."""
        today = self._ssn.now - self._ssn.now % _DAY
        read = {zone: _read_window(hours) for zone, hours in self.windows.items()}
        ends = {zone: today + min(found[1] + 1, _DAY) for zone, found in read.items() if found}
        is_open = zip(self._zones, self._open.tolist(), strict=True)
        return np.array([ends[zone] if now else math.inf for zone, now in is_open])

    def passed_over(self, memory: dict[str, Any], now: float) -> None:
        """Advance the time of the last run: runs happen whether or not there is a pod to evict."""
        turn = max(1, math.ceil(self.evict_period))
        if self.name in memory:
            memory[self.name] += max(0, (now - 1.0 - memory[self.name]) // turn) * turn

    def _may_go(self, rows: NDArray[np.intp]) -> Mask:
        """Mark preemptable tasks that run on a node of the session (n,)."""
        tasks = self._snapshot.tasks
        runs = (tasks.status[rows] == Status.RUNNING) & (tasks.node[rows] != NOWHERE)
        return tasks.preemptable[rows] & runs


def _is_open(window: str, now: float) -> bool:
    """Return whether now lies in a window that starts today; one that cannot be read is closed."""
    found = _read_window(window)
    return found is not None and found[0] <= int(now) % _DAY <= found[1]


def _read_window(window: str) -> tuple[int, int] | None:
    """Return the seconds of the day at which a window opens and closes; None: no such hours."""
    start, dash, end = window.strip().partition("-")
    first, last = _TIME.fullmatch(start), _TIME.fullmatch(end)
    if not dash or first is None or last is None:
        return None
    opens, closes = (int(m[1]) * 3600 + int(m[2]) * 60 for m in (first, last))
    return opens, closes + _DAY if closes <= opens else closes


def _is_revocable(shape: Shape) -> bool:
    """Return whether a pod may use revocable nodes: zone ``*``, or marked as preemptable."""
    zone = shape.annotations.get(REVOCABLE_ZONE)
    if zone is not None:
        return zone == "*"
    return is_true(shape.annotations.get(PREEMPTABLE, ""))


def _is_preemptable(job: Job) -> bool:
    meta = job.group.metadata
    return is_true(meta.annotations.get(PREEMPTABLE, meta.labels.get(PREEMPTABLE, "")))


def _budget(job: Job) -> int:
    """Return how many running tasks of a job may be evicted at once: its budget, or one."""
    marks, counts = job.group.metadata.annotations, job.counts
    running, total = counts[Status.RUNNING], len(job.tasks)
    if JDB_MIN_AVAILABLE in marks:
        least = _read_number(marks[JDB_MIN_AVAILABLE], total)
        return running - least if least is not None and running >= least else 1
    most = _read_number(marks.get(JDB_MAX_UNAVAILABLE, ""), total)
    if most is None:
        return 1
    finished = sum(counts[status] for status in FINISHED)
    return max(0, most - (total - finished - running))


def _read_number(text: str, total: int) -> int | None:
    """Read a number or a percentage, rounded up; None if not stated, 0 if unreadable."""
    if not text:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None:
        return 0
    number = int(match[1])
    return -(-number * total // 100) if match[2] else number
