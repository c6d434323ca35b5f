"""The priority write queue: writes by urgency, one at a time for each object of a lane.

Used by KubeCluster on its event loop.  Knows no servers: the function that sends a write is given.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from pumice.cluster.base import Done, Lane, Write
from pumice.cluster.kube.paths import ObjectKey, identity_of
from pumice.cluster.kube.rate_limit import TokenBucket
from pumice.errors import ClusterError, UnavailableError

log = logging.getLogger(__name__)

_MOST_EVENTS: Final = 50_000


_Slot = tuple[Lane, ObjectKey, int]
"""Writes with the same slot are carried out one after another."""


class _QueuedWrite(NamedTuple):
    write: Write
    lane: Lane
    done: Done | None
    target: ObjectKey
    slot: _Slot


class WriteQueue:
    """Carries writes out in parallel, at most ``workers`` at a time, lower lanes first."""

    def __init__(
        self,
        execute: Callable[[Write], Awaitable[Any]],
        *,
        bucket: TokenBucket,
        workers: int,
        is_open: Callable[[], bool],
    ) -> None:
        self._execute = execute
        self._bucket = bucket
        self._most_workers = workers
        self._is_open = is_open
        self._waiting: dict[Lane, deque[_QueuedWrite]] = {lane: deque() for lane in Lane}
        self._under_way: dict[_Slot, list[_QueuedWrite]] = {}
        """Writes that are being carried out, each before those that wait for it."""
        self._workers: dict[asyncio.Task[None], None] = {}  # in the order of their start
        self._active = 0
        """Workers that run; one that has ended may be among the tasks for a moment."""
        self._choosing = 0
        """Workers that are about to choose a write."""
        self._inbox: deque[_QueuedWrite] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._called = False
        self._left = 0
        self._dropped = 0
        self._state = threading.Condition()

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to carry writes out."""
        self._loop = loop

    def submit(self, write: Write, lane: Lane, done: Done | None) -> None:
        """Queue a write, from any thread."""
        target = object_key_of(write)
        slot = lane, target, 0 if target[2] else id(write)
        item = _QueuedWrite(write, lane, done, target, slot)
        with self._state:
            loop = self._loop
            full = self._left >= _MOST_EVENTS and lane is Lane.EVENT
            if loop is not None and not full:
                self._left += 1
                self._inbox.append(item)
                if not self._called:  # one call for all writes that arrive before it runs
                    self._called = True
                    loop.call_soon_threadsafe(self._collect)
                return
        if full and not self._dropped:
            log.warning("write queue is full, dropping events")
        self._dropped += full
        problem = "not sent: too many writes are queued" if full else "not sent: not connected"
        _notify(item, UnavailableError(*item.target, problem=problem, sent=False))

    def flush(self, timeout_s: float) -> bool:
        """Wait until nothing is left; return whether that is so."""
        with self._state:
            return self._state.wait_for(lambda: self._left == 0, timeout_s)

    async def close(self) -> None:
        """Stop; remaining writes are reported as not done."""
        with self._state:
            self._loop = None
        workers = [*self._workers]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        with self._state:
            queues = [*self._waiting.values(), self._inbox]
            left = [item for queue in queues for item in queue]
            for queue in queues:
                queue.clear()
        for item in left:
            self._finish(item, UnavailableError(*item.target, problem="not sent", sent=False))

    def _collect(self) -> None:
        """Sort queued writes into their lanes, and start workers for them."""
        with self._state:
            self._called = False
            if self._loop is None:  # closing has begun, and reports all queued writes
                return
            items = [*self._inbox]
            self._inbox.clear()
        for item in items:
            self._waiting[item.lane].append(item)
        self._employ()

    def _employ(self) -> None:
        """Start as many workers as there are writes for them."""
        for _ in range(min(self._unclaimed(), self._most_workers - self._active)):
            self._active += 1
            worker = asyncio.get_running_loop().create_task(self._work())
            self._workers[worker] = None
            worker.add_done_callback(self._workers.pop)

    def _unclaimed(self) -> int:
        return sum(map(len, self._waiting.values())) - self._choosing

    async def _work(self) -> None:
        """Carry out one write after another, until none waits."""
        try:
            while self._unclaimed() > 0:
                item = await self._choose()
                if item is not None:
                    await self._perform(item)
                if self._bucket.use_reserved():  # nothing was sent
                    self._bucket.release()
        finally:
            self._active -= 1

    async def _choose(self) -> _QueuedWrite | None:
        """Return the most urgent write once it may be sent: something more urgent may come."""
        self._choosing += 1
        try:
            if self._is_open():  # otherwise nothing is sent
                await self._bucket.reserve()
        finally:
            self._choosing -= 1
        return self._next()

    def _next(self) -> _QueuedWrite | None:
        """Return the most urgent write; those whose object is busy are parked behind it."""
        for waiting in self._waiting.values():
            while waiting:
                item = waiting.popleft()
                behind = self._under_way.get(item.slot)
                if behind is None:
                    self._under_way[item.slot] = [item]
                    return item
                behind.append(item)
        return None

    async def _perform(self, item: _QueuedWrite) -> None:
        error: ClusterError | None = None
        try:
            await self._execute(item.write)
        except ClusterError as found:
            error = found
        except Exception as found:  # a malformed write must not stop the others
            log.exception("%s of %s failed", item.write.verb, item.target)
            error = ClusterError(*item.target, problem=repr(found))
        except BaseException:
            error = UnavailableError(*item.target, problem="broken off")
            raise
        finally:
            self._settle(item, error)

    def _settle(self, item: _QueuedWrite, error: ClusterError | None) -> None:
        """Report a write that was under way, and let those for the same object follow."""
        _, *behind = self._under_way.pop(item.slot)
        self._waiting[item.lane].extendleft(reversed(behind))
        self._finish(item, error)

    def _finish(self, item: _QueuedWrite, error: ClusterError | None) -> None:
        _notify(item, error)
        with self._state:
            self._left -= 1
            if self._left == 0:
                self._state.notify_all()


def object_key_of(write: Write) -> ObjectKey:
    """Name the object a write is about."""
    arguments = write.arguments
    match write.verb:
        case "bind" | "evict":
            return "Pod", arguments["namespace"], arguments["pod"]
        case "record":
            return identity_of(arguments["about"])
        case "create" | "update" | "update_status":
            return identity_of(arguments["manifest"])
        case _:
            return arguments["kind"], arguments["namespace"], arguments["name"]


def _notify(item: _QueuedWrite, error: ClusterError | None) -> None:
    if item.done is not None:
        try:
            item.done(error)
        except Exception:
            log.exception("%s of %s: its callback failed", item.write.verb, item.target)
