"""What production code takes from ``threading`` and its kin, for simulated threads.

Nothing here locks: only one simulated thread runs at a time, and it hands over only where it waits.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from pumice.errors import InvariantError, UnavailableError
from tests.faults.event_loop import SimulatedEventLoop, new_event_loop
from tests.faults.simulation import (
    ProcessKilledError,
    SimulatedThread,
    current_thread,
    is_simulated,
)

_T = TypeVar("_T")


_SHORTEST_S: Final = 1e-6
"""How long a wait lasts at least: a float of the clock must be able to represent it."""


class _Waiters:
    """Threads that wait for one thing."""

    def __init__(self) -> None:
        self._threads: list[SimulatedThread] = []

    def wait(self, ready: Callable[[], bool], timeout_s: float | None) -> bool:
        """Park the running thread until it is ready or its time is over; return whether it is."""
        if ready():
            return True
        thread = current_thread()
        process = thread.process
        until = None
        if timeout_s is not None:  # time advances with every wait, as it does on a real machine
            until = process.simulation.clock.now() + max(timeout_s, _SHORTEST_S)
            process.at(until, thread.wake)
        self._threads.append(thread)
        try:
            while not ready():
                if until is not None and process.simulation.clock.now() >= until:
                    return False
                thread.park()
        finally:
            self._threads.remove(thread)
        return True

    def wake(self) -> None:
        """Have all of them look again."""
        for thread in self._threads:
            thread.wake()


class Event:
    """As ``threading.Event``."""

    def __init__(self) -> None:
        self._set = False
        self._waiters = _Waiters()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        self._waiters.wake()

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        return self._waiters.wait(self.is_set, timeout)


class Condition:
    """As ``threading.Condition``, on which production code waits with a predicate only."""

    def __init__(self) -> None:
        self._waiters = _Waiters()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        return self._waiters.wait(predicate, timeout)

    def notify_all(self) -> None:
        self._waiters.wake()


class Thread:
    """As ``threading.Thread``."""

    def __init__(
        self, target: Callable[..., object], args: Any = (), name: str = "", *, daemon: bool = False
    ) -> None:
        self._target, self._args, self.name = target, args, name
        self._thread: SimulatedThread | None = None
        self._ended = Event()

    def start(self) -> None:
        process = current_thread().process
        self._thread = process.spawn(lambda: self._target(*self._args), self.name)
        self._thread.on_end.append(self._ended.set)

    def is_alive(self) -> bool:
        return self._thread is not None and not self._thread.ended

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)


class Threading:
    """Replaces the module ``threading`` where production code has imported it."""

    Event = Event
    Condition = Condition
    Thread = Thread


class Future(Generic[_T]):
    """As ``concurrent.futures.Future``."""

    def __init__(self) -> None:
        self._done = Event()
        self._value: Any = None
        self._error: BaseException | None = None

    def carry_out(self, work: Callable[[], _T]) -> None:
        """Run its work, on the thread that calls."""
        try:
            self._value = work()
        except Exception as error:  # noqa: BLE001  # handed to who waits
            self._error = error
        self._done.set()

    def exception(self) -> BaseException | None:
        self._done.wait()
        return self._error

    def result(self) -> _T:
        self._done.wait()
        if self._error is not None:
            raise self._error
        value: _T = self._value
        return value


class ThreadPoolExecutor:
    """As the executor of that name: at most so many threads, the rest waits in a queue."""

    def __init__(self, max_workers: int, thread_name_prefix: str = "") -> None:
        self._most = max_workers
        self._name = thread_name_prefix
        self._busy = 0
        self._queue: deque[Callable[[], None]] = deque()
        self._settled = Event()

    def submit(self, work: Callable[..., _T], *arguments: Any) -> Future[_T]:
        future: Future[_T] = Future()
        self._queue.append(lambda: future.carry_out(lambda: work(*arguments)))
        if self._busy < self._most:
            self._busy += 1
            current_thread().process.spawn(self._work, self._name)
        return future

    def shutdown(self, *, wait: bool = True, cancel_futures: bool = False) -> None:
        if cancel_futures:
            self._queue.clear()
        while wait and self._busy:
            self._settled.clear()
            self._settled.wait()

    def _work(self) -> None:
        while self._queue:
            self._queue.popleft()()
        self._busy -= 1
        self._settled.set()


class LoopThread:
    """As Pumice's own: coroutines run for other threads, on an event loop in virtual time."""

    def __init__(self, name: str, gather_s: float = 0.0) -> None:
        self.loop: SimulatedEventLoop | None = None

    def start(self) -> SimulatedEventLoop:
        self.loop = new_event_loop(current_thread().process)
        return self.loop

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        loop = self.loop
        if loop is not None and not loop.process.alive:
            coroutine.close()
            raise ProcessKilledError
        if loop is None:
            coroutine.close()
            raise UnavailableError(problem="not sent: not connected", sent=False)
        if not is_simulated():
            coroutine.close()
            raise InvariantError("a callback of a write never waits for another request")
        thread = current_thread()
        task = loop.create_task(coroutine)
        task.add_done_callback(lambda _: thread.wake())
        while not task.done():
            thread.park()
        return task.result()

    def stop(self) -> None:
        self.loop = None


class Unmeasured:
    """As Pumice's own metrics, but none is kept."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        setattr(self, name, _measure_nothing)
        return _measure_nothing


def _measure_nothing(*_: object, **__: object) -> None:
    pass


class FirstLoad:
    """Leaves the garbage collector alone: it is the tests', not the simulated process's."""

    ended = True

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    def undo(self) -> None:
        pass
