"""Promised starts from cycle to cycle: what PodGroups state, and what is to be written.

A promise lives with its job, as an annotation of its PodGroup.  Within a process the tables keep
it; new tables, after a restart or a change of the lead, begin with what PodGroups state.
"""

import math
import weakref
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np

from pumice.api.annotations import RESERVATION
from pumice.api.decisions import PromiseChange
from pumice.api.reservations import Reservation
from pumice.api.times import rfc3339
from pumice.api.wording import counted, first_of, span
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, Status
from pumice.framework.future.promises import Promise
from pumice.framework.future.room import OVERDUE_S
from pumice.framework.plugin_session import PluginSession
from pumice.framework.session import PROMISES, Session

_STATED: Final = "stated"
_HOLDING: Final = [*map(int, ALLOCATED_CLASS), int(Status.SUCCEEDED)]
MOST_WRITTEN: Final = 50
"""Changes written in one cycle, the nearest starts first; the others follow in the next ones."""
_MOST_PLACED: Final = 16
"""Promises, the nearest starts first, of which nodes are stated."""
LEAST_MOVE_S: Final = 60.0
"""A start that moves by less is not written again, nor one that moves by less than a tenth of the
time until then: pods that begin a moment after they were bound move all ends a little.  A reason
that is new is written at once."""
_NAMED: Final = 3

OVERDUE: Final = "RunLongerThanBound"
NODE_GONE: Final = "NodeGone"
OVERTAKEN: Final = "HigherOrder"


class _Stated(msgspec.Struct):
    """What the PodGroup of a job is to state; None: nothing any more."""

    reservation: Reservation | None
    reason: str = ""
    message: str = ""
    is_placed: bool = True
    """Whether its nodes were looked for."""


def remembered(ssn: PluginSession) -> dict[str, Any]:
    """Return what is remembered of promises; new tables begin with what PodGroups state.

    ``starts`` has the promised starts by job.
    """
    known: dict[str, Any] = ssn.memory.setdefault(PROMISES, {})
    of = known.get("of")
    if of is None or of() is not ssn.snapshot:
        stated = dict(_read(ssn.snapshot))
        starts = {key: each.seconds for key, each in stated.items()}
        known.clear()
        told = {key: _Stated(each) for key, each in stated.items()}
        # A reference, as what is remembered is copied for a cycle that is only looked at.
        known |= {"of": weakref.ref(ssn.snapshot), "starts": starts, _STATED: told}
    return known


def _read(snapshot: Snapshot) -> Iterator[tuple[str, Reservation]]:
    groups: list[Any] = snapshot.jobs.groups
    for key, row in snapshot.jobs.row_of.items():
        if groups[row] is not None:
            found = Reservation.of(groups[row].metadata.annotations)
            if found is not None:
                yield key, found


def stated_nodes(ssn: Session) -> set[str]:
    """Return the nodes that the plan has for the jobs that are promised a start."""
    told: dict[str, _Stated] = ssn.memory.get(PROMISES, {}).get(_STATED, {})
    named = {node for each in told.values() if each.reservation for node in each.reservation.nodes}
    return named & ssn.snapshot.nodes.row_of.keys()


def promise_changes(ssn: Session) -> dict[str, PromiseChange]:
    """Compare promises with what PodGroups state, at the end of a cycle; the nearest come first."""
    return _Changes(ssn).found()


