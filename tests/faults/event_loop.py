"""An asyncio event loop of a simulated process: virtual time, and a simulated network."""

import asyncio
import contextvars
from functools import partial
from typing import Any

from pumice.clock import EPOCH, Timer
from tests.faults.simulation import SimulatedProcess


class _TimerHandle(asyncio.TimerHandle):
    """A call at a time; called off, it leaves the clock's queue too."""

    timer: Timer

    def cancel(self) -> None:
        self.timer.cancel()
        super().cancel()


class SimulatedEventLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as a client needs."""

    def __init__(self, process: SimulatedProcess) -> None:
        self.process = process
        self._tasks: set[asyncio.Task[Any]] = set()
        self._due: dict[asyncio.Handle, None] = {}
        """What is to be done at once, in order."""
        self.problems: list[str] = []
        process.on_kill.append(self._unwind)

    def time(self) -> float:
        return self.process.monotonic()

    def call_soon(  # type: ignore[override]  # hands its arguments on
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._due[handle] = None
        self.process.soon(partial(self._run, handle))
        return handle

    def call_soon_threadsafe(  # type: ignore[override]  # hands its arguments on
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]  # hands its arguments on
        self, delay: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]  # hands its arguments on
        self, when: float, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        handle = _TimerHandle(when, callback, args, self, context)
        handle.timer = self.process.at(when + EPOCH, partial(self._run_handle, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def create_connection(self, protocol_factory: Any, *_: Any, **__: Any) -> Any:
        """Open a connection to the one server there is."""
        return await self.process.simulation.network.connect(self, protocol_factory)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return not self.process.alive

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.problems.append(str(context.get("exception") or context.get("message")))

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def _run(self, handle: asyncio.Handle) -> None:
        self._due.pop(handle, None)
        self._run_handle(handle)

    def _run_handle(self, handle: asyncio.Handle) -> None:
        if not handle.cancelled():
            asyncio._set_running_loop(self)
            try:
                handle._run()
            finally:
                asyncio._set_running_loop(None)

    def _unwind(self) -> None:
        """Take apart what is left of a killed process, tasks that have not begun included."""

        def cancel() -> None:
            due = [*self._due]
            for task in [*self._tasks]:
                task.cancel()
            for handle in due:
                self._run(handle)

        self.process.unwind_tasks(cancel)


def new_event_loop(process: SimulatedProcess) -> SimulatedEventLoop:
    """Make a loop, although it has not all that an event loop may have."""
    make: Any = SimulatedEventLoop
    loop: SimulatedEventLoop = make(process)
    return loop
