"""Pod groups without pods, which count for jobs that have no rows in the tables.

A session sees the sums: what these jobs ask for, hold and reserve.  It can do nothing with them.
"""

from typing import Final

from pumice.api.objects import ObjectMeta, PodGroup, PodGroupSpec, PodGroupStatus
from pumice.cache.ingest import Ingest
from pumice.core.resources import Column
from pumice.core.shapes import Delta
from pumice.core.tables import ALLOCATED, BOOKED, PENDING
from pumice.sim.job_classes import above_zero
from pumice.sim.queue_ledger import QueueLedger

WAITING: Final = "waiting"
"""Jobs that wait, in the phase Inqueue: those that do not reserve anything add nothing to it."""
STARTED: Final = "started"
"""Jobs that have started, whose phase is still to be written: they reserve what they need."""
RUNNING: Final = "running"
"""Jobs that run; the group has the phase Completed, so that no session reports it."""
_PHASES = {WAITING: "Inqueue", STARTED: "Inqueue", RUNNING: "Completed"}
Place = tuple[str, str, str]
"""A namespace, a queue and a state of jobs."""


class Share:
    """What one job adds to a placeholder."""

    __slots__ = ("asked", "held", "needed", "reserved", "sums")

    def __init__(self, sums: Delta | None, reserved: Column | None) -> None:
        self.sums = sums
        """What it holds, was promised and asks for (3, R)."""
        self.reserved = reserved
        """What it needs to start (R,)."""
        self.held = () if sums is None else above_zero(sums[ALLOCATED])
        self.asked = () if sums is None else above_zero(sums[BOOKED] + sums[PENDING])
        """What it holds, was promised or asks for."""
        self.needed = () if reserved is None else above_zero(reserved)


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
        ingest.set_aside(self._key, aside=True)
        self._n = 0

    def count(self, n: int, share: Share) -> None:
        """Count n jobs more, or less if n is below zero."""
        if share.sums is not None:
            self._snapshot.add_to_sums(self._row, share.sums * n)
        self._note(n, share.reserved)

    def move_in(self, n: int, share: Share) -> None:
        """Do the same where the sums of queue and namespace stay: another one does the opposite."""
        if share.sums is not None:
            self._snapshot.jobs.sums[:, :, self._row] += share.sums * n
        self._note(n, share.reserved)

    def _note(self, n: int, reserved: Column | None) -> None:
        was_empty = self._n == 0
        self._n += n
        is_empty = self._n == 0
        if is_empty != was_empty:
            self._ingest.set_aside(self._key, aside=is_empty)
        if reserved is not None:
            self._snapshot.jobs.min_resources[:, self._row] += reserved * n


class Placeholders:
    """All of them, made as they are needed.

    Sums that every cycle asks for are in a ledger.  The tables learn of jobs when they are read
    (``write_due``), or at once as soon as sums are not exact: then their order counts.
    """

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest
        self._made: dict[Place, Placeholder] = {}
        self._due: dict[tuple[Placeholder, Share], int] = {}
        """Jobs that the tables do not have yet, or still have."""
        self._ledger: QueueLedger | None = None
        self.is_exact = True
        """Whether sums are exact: all amounts are whole numbers of moderate size."""

    def ledger(self) -> QueueLedger | None:
        """Return what their jobs hold, ask for and reserve; None if sums may be rounded."""
        return self._the_ledger() if self.is_exact else None

    def _the_ledger(self) -> QueueLedger:
        if self._ledger is None:  # all resources are known by now
            self._ledger = QueueLedger(len(self._ingest.snapshot.resources))
        return self._ledger

    def count(self, n: int, place: Place, share: Share) -> None:
        """Count a job more (n is 1) or less (-1) in a namespace, queue and state."""
        self._note(n, self._placeholder(place), share)
        _, queue, state = place
        ledger = self._ledger or self._the_ledger()
        ledger.add_asked(queue, n, share.asked)
        if state != WAITING:
            ledger.add_held(queue, n, share.held)
        if state != RUNNING:
            ledger.add_reserved(queue, n, share.needed, waits=state == WAITING)
        if not self.is_exact:
            self.write_due()

    def settle(self, namespace: str, queue: str, share: Share) -> None:
        """Count a job that has started as one that runs; from now on it reserves nothing."""
        started = self._placeholder((namespace, queue, STARTED))
        running = self._placeholder((namespace, queue, RUNNING))
        if self.is_exact:
            self._note(-1, started, share)
            self._note(1, running, share)
        else:
            started.move_in(-1, share)
            running.move_in(1, share)
        self._the_ledger().add_reserved(queue, -1, share.needed, waits=False)

    def write_due(self) -> None:
        """Write into the tables what they do not have yet."""
        for (placeholder, share), n in self._due.items():
            placeholder.count(n, share)
        self._due.clear()

    def _note(self, n: int, placeholder: Placeholder, share: Share) -> None:
        key = placeholder, share
        now = self._due.pop(key, 0) + n
        if now:
            self._due[key] = now

    def _placeholder(self, place: Place) -> Placeholder:
        known = self._made.get(place)
        if known is None:
            known = self._made[place] = Placeholder(self._ingest, *place)
        return known
