"""Pod groups without pods, which count for jobs that have no rows in the tables.

A session sees the sums: what these jobs ask for, hold and reserve.  It can do nothing with them.
"""

from typing import Final, NamedTuple

import numpy as np

from pumice.api.objects import ObjectMeta, PodGroup, PodGroupSpec, PodGroupStatus
from pumice.cache.ingest import Ingest
from pumice.core.resources import Column
from pumice.core.shapes import Delta

WAITING: Final = "waiting"
"""Jobs that wait, in the phase Inqueue: those that do not reserve anything add nothing to it."""
STARTED: Final = "started"
"""Jobs that have started, whose phase is still to be written: they reserve what they need."""
RUNNING: Final = "running"
"""Jobs that run; the group has the phase Completed, so that no session reports it."""
_PHASES = {WAITING: "Inqueue", STARTED: "Inqueue", RUNNING: "Completed"}


class Share(NamedTuple):
    """What one job adds to a placeholder."""

    sums: Delta | None
    """What it holds, was promised and asks for (3, R)."""
    reserved: Column | None
    """What it needs to start (R,)."""


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
        self._snapshot.absent[self._row] = np.zeros((3, len(self._snapshot.resources)))
        self._n = 0

    def count(self, n: int, share: Share) -> None:
        """Count a job more (n is 1) or less (-1)."""
        snapshot, row = self._snapshot, self._row
        self._n += n
        if self._n == max(n, 0):  # it was, or is, empty
            self._ingest.set_aside(self._key, aside=not self._n)
        sums, reserved = share
        if sums is not None:
            sums = n * sums
            snapshot.add_to_sums(row, sums)
            snapshot.absent[row] += sums
        if reserved is not None:
            snapshot.jobs.min_resources[:, row] += n * reserved


class Placeholders:
    """All of them, made as they are needed."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest
        self._made: dict[tuple[str, str, str], Placeholder] = {}

    def count(self, n: int, place: tuple[str, str, str], share: Share) -> None:
        """Count a job more (n is 1) or less (-1) in a namespace, queue and state."""
        known = self._made.get(place)
        if known is None:
            known = self._made[place] = Placeholder(self._ingest, *place)
        known.count(n, share)
