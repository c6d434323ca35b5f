"""Waiting jobs by class, and the classes of which a cycle might give some job something."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from pumice.sim.bounds import Bounds
from pumice.sim.job_classes import Amounts, JobClass
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
        """Add a job at its place."""
        at = bisect_left(self.runs, run)
        self.runs.insert(at, run)
        if at < self.shown:
            self.shown += 1
        else:
            self._set_aside(run, True)  # noqa: FBT003

    def remove(self, run: JobRun) -> None:
        """Remove a job; it takes part from now on."""
        at = bisect_left(self.runs, run)
        del self.runs[at]
        if at < self.shown:
            self.shown -= 1
        else:
            self._set_aside(run, False)  # noqa: FBT003

    def withdraw(self, run: JobRun) -> None:
        """Remove a job that does not take part."""
        del self.runs[bisect_left(self.runs, run)]

    def shows(self, run: JobRun) -> bool:
        """Return whether one of its jobs takes part."""
        return bisect_left(self.runs, run) < self.shown

    def show(self, n: int) -> None:
        """Show the first n and no others."""
        n = min(n, len(self.runs))
        for run in self.runs[self.shown : n]:
            self._set_aside(run, False)  # noqa: FBT003
        for run in self.runs[n : self.shown]:
            self._set_aside(run, True)  # noqa: FBT003
        self.shown = n


class WaitingClass:
    """The jobs of one class that wait, by phase."""

    def __init__(self, kind: JobClass, number: int, set_aside: SetAside) -> None:
        self.kind = kind
        self.number = number
        """Where its class comes in the order of all of them."""
        self.fresh: deque[JobRun] = deque()
        """Not known to the scheduler yet, oldest first."""
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

    @property
    def n_new(self) -> int:
        """How many wait to be admitted."""
        return len(self.entered.runs) + len(self.fresh)

    def oldest_new(self, n: int) -> list[JobRun]:
        """List n that wait to be admitted, oldest first: those that the scheduler knows, if any."""
        entered = self.entered.runs
        if n <= len(entered):
            return entered[:n]
        return sorted([*entered, *islice(self.fresh, n - len(entered))])


class WaitingClasses:
    """All classes with jobs that wait, in the order in which they came up."""

    def __init__(self, set_aside: SetAside) -> None:
        self._set_aside = set_aside
        self._classes: dict[JobClass, WaitingClass] = {}
        self._n_made = 0
        self._unsteady: dict[JobClass, WaitingClass] = {}
        self._emptied: list[WaitingClass] = []
        """Those whose last job left; they keep their place until the next cycle."""
        self._with_admitted: dict[JobClass, WaitingClass] = {}
        """Those with admitted jobs, and some that had any."""
        self._by_reserve: dict[Amounts, dict[JobClass, WaitingClass]] = {}
        """Those whose jobs reserve the same, together."""

    def __iter__(self) -> Iterator[WaitingClass]:
        return iter(self._classes.values())

    def __bool__(self) -> bool:
        return any(self._classes.values())

    @property
    def are_steady(self) -> bool:
        """Whether the jobs of all classes stay without nodes as long as nothing is released."""
        return not self._unsteady

    def of(self, kind: JobClass) -> WaitingClass:
        """Return the jobs of one class that wait."""
        known = self._classes.get(kind)
        if known is None:
            known = self._classes[kind] = WaitingClass(kind, self._n_made, self._set_aside)
            self._n_made += 1
            self._by_reserve.setdefault(kind.reserved_amounts, {})[kind] = known
            if not kind.is_steady:
                self._unsteady[kind] = known
        return known

    def admitted(self, kind: JobClass) -> Line:
        """Return the line of admitted jobs of a class, to add one."""
        waiting = self._with_admitted[kind] = self.of(kind)
        return waiting.admitted

    def note_removal(self, kind: JobClass) -> None:
        """Take note that a job of a class was removed."""
        waiting = self._classes[kind]
        if not waiting:
            self._emptied.append(waiting)

    def forget_empty(self) -> None:
        """Forget classes without jobs."""
        for waiting in self._emptied:
            kind = waiting.kind
            if not waiting and self._classes.get(kind) is waiting:
                del self._classes[kind]
                self._unsteady.pop(kind, None)
                self._with_admitted.pop(kind, None)
                del self._by_reserve[kind.reserved_amounts][kind]
        self._emptied.clear()

    def unsettled(self, new: Iterable[JobClass]) -> Iterable[WaitingClass]:
        """List those that may get something although nothing was released, in their order.

        That are classes with new jobs, and those that do not depend on room alone.
        """
        found = self._unsteady | {k: self._classes[k] for k in new if k in self._classes}
        return sorted(found.values(), key=_number)

    def promising(self, bounds: Bounds) -> Iterable[WaitingClass]:
        """List those of which a job might start or be admitted within bounds, in their order."""
        found = {}
        for kind, waiting in list(self._with_admitted.items()):
            if waiting.admitted.runs:
                found[kind] = waiting
            else:
                del self._with_admitted[kind]
        for reserved, group in self._by_reserve.items():
            if group and bounds.may_admit(reserved):
                found |= group
        return sorted(found.values(), key=_number)


def _number(waiting: WaitingClass) -> int:
    return waiting.number
