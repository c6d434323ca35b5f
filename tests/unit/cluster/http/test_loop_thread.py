"""An event loop in a thread: results, failures, cancellations, what gathers, and the end."""

import asyncio
import threading

import pytest

from pumice.cluster.http.loop_thread import LoopThread
from pumice.errors import InvariantError, UnavailableError


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_without_a_loop_nothing_is_sent() -> None:
    thread = LoopThread("test")
    thread.stop()
    with pytest.raises(UnavailableError) as caught:
        thread.run(doubled(1))
    assert not caught.value.sent


def test_the_thread_of_the_loop_does_not_wait_for_itself() -> None:
    thread = LoopThread("test")
    thread.start()

    async def inside() -> None:
        thread.run(doubled(1))

    with pytest.raises(InvariantError):
        thread.run(inside())
    thread.stop()


def test_a_caller_that_is_interrupted_cancels_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    thread = LoopThread("test")
    thread.start()
    began, ended = threading.Event(), threading.Event()

    async def long() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    started = asyncio.run_coroutine_threadsafe

    def interrupted(*arguments: object) -> object:
        future = started(*arguments)  # type: ignore[arg-type,var-annotated]

        def result() -> None:
            assert began.wait(10)
            raise KeyboardInterrupt

        monkeypatch.setattr(future, "result", result)
        return future

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.run(long())
    assert ended.wait(10)
    thread.stop()
