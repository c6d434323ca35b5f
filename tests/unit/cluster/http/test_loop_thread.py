"""An event loop in a thread: results, failures, cancellations, what gathers, and the end."""

import asyncio
import selectors
import socket
import threading
import time
from types import SimpleNamespace

import pytest

from pumice.cluster.http import loop_thread
from pumice.cluster.http.loop_thread import GatheringSelector, LoopThread
from pumice.errors import InvariantError, UnavailableError


async def doubled(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def failing() -> None:
    raise ValueError("no")


def test_a_coroutine_is_run_to_its_end() -> None:
    thread = LoopThread("test")
    loop = thread.start()
    assert thread.run(doubled(4)) == 8
    with pytest.raises(ValueError, match="no"):
        thread.run(failing())
    thread.stop()
    assert loop.is_closed()
    assert "test" not in {each.name for each in threading.enumerate()}
    thread.stop()


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


def test_the_end_cancels_what_still_runs() -> None:
    thread = LoopThread("test")
    loop = thread.start()
    began, cancelled = threading.Event(), threading.Event()

    async def long() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    asyncio.run_coroutine_threadsafe(long(), loop)
    assert began.wait(10)
    thread.stop()
    assert cancelled.is_set()


def test_a_selector_that_has_just_woken_lets_more_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    still = SimpleNamespace(monotonic=lambda: 1000.0, sleep=slept.append)
    monkeypatch.setattr(loop_thread, "time", still)
    near, far = socket.socketpair()
    with near, far, GatheringSelector(0.5) as selector:
        selector.register(near, selectors.EVENT_READ)
        far.send(b"x")
        assert selector.select(10.0)
        assert slept == []  # it was idle
        assert selector.select(10.0)
        assert slept == [0.5]


def test_a_selector_with_work_to_do_meanwhile_does_not_wait() -> None:
    near, far = socket.socketpair()
    with near, far, GatheringSelector(30.0) as selector:
        selector.register(near, selectors.EVENT_READ)
        far.send(b"x")
        assert selector.select(10.0)
        began = time.monotonic()
        assert selector.select(0)
        assert time.monotonic() - began < 10.0
