"""Writes that wait for their turn: by urgency, one at a time for each object of a lane.

Used by KubeCluster on its event loop.  Knows no servers: the function that sends a write is given.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
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


Continue = Callable[[], Coroutine[Any, Any, None]]
"""Carries on with a write whose first attempt did not just succeed."""
Begin = Callable[[Write, Callable[[Continue | None], None]], Callable[[], None] | None]
"""Sends a write at once, if it can be, and returns what breaks it off; its argument is called with
the answer, later and once: with None if the write is done."""


class WriteLanes:
    """Carries writes out in parallel, at most ``workers`` at a time, lower lanes first.

    ``begin`` costs less than a coroutine, and is asked first.
    """

    def __init__(
        self,
        execute: Callable[[Write], Awaitable[Any]],
        *,
        begin: Begin = lambda *_: None,
        bucket: TokenBucket,
        workers: int,
        is_open: Callable[[], bool],
    ) -> None:
        self._execute = execute
        self._begin = begin
        self._bucket = bucket
        self._workers = workers
        self._is_open = is_open
        self._waiting: dict[Lane, deque[_QueuedWrite]] = {lane: deque() for lane in Lane}
        self._under_way: dict[_Slot, list[_QueuedWrite]] = {}
        """Writes that are being carried out, each before those that wait for it."""
        self._running: dict[asyncio.Task[None], None] = {}  # in the order of their start
        self._begun: dict[_Slot, Callable[[], None]] = {}
        """What breaks off the writes that were sent at once."""
        self._active = 0
        """Writes under way; a task that has ended may still be counted."""
        self._turns_awaited = 0
        """Turns that were asked for, and for which no write was chosen yet."""
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
        begun, self._begun = self._begun, {}
        for break_off in begun.values():
            break_off()
        running = [*self._running]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for item, *_ in [*self._under_way.values()]:  # sent at once, or about to be continued
            self._settle(item, UnavailableError(*item.target, problem="broken off"))
        with self._state:
            queues = [*self._waiting.values(), self._inbox]
            left = [item for queue in queues for item in queue]
            for queue in queues:
                queue.clear()
        for item in left:
            self._finish(item, UnavailableError(*item.target, problem="not sent", sent=False))

    def _collect(self) -> None:
        """Sort queued writes into their lanes, and carry out as many as may be under way."""
        with self._state:
            self._called = False
            if self._loop is None:  # closing has begun, and reports all queued writes
                return
            items = [*self._inbox]
            self._inbox.clear()
        for item in items:
            self._waiting[item.lane].append(item)
        self._carry_out()

    def _carry_out(self) -> None:
        """Carry out the most urgent writes, as many as may be under way."""
        while self._active < self._workers and any(self._waiting.values()):
            if self._loop is None:
                return
            needs_turn = self._is_open()  # otherwise nothing is sent
            if needs_turn and not self._bucket.has_turn():
                if self._turns_awaited >= sum(map(len, self._waiting.values())):
                    return
                self._turns_awaited += 1
                self._start(self._wait_for_turn)
                continue
            item = self._next()
            if item is None:
                return
            if needs_turn:
                self._bucket.take()
            break_off = self._begun_at_once(item)
            if break_off is None:
                self._start(partial(self._execute_in_turn, item, has_turn=needs_turn))
            else:
                self._active += 1
                self._begun[item.slot] = break_off

    def _begun_at_once(self, item: _QueuedWrite) -> Callable[[], None] | None:
        try:
            return self._begin(item.write, partial(self._answered, item))
        except Exception:  # noqa: BLE001  # the other way reports it
            return None

    def _answered(self, item: _QueuedWrite, rest: Continue | None) -> None:
        """Take the answer to a write that was sent at once."""
        if self._begun.pop(item.slot, None) is None:  # broken off
            return
        self._active -= 1
        if rest is not None:
            self._start(partial(self._perform, item, rest))
            return
        self._settle(item, None)
        self._carry_out()

    def _start(self, work: Continue) -> None:
        self._active += 1
        task = asyncio.get_running_loop().create_task(self._counted(work))
        self._running[task] = None
        task.add_done_callback(self._running.pop)

    async def _counted(self, work: Continue) -> None:
        try:
            await work()
        except GeneratorExit:  # it was left behind by a loop that has ended: nothing follows
            raise
        except BaseException:
            self._follow()
            raise
        self._follow()

    def _follow(self) -> None:
        """Carry out what follows a write that is done, at once: its task is not done yet."""
        if self._bucket.use_reserved():  # nothing was sent
            self._bucket.release()
        self._active -= 1
        self._carry_out()

    async def _wait_for_turn(self) -> None:
        """Wait before choosing a write: something more urgent may come."""
        try:
            await self._bucket.reserve()
        finally:
            self._turns_awaited -= 1
        item = self._next()
        if item is None:
            self._bucket.release()
        else:
            await self._perform(item, partial(self._execute, item.write))

    async def _execute_in_turn(self, item: _QueuedWrite, *, has_turn: bool) -> None:
        """Carry out a write whose turn, if it needs one, was taken when it was chosen."""
        if has_turn:
            self._bucket.hold()
        await self._perform(item, partial(self._execute, item.write))

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

    async def _perform(self, item: _QueuedWrite, carry_out: Callable[[], Awaitable[Any]]) -> None:
        error: ClusterError | None = None
        try:
            await carry_out()
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
