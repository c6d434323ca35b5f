"""Shared by several pages: amounts, resources, names of jobs, and states of jobs."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pumice.api.annotations import WAITING_CAUSE, WAITING_WHY
from pumice.api.groups import PodGroup
from pumice.api.quantity import base_units
from pumice.api.reservations import Reservation
from pumice.api.wording import counted
from pumice.core.resources import Column
from pumice.core.status import ALLOCATED_CLASS, PHASE_CODE, Status
from pumice.core.tables import NOWHERE
from pumice.dashboard.feed import Picture, title_of

Document = dict[str, Any]
Starts = Mapping[str, Mapping[str, Any]]
"""Pod group to when it is expected to start: the time, None for never, and a sentence."""
Causes = Mapping[str, Mapping[str, str]]
"""Pod group to the code and the text of its decisive cause."""

RUNNING, WAITING, FINISHED, FAILED = "running", "waiting", "finished", "failed"
_HOLDS: Final = sorted(ALLOCATED_CLASS)
_UNSEEN: Final = ("attachable-volumes-",)


@dataclass(frozen=True)
class Scope:
    """What a viewer may see: all namespaces, or some."""

    namespaces: frozenset[str] | None = None
    """None: all."""
    cluster: bool = True
    """Whether nodes and queues may be seen as well."""

    def sees(self, key: str) -> bool:
        """Return whether something named "namespace/name" may be seen."""
        return self.namespaces is None or key.partition("/")[0] in self.namespaces


EVERYTHING: Final = Scope()
_NAMED: Final = re.compile(r"([a-z0-9][-a-z0-9]*)/[^\s/,;:()']+")
_HIDDEN: Final = "(another namespace)"


def hide(value: Any, scope: Scope, namespaces: Collection[str]) -> Any:
    """Remove the names that a viewer may not see from plain data."""
    if scope.namespaces is None:
        return value
    if isinstance(value, str):
        return _NAMED.sub(
            lambda match: (
                _HIDDEN if match[1] in namespaces and not scope.sees(match[0]) else match[0]
            ),
            value,
        )
    if isinstance(value, Mapping):
        return {
            hide(key, scope, namespaces): hide(each, scope, namespaces)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [hide(each, scope, namespaces) for each in value]
    return value


@dataclass(frozen=True)
class View:
    """A picture with values that several documents need, computed once."""

    picture: Picture
    causes: Causes | None = None
    """None: use those that the scheduler wrote on the pod groups."""
    scope: Scope = EVERYTHING
    problem: str = ""
    """Why causes could not be computed."""
    starts: Starts = field(default_factory=dict)
    """Of the waiting jobs whose start was computed."""

    @cached_property
    def shown(self) -> list[int]:
        """The resources that nodes have, ``pods`` last."""
        total = self.picture.nodes.allocatable.sum(axis=1)
        names = self.picture.resources
        rows = [
            row for row in np.flatnonzero(total > 0).tolist() if not names[row].startswith(_UNSEEN)
        ]
        return sorted(rows, key=lambda row: (names[row] == "pods", row))

    @cached_property
    def resources(self) -> list[Document]:
        """The resources that are shown, with their units."""
        names = self.picture.resources
        return [{"name": names[row], "unit": unit_of(names[row])} for row in self.shown]

    def amounts(self, column: Column) -> list[float | None]:
        """Write amounts (R,) in cores, bytes or pieces; None for no limit."""
        names = self.picture.resources
        return [plain(names[row], float(column[row])) for row in self.shown]

    # Jobs

    @cached_property
    def job_rows(self) -> list[int]:
        """The rows of pod groups that exist and may be seen."""
        jobs, sees = self.picture.jobs, self.scope.sees
        return [
            row
            for row, group in enumerate(jobs.objects)
            if isinstance(group, PodGroup) and sees(jobs.keys[row])
        ]

    @cached_property
    def titles(self) -> dict[int, str]:
        """Job to its display name: that of the Volcano job or pod it was made for.

        Two with the same name use the names of their pod groups.
        """
        jobs = self.picture.jobs
        found = {row: title_of(jobs.keys[row], jobs.objects[row]) for row in self.job_rows}
        counted = Counter(found.values())
        return {
            row: title if counted[title] == 1 else jobs.keys[row] for row, title in found.items()
        }

    @cached_property
    def row_titled(self) -> dict[str, int]:
        """Title to job."""
        return {title: row for row, title in self.titles.items()}

    def job_named(self, name: str) -> int | None:
        """Return the job of a title, or of the key of its pod group."""
        row = self.row_titled.get(name)
        if row is None:
            row = next((row for row in self.job_rows if self.picture.jobs.keys[row] == name), None)
        return row

    def title_of_pod(self, pod: int) -> str:
        """Name the job of a pod; empty if it has none, or one that may not be seen."""
        job = int(self.picture.pods.job[pod])
        return self.titles.get(job, "") if job != NOWHERE else ""

    @cached_property
    def held(self) -> NDArray[Any]:
        """Pods of each job that have a node (n,)."""
        return np.asarray(self.picture.jobs.counts[_HOLDS].sum(axis=0))

    @cached_property
    def states(self) -> list[str]:
        """The state of each job: running, waiting, finished or failed."""
        jobs, counts, held = self.picture.jobs, self.picture.jobs.counts, self.held
        failed, done = counts[Status.FAILED], counts[Status.SUCCEEDED]
        still = held + counts[Status.PENDING] + counts[Status.RELEASING] + counts[Status.PIPELINED]
        ended = (jobs.phase == PHASE_CODE["Completed"]) | ((still == 0) & (failed + done > 0))
        runs = (held > 0) & (held + done >= jobs.min_member)
        names = np.where(ended, np.where(failed > 0, FAILED, FINISHED), WAITING)
        found: list[str] = np.where(runs & ~ended, RUNNING, names).tolist()
        return found

    @cached_property
    def unmade(self) -> NDArray[Any]:
        """Pods that waiting jobs need and do not have yet (n,): a job that is not admitted."""
        jobs = self.picture.jobs
        made = jobs.counts.sum(axis=0) - jobs.counts[Status.GONE]
        pairs = zip(self.states, jobs.objects, strict=True)
        waits = np.array([state == WAITING and group is not None for state, group in pairs], bool)
        return np.asarray(np.where(waits, np.maximum(jobs.min_member - made, 0), 0))

    @cached_property
    def unmade_amounts(self) -> Column:
        """What those pods will ask for (R, n): what pods do not ask for of ``minResources``."""
        jobs = self.picture.jobs
        rest = np.maximum(jobs.min_resources - jobs.allocated - jobs.pending, 0.0)
        return np.where(self.unmade > 0, rest, 0.0)

    @cached_property
    def waiting_rows(self) -> list[int]:
        """Jobs that wait, the one that waits longest first."""
        jobs, states = self.picture.jobs, self.states
        found = [row for row in self.job_rows if states[row] == WAITING]
        return sorted(found, key=lambda row: (float(jobs.created[row]), jobs.keys[row]))

    def queue_name(self, row: int) -> str:
        """Name the queue of a job."""
        queue = int(self.picture.jobs.queue[row])
        if queue != NOWHERE and self.picture.queues.names[queue]:
            return self.picture.queues.names[queue]
        return str(self.picture.jobs.objects[row].spec.queue)

    def cause(self, row: int) -> tuple[str, str]:
        """Return code and sentence of the cause for which a job waits, if known."""
        key, group = self.picture.jobs.keys[row], self.picture.jobs.objects[row]
        if key in self.picture.starting:
            return "", "it starts in the next cycle"
        if self.causes is not None:
            known = self.causes.get(key, {"code": "", "text": ""})
            return known["code"], known["text"]
        marks = group.metadata.annotations
        if WAITING_CAUSE in marks:
            return marks[WAITING_CAUSE], marks.get(WAITING_WHY, "")
        written = self.picture.waiting.get(key, "")
        return "", written or (f"the cause is not known: {self.problem}" if self.problem else "")

    def reservation(self, row: int) -> Reservation | None:
        """Return the start that a waiting job is promised."""
        if self.states[row] != WAITING:
            return None
        return Reservation.of(self.picture.jobs.objects[row].metadata.annotations)

    def start(self, row: int) -> tuple[float | None, str]:
        """Return when a waiting job is expected to start, and a sentence; empty: not known."""
        key = self.picture.jobs.keys[row]
        if key in self.picture.starting:
            return self.picture.now, "it starts in the next cycle"
        promised = self.reservation(row)
        if promised is not None:
            return promised.seconds, f"reserved: {counted(len(promised.nodes), 'node')}"
        known = self.starts.get(key)
        return (known["at"], known["text"]) if known is not None else (None, "")


def plain(resource: str, amount: float) -> float | None:
    """Write an amount in cores, bytes or pieces; None if it is infinite or unknown."""
    return base_units(resource, amount) if np.isfinite(amount) else None


def unit_of(resource: str) -> str:
    """Return the unit of a resource: cpu, bytes, or pieces of its own."""
    if resource == "cpu":
        return "cpu"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return "bytes"
    return "pods" if resource == "pods" else resource.rpartition("/")[2]


def seconds(value: float, digits: int = 6) -> float:
    """Round a time for JSON."""
    return round(value, digits)
