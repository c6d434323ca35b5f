"""LoopThread: what connections have is read together when much comes, at once otherwise."""

import selectors
import socket
import time

from pumice.cluster.http.loop_thread import GatheringSelector


def test_a_selector_that_has_just_woken_lets_more_gather() -> None:
    near, far = socket.socketpair()
    with near, far, GatheringSelector(0.05) as selector:
        selector.register(near, selectors.EVENT_READ)
        far.send(b"x")
        began = time.monotonic()
        assert selector.select(10.0)
        assert time.monotonic() - began < 0.05  # it was idle
        assert selector.select(10.0)
        assert time.monotonic() - began >= 0.05


def test_a_selector_with_work_to_do_meanwhile_does_not_wait() -> None:
    near, far = socket.socketpair()
    with near, far, GatheringSelector(30.0) as selector:
        selector.register(near, selectors.EVENT_READ)
        far.send(b"x")
        assert selector.select(10.0)
        began = time.monotonic()
        assert selector.select(0)
        assert time.monotonic() - began < 10.0