class _Changes:
    """What one cycle changes."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._stated: dict[str, _Stated] = remembered(ssn)[_STATED]
        known = (each for each in ssn.promises.values() if math.isfinite(each.start))
        self._promises = sorted(known, key=lambda each: each.start)
        self._new = {each.key for each in self._promises} - self._stated.keys()

    def found(self) -> dict[str, PromiseChange]:
        """Return the changes of which PodGroups do not know."""
        jobs, stated = self._ssn.snapshot.jobs, self._stated
        for place, promise in enumerate(self._promises):
            stated[promise.key] = self._next(promise, is_near=place < _MOST_PLACED)
        promised = dict.fromkeys(each.key for each in self._promises)
        out: dict[str, PromiseChange] = {}
        for key in [*promised, *(key for key in stated if key not in promised)]:
            group: Any = jobs.groups[jobs.row_of[key]] if key in jobs.row_of else None
            if group is None:
                del stated[key]
                continue
            if key not in promised:
                stated[key] = self._unpromised(jobs.row_of[key], stated[key])
            told = stated[key]
            text = told.reservation.to_text() if told.reservation else ""
            if group.metadata.annotations.get(RESERVATION, "") != text:
                out[key] = PromiseChange(text, told.reason, told.message)
            elif not text:
                del stated[key]
            if len(out) == MOST_WRITTEN:
                break
        return out

    def _next(self, promise: Promise, *, is_near: bool) -> _Stated:
        """Return what the PodGroup of a promised job is to state."""
        told = self._stated.get(promise.key)
        old = told.reservation if told is not None else None
        new = Reservation.at(promise.start)
        if told is None or old is None:
            return self._placed(promise, new, "Reserved", "reserved: ", is_near=is_near)
        later_s = promise.start - old.seconds
        if later_s <= -self._least(promise):
            what = f"moved {span(-later_s)} earlier, as room came early: "
            return self._placed(promise, new, "ReservationMoved", what, is_near=is_near)
        why = self._later(old, later_s, promise) if later_s > 0 else None
        if why is not None:
            new = msgspec.structs.replace(new, moved=why[0])
            what = f"moved {span(later_s)} later, as {why[1]}: "
            return self._placed(promise, new, "ReservationMoved", what, is_near=is_near)
        if is_near and not told.is_placed:
            new = msgspec.structs.replace(old, nodes=self._nodes_of(promise))
            return msgspec.structs.replace(told, reservation=new, is_placed=True)
        return told

    def _placed(
        self, promise: Promise, new: Reservation, reason: str, what: str, *, is_near: bool
    ) -> _Stated:
        nodes = self._nodes_of(promise) if is_near else ()
        where = f"{counted(len(nodes), 'node')} " if nodes else ""
        message = f"{what}{where}from {rfc3339(promise.start)}"
        return _Stated(msgspec.structs.replace(new, nodes=nodes), reason, message, is_near)

    def _unpromised(self, row: int, told: _Stated) -> _Stated:
        """Return what is said of a promise that is kept or dropped."""
        jobs, now = self._ssn.snapshot.jobs, self._ssn.now
        least, waiting = max(jobs.min_member[row], 1), jobs.counts[Status.PIPELINED, row]
        ready = jobs.counts[_HOLDING, row].sum()
        if told.reservation is None or (waiting and ready + waiting >= least):
            return told  # pods are leaving its nodes: it starts in a moment
        start = told.reservation.seconds
        if ready >= least:
            early = f", {span(start - now)} early" if start - now >= 1 else ""
            late = f", {span(now - start)} late" if now - start >= LEAST_MOVE_S else ""
            message = f"started as reserved from {rfc3339(start)}{early}{late}"
            return _Stated(None, "ReservationKept", message)
        first = next((each.key for each in self._promises), "")
        why = f"{first} goes first now" if first else "no start is foreseen any more"
        return _Stated(None, "ReservationDropped", f"no longer reserved: {why}")

    # Where

    @cached_property
    def _places(self) -> dict[int, list[int]]:
        found = self._ssn.future.places(self._promises[:_MOST_PLACED])
        return {} if isinstance(found, Promise) else found

    def _nodes_of(self, promise: Promise) -> tuple[str, ...]:
        names = self._ssn.snapshot.nodes.names
        return tuple(names[row] for row in sorted(set(self._places.get(promise.job, ()))))

    # Why one is later

    def _later(self, old: Reservation, later_s: float, promise: Promise) -> tuple[str, str] | None:
        """Return why a start is later than stated; None if that is not worth a write."""
        code, text = self._reason(old, promise)
        least = self._least(promise)
        if code and code == old.moved:
            least = LEAST_MOVE_S
        elif code in (NODE_GONE, OVERDUE):
            least = 1.0
        return (code, text) if later_s >= least else None

    def _least(self, promise: Promise) -> float:
        """Return by how many seconds a start has to move to be written again."""
        return min(max(0.1 * (promise.start - self._ssn.now), 1.0), LEAST_MOVE_S)

    def _reason(self, old: Reservation, promise: Promise) -> tuple[str, str]:
        nodes = self._ssn.snapshot.nodes
        gone = [each for each in old.nodes if each not in nodes.row_of]
        gone += [each for each in old.nodes if each not in gone and self._is_shut(each)]
        if gone:
            return NODE_GONE, f"node {first_of(gone, _NAMED)} went"
        if self._overdue:
            return OVERDUE, f"{first_of(self._overdue, _NAMED)} outlived its bound"
        first = self._before(promise)
        if first:
            return OVERTAKEN, f"{first} of higher order came"
        return "", "there is less room than planned"

    def _is_shut(self, node: str) -> bool:
        nodes = self._ssn.snapshot.nodes
        return bool(nodes.unschedulable[nodes.row_of[node]])

    @cached_property
    def _overdue(self) -> list[str]:
        """The running jobs that were expected to have ended."""
        keys, late = self._ssn.snapshot.jobs.keys, self._ssn.now + OVERDUE_S
        ends = self._ssn.future.ends_of_jobs()
        return [keys[job] for job, (end, _) in ends.items() if end <= late]

    def _before(self, promise: Promise) -> str:
        """Return the job that had its turn before, and starts now or is newly promised a start."""
        turns, keys = self._ssn.records.turns, self._ssn.snapshot.jobs.keys
        own = turns.get(promise.job, 0)
        bound = set(self._ssn.snapshot.tasks.job[[*self._bound()]].tolist())
        first = [job for job, turn in turns.items() if turn < own and job in bound]
        new = (p for p in self._promises if p.key in self._new)
        first += [each.job for each in new if turns.get(each.job, own) < own]
        return keys[first[0]] if first else ""

    def _bound(self) -> Iterable[int]:
        """Return the tasks that this cycle binds."""
        status = self._ssn.snapshot.tasks.status
        return np.flatnonzero((status == Status.ALLOCATED) | (status == Status.BINDING)).tolist()
