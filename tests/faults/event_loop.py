"""An asyncio event loop of a simulated process: virtual time, and a simulated network."""

import asyncio
import contextvars
from asyncio import _set_running_loop
from typing import Any

from pumice.clock import EPOCH, Timer
from tests.faults.simulation import SimulatedProcess


class _Call:
    """As ``asyncio.Handle``: a call that the loop makes unless it is cancelled before."""

    __slots__ = ("_args", "_callback", "_context", "loop")

    def __init__(
        self,
        loop: "SimulatedEventLoop",
        callback: Any,
        args: tuple[Any, ...],
        context: contextvars.Context | None,
    ) -> None:
        self.loop = loop
        self._callback = callback
        self._args = args
        self._context = contextvars.copy_context() if context is None else context

    def cancel(self) -> None:
        self._callback = None

    def cancelled(self) -> bool:
        return self._callback is None

    def __call__(self) -> None:
        """Make the call, unless the process is no more; later if it is frozen."""
        process = self.loop.process
        if self._callback is None or not process.alive:
            return
        if not (process.frozen_until and process.holds_back(self)):
            self.make()

    def make(self) -> None:
        """Make the call, as a step of the loop; what it raises is reported to the loop."""
        if self._callback is None:
            return
        _set_running_loop(self.loop)
        try:
            self._context.run(self._callback, *self._args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001  # as asyncio does
            self.loop.call_exception_handler({"exception": error})
        finally:
            _set_running_loop(None)


class _TimedCall(_Call):
    """A call at a time; cancelled, it leaves the clock's queue too."""

    __slots__ = ("_when", "timer")

    timer: Timer
    _when: float

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self.timer.action = self._callback = None


class SimulatedEventLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as a client needs."""

    def __init__(self, process: SimulatedProcess) -> None:
        self.process = process
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.problems: list[str] = []
        process.on_kill.append(self._unwind)

    def time(self) -> float:
        return self.process.simulation.clock._now - EPOCH

    def call_soon(  # type: ignore[override]  # hands its arguments on
        self, callback: Any, *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        call: Any = _Call(self, callback, args, context)
        self.process.soon_call(call)
        return call  # as much of a handle as anyone uses

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
        call: Any = _TimedCall(self, callback, args, context)
        call._when = when
        call.timer = self.process.simulation.clock.call_at(when + EPOCH, call)
        return call  # as much of a handle as anyone uses

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
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

    def _unwind(self) -> None:
        """Take apart what is left of a killed process, tasks that have not begun included."""

        def cancel() -> None:
            due = [each for each in self.process.waiting() if isinstance(each, _Call)]
            for task in [*self._tasks]:
                task.cancel()
            for call in due:
                if call.loop is self:
                    call.make()

        self.process.unwind_tasks(cancel)


def new_event_loop(process: SimulatedProcess) -> SimulatedEventLoop:
    """Make a loop, although it has not all that an event loop may have."""
    make: Any = SimulatedEventLoop
    loop: SimulatedEventLoop = make(process)
    return loop
