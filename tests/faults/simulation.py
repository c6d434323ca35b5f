"""Programs written for threads and event loops, run one at a time on a virtual clock.

Every thread of a simulated process is a greenlet: it runs until it waits for something, and hands
over.  What happens next is decided by the clock's queue alone, so equal seeds give equal runs.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from greenlet import getcurrent, greenlet

from pumice.clock import EPOCH, Timer, VirtualClock

_MOST_STEPS: Final = 200_000
"""Steps without time going on after which a run counts as stuck."""


class Network(Protocol):
    """Where event loops open their connections."""

    async def connect(self, loop: Any, protocol_factory: Callable[[], Any]) -> Any:
        """Open a connection; return transport and protocol."""


class ProcessKilledError(BaseException):
    """Raised in the threads of a killed process; not an Exception, so no code handles it."""


class StuckError(Exception):
    """Time does not advance: something happens again and again at one instant."""


class SimulatedThread:
    """One thread of a process; runs while the simulation waits, and vice versa."""

    def __init__(
        self, process: "SimulatedProcess", target: Callable[[], object], name: str
    ) -> None:
        self.process = process
        self.name = name
        self.ended = False
        self.waits = False
        """Whether it is parked and was not asked to continue yet."""
        self.on_end: list[Callable[[], None]] = []
        self._target = target
        self._greenlet = greenlet(self._run)

    def _run(self) -> None:
        try:
            if self.process.alive:
                self._target()
        except ProcessKilledError:
            pass
        finally:
            self.ended = True
            for each in self.on_end:
                each()

    def resume(self) -> None:
        """Run it until it waits or ends; called by the simulation."""
        simulation = self.process.simulation
        before, simulation.current = simulation.current, self
        self._greenlet.parent = getcurrent()
        self._greenlet.switch()
        simulation.current = before

    def park(self) -> None:
        """Yield until it is woken; called on the thread itself.

        Raises:
            ProcessKilledError: its process was killed.
        """
        if self.process.alive:
            self.waits = True
            self._greenlet.parent.switch()
        if not self.process.alive:
            raise ProcessKilledError

    def wake(self) -> None:
        """Make a parked thread continue soon; more than once does no more than once."""
        if self.waits:
            self.waits = False
            self.process.soon(self.resume)

    def unwind(self) -> None:
        """End a thread of a killed process, wherever it is."""
        if not self.ended:
            self.waits = False
            self.resume()


class SimulatedProcess:
    """What belongs together and dies together: threads, timers, event loops, connections."""

    def __init__(self, simulation: "Simulation", name: str) -> None:
        self.simulation = simulation
        self.name = name
        self.alive = True
        self.skew_s = 0.0
        """How far its wall clock is off."""
        self.threads: list[SimulatedThread] = []
        self.on_kill: list[Callable[[], None]] = []
        self.frozen_until = 0.0
        """Until when all that is due for it waits; 0 if it is not frozen."""
        self._frozen: list[Callable[[], object]] = []
        self._last_words: deque[Callable[[], object]] | None = None

    def monotonic(self) -> float:
        """Return the time of its steady clock."""
        return self.simulation.clock._now - EPOCH

    def wall(self) -> float:
        """Return the time that its wall clock shows."""
        return self.simulation.clock._now + self.skew_s

    def at(self, when: float, action: Callable[[], object]) -> Timer:
        """Do something at a time of the clock, later if the process is frozen then."""
        return self.simulation.clock.call_at(when, partial(self.do, action))

    def soon(self, action: Callable[[], object]) -> None:
        """Do something as soon as everything that is due before is done."""
        if self._last_words is not None:
            self._last_words.append(action)
        else:
            self.simulation.soon(partial(self.do, action))

    def soon_call(self, call: "LoopCall") -> None:
        """Have a step of an event loop made soon, which itself asks whether it is held back."""
        if self._last_words is not None:
            self._last_words.append(call.make)
        else:
            self.simulation._ready.append(call)

    def do(self, action: Callable[[], object]) -> None:
        """Do something now, unless the process is no more; later if it is frozen."""
        if not self.holds_back(action):
            action()

    def holds_back(self, action: Callable[[], object]) -> bool:
        """Return whether something must not be done now: it is no more, or keeps it for later."""
        if not self.alive:
            return True
        if self.frozen_until and self.frozen_until > self.simulation.clock._now:
            self._frozen.append(action)
            return True
        return False

    def waiting(self) -> list[Callable[[], object]]:
        """Return what is due at once, of this process and others, and what it keeps for later."""
        return [*self._frozen, *self.simulation.due()]

    def spawn(self, target: Callable[[], object], name: str) -> SimulatedThread:
        """Start a thread."""
        thread = SimulatedThread(self, target, name)
        self.threads.append(thread)
        self.soon(thread.resume)
        return thread

    def freeze(self, seconds: float) -> None:
        """Freeze it for a while, as a paused machine does; its clocks continue."""
        self.frozen_until = self.simulation.clock.now() + seconds
        self.simulation.clock.call_at(self.frozen_until, self.thaw)

    def thaw(self) -> None:
        """Continue after a freeze, with all that was due meanwhile, in order."""
        self.frozen_until = 0.0
        waiting, self._frozen = self._frozen, []
        for action in waiting:
            self.soon(action)

    def kill(self) -> None:
        """End it at once: nothing that it was about to do is done, nothing that it has left."""
        if not self.alive:
            return
        self.alive = False
        for each in self.on_kill:
            each()
        for thread in self.threads:
            thread.unwind()

    def unwind_tasks(self, cancel: Callable[[], object]) -> None:
        """Cancel the tasks of a killed process's event loops, so that none is left over."""
        self._last_words = deque()
        cancel()
        while self._last_words:
            self._last_words.popleft()()


