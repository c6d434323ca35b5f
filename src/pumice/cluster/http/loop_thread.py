"""An event loop in a thread of its own, for programs that are not written around one."""

import asyncio
import selectors
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from pumice.errors import InvariantError, UnavailableError

_T = TypeVar("_T")


class GatheringSelector(selectors.DefaultSelector):
    """Reports what is ready at most every ``gather_s`` seconds, and then all of it.

    A thread that wakes for each answer alone spends as much on waking as on the answers.
    """

    def __init__(self, gather_s: float) -> None:
        super().__init__()
        self._gather_s = gather_s
        self._woke_at = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait until something is ready, and not less than since the last time."""
        if timeout is not None and timeout <= 0:  # there is work to do meanwhile
            return super().select(timeout)
        early_s = self._woke_at + self._gather_s - time.monotonic()
        if early_s > 0:
            time.sleep(early_s)
        found = super().select(timeout)
        self._woke_at = time.monotonic()
        return found


class LoopThread:
    """Runs coroutines for other threads.

    With ``gather_s`` it reads from its connections at most every so many seconds.
    """

    def __init__(self, name: str, gather_s: float = 0.0) -> None:
        self._name = name
        self._gather_s = gather_s
        self._thread: threading.Thread | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> asyncio.AbstractEventLoop:
        """Start the loop."""
        loop = self.loop = asyncio.SelectorEventLoop(GatheringSelector(self._gather_s))
        self._thread = threading.Thread(
            target=self._run, args=(loop,), name=self._name, daemon=True
        )
        self._thread.start()
        return loop

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine to its end while the calling thread waits.

        Raises:
            UnavailableError: the loop does not run.
            InvariantError: the calling thread is the loop's own, and would wait for itself.
        """
        loop = self.loop
        if loop is None:
            coroutine.close()
            raise UnavailableError(problem="not sent: not connected", sent=False)
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise InvariantError("a callback of a write never waits for another request")
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop and its thread; waiting callers get a cancellation."""
        loop, thread = self.loop, self._thread
        if loop is None or thread is None:
            return
        self.loop = None
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():  # a garbage collection may call this there
            thread.join()
        self._thread = None

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
