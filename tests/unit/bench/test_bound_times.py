"""How long pods wait until they are bound, from the lines of a watch."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bench.bound_times import BoundTimes


def line(kind: str, name: str, version: int, node: str = "") -> bytes:
    spec = {"nodeName": node} if node else {}
    metadata = {"name": name, "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": metadata, "spec": spec}}).encode()


def test_a_pod_waits_from_created_to_bound() -> None:
    times = BoundTimes()
    times.see(line("ADDED", "a", 1), 10.0)
    times.see(line("MODIFIED", "a", 2), 11.0)
    times.see(line("MODIFIED", "a", 3, "n1"), 12.5)
    times.see(line("MODIFIED", "a", 4, "n1"), 14.0)
    assert times.waited_s == [2.5]
    assert (times.last_bound_at, times.version) == (12.5, "4")


def test_a_deleted_pod_is_not_waited_for() -> None:
    times = BoundTimes()
    times.see(line("ADDED", "a", 1), 10.0)
    times.see(line("DELETED", "a", 2), 11.0)
    times.see(line("ADDED", "a", 3), 20.0)
    times.see(line("MODIFIED", "a", 4, "n1"), 21.0)
    assert times.waited_s == [1.0]


class Refusing:
    """An API server that refuses some requests."""

    def __init__(self, *, lists: bool) -> None:
        self.lists = lists

    @asynccontextmanager
    async def connect(self, _: int) -> Any:
        yield self

    async def send(self, *_: str) -> Any:
        if not self.lists:
            raise ConnectionError("list refused")
        return {"metadata": {"resourceVersion": "1"}}

    async def lines(self, _: str) -> Any:
        await asyncio.sleep(0.05)
        if self.lists:
            raise ConnectionError("watch refused")
        yield b""


def test_a_watch_that_cannot_begin_fails_at_once() -> None:
    refusing: Any = Refusing(lists=False)
    with pytest.raises(ConnectionError, match="list refused"), BoundTimes.followed(refusing, "n"):
        raise AssertionError("it must not begin")


def test_a_watch_that_ends_fails_who_waits() -> None:
    refusing: Any = Refusing(lists=True)
    with (
        pytest.raises(ConnectionError, match="watch refused"),
        BoundTimes.followed(refusing, "n") as times,
    ):
        asyncio.run(times.wait_bound(1, 30.0))
