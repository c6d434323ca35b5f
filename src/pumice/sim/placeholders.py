"""Pod groups without pods, which count for jobs that have no rows in the tables.

A session sees the sums: what these jobs ask for, hold and reserve.  It can do nothing with them.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from pumice.api.objects import ObjectMeta, PodGroup, PodGroupSpec, PodGroupStatus
from pumice.cache.ingest import Ingest
from pumice.core.resources import Column
from pumice.core.shapes import Delta
from pumice.core.tables import ALLOCATED

WAITING: Final = "waiting"
"""Jobs that wait, in the phase Inqueue: those that do not reserve anything add nothing to it."""
STARTED: Final = "started"
"""Jobs that have started, whose phase is still to be written: they reserve what they need."""
RUNNING: Final = "running"
"""Jobs that run; the group has the phase Completed, so that no session reports it."""
_PHASES = {WAITING: "Inqueue", STARTED: "Inqueue", RUNNING: "Completed"}
Place = tuple[str, str, str]
"""A namespace, a queue and a state of jobs."""


class Share(NamedTuple):
    """What one job adds to a placeholder."""

    sums: Delta | None
    """What it holds, was promised and asks for (3, R)."""
    reserved: Column | None
    """What it needs to start (R,)."""


class Sums(NamedTuple):
    """What jobs without rows amount to, all together."""

    held: Column
    """What those that have started or run hold (R,)."""
    reserved: Column
    """What all of them reserve (R,): those that wait, and those whose phase is to be written."""
    reserved_in: Mapping[str, Column]
    """What those that wait reserve, by queue (R,)."""


class Placeholder:
    """The pod group of jobs of one namespace, queue and state."""

    def __init__(self, ingest: Ingest, namespace: str, queue: str, state: str) -> None:
        self._ingest = ingest
        self._snapshot = ingest.snapshot
        name = f"{state} in {queue}"  # no object can have this name
        # one member that never arrives: a group of waiting jobs is never valid
        spec = PodGroupSpec(min_member=int(state == WAITING), queue=queue, min_resources={})
        ingest.upsert(
            PodGroup(
                metadata=ObjectMeta(name=name, namespace=namespace, uid=name),
                spec=spec,
                status=PodGroupStatus(phase=_PHASES[state]),
            )
        )
        ingest.settle()
        self._key = f"{namespace}/{name}"
        self._row = self._snapshot.jobs.row_of[self._key]
        self._snapshot.absent.jobs.add(self._row)
        self._n = 0

    def count(self, n: int, share: Share) -> None:
        """Count a job more (n is 1) or less (-1)."""
        sums, reserved = share
        if sums is not None:
            self._snapshot.add_to_sums(self._row, sums if n > 0 else -sums)
        self._note(n, reserved)

    def move_in(self, n: int, share: Share) -> None:
        """Do the same where the sums of queue and namespace stay: another one does the opposite."""
        sums, reserved = share
        if sums is not None:
            self._snapshot.jobs.sums[:, :, self._row] += sums if n > 0 else -sums
        self._note(n, reserved)

    def _note(self, n: int, reserved: Column | None) -> None:
        self._n += n
        if self._n == max(n, 0):  # it was, or is, empty
            self._ingest.set_aside(self._key, aside=not self._n)
        if reserved is not None:
            amounts = self._snapshot.jobs.min_resources
            amounts[:, self._row] += reserved if n > 0 else -reserved


class Placeholders:
    """All of them, made as they are needed."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest
        self._made: dict[Place, Placeholder] = {}
        self._held: Column = np.zeros(1)
        self._reserved: Column = np.zeros(1)
        self._reserved_in: dict[str, Column] = {}
        self.is_exact = True
        """Whether sums are exact: all amounts are whole numbers of moderate size."""

    def sums(self) -> Sums | None:
        """Return what their jobs hold and reserve; None if the sums may be rounded."""
        if not self.is_exact:
            return None
        nothing = np.zeros(len(self._ingest.snapshot.resources))
        return Sums(self._held + nothing, self._reserved + nothing, self._reserved_in)

    def count(self, n: int, place: Place, share: Share) -> None:
        """Count a job more (n is 1) or less (-1) in a namespace, queue and state."""
        self._placeholder(place).count(n, share)
        sums, reserved = share
        if place[2] != WAITING and sums is not None:
            self._held = self._held + sums[ALLOCATED] if n > 0 else self._held - sums[ALLOCATED]
        if place[2] != RUNNING and reserved is not None:
            change = reserved if n > 0 else -reserved
            self._reserved = self._reserved + change
            if place[2] == WAITING:
                self._reserved_in[place[1]] = self._reserved_in.get(place[1], 0.0) + change

    def settle(self, namespace: str, queue: str, share: Share) -> None:
        """Count a job that has started as one that runs; from now on it reserves nothing."""
        self._placeholder((namespace, queue, STARTED)).move_in(-1, share)
        self._placeholder((namespace, queue, RUNNING)).move_in(1, share)
        assert share.reserved is not None  # noqa: S101  # it was admitted
        self._reserved = self._reserved - share.reserved

    def _placeholder(self, place: Place) -> Placeholder:
        known = self._made.get(place)
        if known is None:
            known = self._made[place] = Placeholder(self._ingest, *place)
        return known
