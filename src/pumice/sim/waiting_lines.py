"""The lines in which the jobs of one class wait.

Of equal jobs of one queue the oldest goes first, so that it is enough to know how many of a class
could possibly get something: the others need not be looked at.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

from pumice.sim.job_classes import JobClass
from pumice.sim.job_run import JobRun

SetAside = Callable[[JobRun, bool], None]
"""Sets a job aside (True), or calls it back (False)."""


class Line:
    """Jobs of one class in the same phase, oldest first; only the first ``shown`` take part."""

    def __init__(self, set_aside: SetAside) -> None:
        self.runs: list[JobRun] = []
        self.shown = 0
        self._set_aside = set_aside

    def add(self, run: JobRun) -> None:
        """Take a job in at its place."""
        at = bisect_left(self.runs, run)
        self.runs.insert(at, run)
        if at < self.shown:
            self.shown += 1
        else:
            self._set_aside(run, True)  # noqa: FBT003

    def remove(self, run: JobRun) -> None:
        """Let a job go; it takes part from now on."""
        at = bisect_left(self.runs, run)
        del self.runs[at]
        if at < self.shown:
            self.shown -= 1
        else:
            self._set_aside(run, False)  # noqa: FBT003

    def shows(self, run: JobRun) -> bool:
        """Return whether one of its jobs takes part."""
        return bisect_left(self.runs, run) < self.shown

    def show(self, n: int) -> None:
        """Let the first n take part and no others."""
        n = min(n, len(self.runs))
        for run in self.runs[self.shown : n]:
            self._set_aside(run, False)  # noqa: FBT003
        for run in self.runs[n : self.shown]:
            self._set_aside(run, True)  # noqa: FBT003
        self.shown = n


class WaitingClass:
    """The jobs of one class that wait, by how far they are."""

    def __init__(self, kind: JobClass, set_aside: SetAside) -> None:
        self.kind = kind
        self.fresh: list[JobRun] = []
        """Not known to the scheduler yet, newest first."""
        self.entered = Line(set_aside)
        """Waiting to be admitted, and known to the scheduler."""
        self.admitted = Line(set_aside)
        """Admitted, and waiting for nodes."""

    def __len__(self) -> int:
        return len(self.fresh) + len(self.entered.runs) + len(self.admitted.runs)

    def __iter__(self) -> Iterator[JobRun]:
        yield from self.fresh
        yield from self.entered.runs
        yield from self.admitted.runs

    def hide(self, run: JobRun) -> None:
        """Let a job wait unseen."""
        insort(self.fresh, run, key=lambda each: -each.number)
