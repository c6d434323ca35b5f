"""One process and its parts: started together, watched, and stopped in the right order.

A part that ends by itself, or a lost lease, ends the process: its
supervisor restarts it, from the state of the cluster.
"""

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

from pumice import logs
from pumice.cluster.lease import LeaseElector
from pumice.metrics import Metrics

_LOOK_S: Final = 0.25
_PATIENCE_S: Final = 25.0
"""Time for parts to end after a stop signal; a pod has 30 seconds by default."""
_STUCK_S: Final = 120.0
"""A cycle of 100,000 pods takes seconds; one that takes this long is stuck."""
_BLIND_S: Final = 600.0
"""A reconciliation makes a few requests, each of which may wait minutes for a dead server."""

_log = logs.get("serve")


@dataclass
class Part:
    """A part that runs until it is stopped."""

    name: str
    run: Callable[[threading.Event], None]
    needs_lead: bool = False
    """Whether it starts only once this process leads."""
    error: BaseException | None = None
    thread: threading.Thread | None = None

    def start(self, stop: threading.Event) -> None:
        """Run on a thread of its own."""
        self.thread = threading.Thread(
            target=self._guarded, args=(stop,), name=self.name, daemon=True
        )
        self.thread.start()

    def _guarded(self, stop: threading.Event) -> None:
        try:
            self.run(stop)
        except Exception as error:  # noqa: BLE001  # reported by whoever watches
            self.error = error

    @property
    def ended(self) -> bool:
        """Whether it was started and runs no more."""
        return self.thread is not None and not self.thread.is_alive()


@dataclass
class Watchdog:
    """Detects a missing heartbeat; quiet before the first beat."""

    limit_s: float
    what: str = "no cycle began"
    clock: Callable[[], float] = time.monotonic
    _last: float | None = None

    def beat(self) -> None:
        """Record a heartbeat."""
        self._last = self.clock()

    def problem(self) -> str:
        """Return what is wrong, nothing if nothing is."""
        silent_s = 0.0 if self._last is None else self.clock() - self._last
        return f"{self.what} for {silent_s:.0f} s" if silent_s > self.limit_s else ""


@dataclass
class Process:
    """Parts that start and end together."""

    metrics: Metrics
    parts: list[Part] = field(default_factory=list)
    elector: LeaseElector | None = None
    servers: list[Callable[[], AbstractContextManager[object]]] = field(default_factory=list)
    """Make servers besides that of health and metrics."""
    stop: threading.Event = field(default_factory=threading.Event)
    dump: Callable[[], object] | None = None
    """Writes the cache dump, on a signal."""
    patience_s: float = _PATIENCE_S
    scheduler_watchdog: Watchdog = field(default_factory=lambda: Watchdog(_STUCK_S))
    controllers_watchdog: Watchdog = field(
        default_factory=lambda: Watchdog(_BLIND_S, "no controller looked")
    )
    readiness: list[Callable[[], str]] = field(default_factory=list)
    """Each returns why its part does no work at the moment, nothing if it works."""
    problem: str = ""
    """Why the process ends by itself."""

    def __post_init__(self) -> None:
        self._dump_wanted = threading.Event()
        self._election: Part | None = None
        self._step_down = threading.Event()

    def run(self) -> int:
        """Run until stopped or until something breaks; return the exit code."""
        if self.elector is not None:
            self._election = Part("election", self.elector.run)
            self._election.start(self._step_down)
        for part in self.parts:
            if not part.needs_lead or self.elector is None:
                part.start(self.stop)
        while not self.stop.wait(_LOOK_S):
            self.watch()
        self._end_parts()
        self._step_down.set()  # only now: nothing of ours may write any more
        if self._election is not None and self._election.thread is not None:
            self._election.thread.join(self.patience_s)
        return 1 if self.problem else 0

    def is_leader(self) -> bool:
        """Return whether this process may work: it leads, or there is no election."""
        return self.elector is None or self.elector.is_leader()

    def health_problem(self) -> str:
        """Return why the process should be restarted, nothing if it should not."""
        watchdogs = (self.scheduler_watchdog, self.controllers_watchdog)
        return self.problem or next(filter(None, (dog.problem() for dog in watchdogs)), "")

    def watch(self) -> None:
        """Check parts and lease once."""
        if self.elector is not None:
            self._watch_lead(self.elector)
        else:
            self.metrics.leading(leads=True)
        watched = self.parts if self._election is None else [self._election, *self.parts]
        for part in watched:
            if part.ended and not self.stop.is_set():
                self._fail(f"{part.name} ended", part.error)
        if self._dump_wanted.is_set():
            self._dump_wanted.clear()
            self._write_dump()

    def handle_signals(self) -> None:
        """Stop on SIGTERM and SIGINT, at once on the second; dump on SIGUSR1 and SIGUSR2."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop_signal)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda *_: self._dump_wanted.set())

    def _on_stop_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.stop.is_set():
            os._exit(1)
        _log.info("stopping", signal=signal.Signals(number).name)
        self.stop.set()

    def _watch_lead(self, elector: LeaseElector) -> None:
        leads = elector.is_leader()
        self.metrics.leading(leads=leads)
        if elector.lost:
            self._fail("the lease is lost", None)
        for part in self.parts:
            if leads and part.needs_lead and part.thread is None:
                part.start(self.stop)

    def _fail(self, problem: str, error: BaseException | None) -> None:
        if self.problem:
            return
        self.problem = problem if error is None else f"{problem}: {error}"
        _log.error(problem, error=error if error is not None else "")
        if error is not None:
            _log.v(1).info("where", trace="".join(traceback.format_exception(error)))
        self.stop.set()

    def _end_parts(self) -> None:
        for part in self.parts:
            if part.thread is not None:
                part.thread.join(self.patience_s)
                if part.thread.is_alive():
                    _log.warning("part did not stop in time", part=part.name)
                    self.problem = self.problem or f"{part.name} did not stop in time"

    def _write_dump(self) -> None:
        if self.dump is None:
            return
        try:
            self.dump()
        except Exception as error:  # noqa: BLE001  # a dump is no reason to end
            _log.error("cannot write the cache dump", error=error)
