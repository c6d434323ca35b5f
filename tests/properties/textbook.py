"""Strict first come first served, EASY and conservative backfilling, as the textbooks have them.

A machine of equal processors, times in whole seconds.  Nothing of Pumice is used.
"""

import heapq
import itertools
import math
from dataclasses import dataclass, field


@dataclass
class Job:
    """A rigid parallel job; ``bound`` is the time that its user asked for."""

    name: str
    arrival: int
    run: int
    width: int
    bound: float
    start: float = math.inf
    """When it starts; while it waits, when it is promised to."""


@dataclass
class Machine:
    """Processors, the jobs that run on them, and the line of those that wait."""

    processors: int
    mode: str
    now: int = 0
    running: list[tuple[int, int, Job]] = field(default_factory=list)
    line: list[Job] = field(default_factory=list)
    promised: dict[str, float] = field(default_factory=dict)
    """The first start that each job was promised."""

    def __post_init__(self) -> None:
        self.free = self.processors

    def begin(self, job: Job) -> None:
        self.line.remove(job)
        job.start = self.now
        self.free -= job.width
        heapq.heappush(self.running, (self.now + job.run, id(job), job))

    def ends(self) -> list[tuple[float, int]]:
        """When running jobs end at the latest, and their processors; late ones end next."""
        return [
            (max(self.now + (job.start < self.now), job.start + job.bound), job.width)
            for _, _, job in self.running
        ]

    # EASY

    def shadow(self, job: Job) -> tuple[float, int]:
        """When a job can start at the latest, and the processors that it leaves then."""
        room, ends = self.free, sorted(self.ends())
        for at, group in itertools.groupby(ends, key=lambda end: end[0]):
            room += sum(width for _, width in group)
            if room >= job.width:
                return at, room - job.width
        return math.inf, 0

    def backfill(self) -> None:
        head = self.line[0]
        at, extra = self.shadow(head)
        self.promised.setdefault(head.name, at)
        for job in self.line[1:]:
            in_time = self.now + job.bound <= at
            if job.width <= self.free and (in_time or job.width <= extra):
                self.begin(job)
                at, extra = self.shadow(head)

    # Conservative

    def room(self, without: Job | None = None) -> list[tuple[float, int]]:
        """Free processors from each time on, beside running jobs and promises to others."""
        steps = self.ends()
        for other in self.line:
            if other is not without and other.start < math.inf:
                steps += [(other.start, -other.width), (other.start + other.bound, other.width)]
        changes: dict[float, int] = {self.now: self.free}
        for at, width in steps:
            changes[max(at, self.now)] = changes.get(max(at, self.now), 0) + width
        times = sorted(changes.keys() - {math.inf})
        return [*zip(times, itertools.accumulate(changes[at] for at in times), strict=True)]

    def earliest(self, job: Job) -> float:
        """The first time at which a job fits beside running jobs and all other promises."""
        found = math.inf
        for at, free in self.room(without=job):
            if at >= found + job.bound:
                break
            found = min(found, at) if free >= job.width else math.inf
        return found

    def promise(self, new: list[Job], *, early: bool) -> None:
        """Promise starts to new jobs, and look at all again when room appeared early.

        Where a run has outlived its bound, and a promise cannot be kept, all are made again.
        """
        if min(free for _, free in self.room()) < 0:
            early = True
            for job in self.line:
                job.start = math.inf
        for job in self.line if early else new:
            job.start = self.earliest(job)
            self.promised.setdefault(job.name, job.start)
        for job in [job for job in self.line if job.start <= self.now]:
            self.begin(job)

    # The clock

    def decide(self, new: list[Job], *, early: bool) -> None:
        if self.mode == "conservative":
            self.promise(new, early=early)
            return
        while self.line and self.line[0].width <= self.free:
            self.begin(self.line[0])
        if self.mode == "easy" and self.line:
            self.backfill()

    def play(self, jobs: list[Job]) -> None:
        coming = sorted(jobs, key=lambda job: (job.arrival, job.name), reverse=True)
        while coming or self.running:
            due = [job.start for job in self.line if self.now < job.start < math.inf]
            moments = [job.arrival for job in coming[-1:]] + [end for end, _, _ in self.running[:1]]
            self.now = int(min([*moments, *due]))
            new, early = [], False
            while self.running and self.running[0][0] <= self.now:
                job = heapq.heappop(self.running)[2]
                self.free += job.width
                early |= job.start + job.bound > self.now
            while coming and coming[-1].arrival <= self.now:
                new.append(coming.pop())
            self.line += new
            self.decide(new, early=early)
