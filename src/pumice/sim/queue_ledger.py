"""What jobs without rows hold, ask for and reserve, by queue, as plain numbers.

The tables have the same sums; for a few queues and resources numbers are several times faster.
"""

from collections.abc import Mapping

from pumice.sim.job_classes import Amounts


class QueueAmounts:
    """The sums of one queue (R,)."""

    __slots__ = ("asked", "held", "n_jobs", "reserved")

    def __init__(self, n_resources: int) -> None:
        self.n_jobs = 0
        self.held = [0.0] * n_resources
        self.asked = [0.0] * n_resources
        """What jobs hold, were promised or ask for."""
        self.reserved = [0.0] * n_resources
        """What jobs that wait have reserved; others hold what they need."""


class QueueLedger:
    """The sums of all queues."""

    def __init__(self, n_resources: int) -> None:
        self._queues: dict[str, QueueAmounts] = {}
        self.held = [0.0] * n_resources
        """What all jobs hold (R,)."""
        self.reserved = [0.0] * n_resources
        """What all jobs reserve (R,): those that wait, and those whose phase is to be written."""

    def of(self, queue: str) -> QueueAmounts:
        """Return the sums of a queue."""
        known = self._queues.get(queue)
        if known is None:
            known = self._queues[queue] = QueueAmounts(len(self.held))
        return known

    def busy(self) -> Mapping[str, QueueAmounts]:
        """Return the sums of queues that have jobs."""
        return {queue: sums for queue, sums in self._queues.items() if sums.n_jobs}

    def add_asked(self, queue: str, n: int, amounts: Amounts) -> None:
        """Count n jobs of a queue more, or less, that hold or ask for amounts."""
        sums = self.of(queue)
        sums.n_jobs += n
        _add(sums.asked, n, amounts)

    def add_held(self, queue: str, n: int, amounts: Amounts) -> None:
        """Count what n jobs more, or less, hold."""
        _add(self.held, n, amounts)
        _add(self.of(queue).held, n, amounts)

    def add_reserved(self, queue: str, n: int, amounts: Amounts, *, waits: bool) -> None:
        """Count what n jobs more, or less, reserve, which wait or have started."""
        _add(self.reserved, n, amounts)
        if waits:
            _add(self.of(queue).reserved, n, amounts)


def _add(sums: list[float], n: int, amounts: Amounts) -> None:
    for at, amount in amounts:
        sums[at] += n * amount