class LoopCall(Protocol):
    """A step of an event loop."""

    def __call__(self) -> None:
        """Make it, unless its process holds it back."""

    def make(self) -> None:
        """Make it in any case."""


class Simulation:
    """The clock's queue, and the thread that runs."""

    network: Network

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.current: SimulatedThread | None = None
        self._ready: deque[Callable[[], object]] = deque()

    def soon(self, action: Callable[[], object]) -> None:
        """Do something at this instant, after what is to be done before it."""
        self._ready.append(action)

    def due(self) -> list[Callable[[], object]]:
        """Return what is to be done at this instant, in order."""
        return [*self._ready]

    def next(self, action: Callable[[], object]) -> None:
        """Do something before anything else, once what is being done now is done."""
        self._ready.appendleft(action)

    def run(self, until: float, over: Callable[[], bool] = lambda: False) -> None:
        """Run everything until a time of the clock, or until it is over.

        Raises:
            StuckError: time does not advance.
        """
        clock, ready = self.clock, self._ready
        steps, instant = 0, clock.now()
        while not over():
            while ready:
                ready.popleft()()
                steps += 1
                if steps > _MOST_STEPS:
                    raise StuckError
            if not clock.step(until):
                break
            if clock._now > instant:
                steps, instant = 0, clock._now
        if not over():
            clock.advance_to(until)


_CURRENT: list[Simulation] = []


def current_thread() -> SimulatedThread:
    """Return the simulated thread that runs now."""
    thread = _CURRENT[-1].current
    assert thread is not None, "the simulation itself waits for nothing"
    return thread


def enter(simulation: Simulation) -> None:
    """Make a simulation the one whose threads run."""
    _CURRENT.append(simulation)


def leave(simulation: Simulation) -> None:
    """Undo ``enter``."""
    assert _CURRENT.pop() is simulation


def is_simulated() -> bool:
    """Return whether a simulated thread runs now."""
    return bool(_CURRENT) and _CURRENT[-1].current is not None
