"""A real cluster behind the Cluster protocol, and a Writer that writes in parallel.

Used by the scheduler, the controllers and the commands.  All traffic runs on an event loop in a
thread of its own; reads of the given kinds are answered from memory.
"""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from pumice.api.cloning import clone
from pumice.api.kinds import Manifest
from pumice.cluster.base import Done, Event, Lane, Write
from pumice.cluster.http.loop_thread import LoopThread
from pumice.cluster.kube.client import KubeClient
from pumice.cluster.kube.connection import Connection
from pumice.cluster.kube.object_cache import ObjectCache
from pumice.cluster.kube.paths import kind_named
from pumice.cluster.kube.rate_limit import Timing
from pumice.cluster.kube.reflector import Reflector
from pumice.cluster.kube.retry import ATTEMPTS
from pumice.cluster.kube.watch_stream import watch_steps
from pumice.cluster.kube.write_queue import WriteQueue
from pumice.errors import NotFoundError, UnavailableError
from pumice.garbage_collection import collect_rarely


class FirstLoad:
    """Switches garbage collection off from ``begin`` to ``end``; objects made then are exempt."""

    def __init__(self) -> None:
        self._before: tuple[int, int, int] | None = None
        self.ended = False

    def begin(self) -> None:
        """Stop collecting, if it is on."""
        if gc.isenabled():
            self._before = gc.get_threshold()
            gc.disable()

    def end(self) -> None:
        """Collect again, less often, and without existing objects."""
        if self._before is not None and not self.ended:
            gc.freeze()
            collect_rarely()
            gc.enable()
        self.ended = True

    def undo(self) -> None:
        """Restore the earlier state."""
        self.end()
        if self._before is not None:
            gc.unfreeze()
            gc.set_threshold(*self._before)
            self._before = None


_P = ParamSpec("_P")
_T = TypeVar("_T")
_Events = list[Event]
_Manifests = list[Manifest]
_Names = list[str]

_FIRST_LIST_S: Final = 60.0
_SHORT_WATCH_S: Final = 1
_GATHER_S: Final = 0.002
"""How long answers and changes are left to gather; one alone costs twice as much."""


def _blocking(
    verb: Callable[Concatenate[KubeClient, _P], Coroutine[Any, Any, _T]],
) -> Callable[Concatenate["KubeCluster", _P], _T]:
    """Make a method of the cluster of one of its client: the calling thread waits for it."""

    @wraps(verb)
    def call(self: "KubeCluster", /, *arguments: _P.args, **options: _P.kwargs) -> _T:
        return self._thread.run(verb(self._client, *arguments, **options))

    return call


class KubeCluster:
    """A real cluster; use it as a context manager.

    ``get``, ``list`` and ``watch`` of a kind in ``kinds`` are answered from memory; ``get`` and
    ``list`` wait for the first complete list if there is none yet.  Objects of ``list``, ``watch``,
    ``peek`` are shared with the store: readers must not change them.  ``watch`` never waits and
    reports of each object only its last change.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        kinds: Sequence[str] = (),
        qps: float = 50.0,
        burst: int = 100,
        workers: int = 128,
        timeout_s: float = 30.0,
        attempts: int = ATTEMPTS,
        timing: Timing | None = None,
        by_server: bool = False,
        follow_after_s: float = 0.0,
    ) -> None:
        """Make one; its time is the machine's, or ``by_server`` that of the server's answers.

        Kinds are listed first so much later, or with the first ``start_over`` if that is earlier.
        """
        self.wake = threading.Event()
        """Set when an object was added or changed; a waiter clears it before it reads."""
        self.server = connection.server
        """Address of the API server."""
        self._wakes = [self.wake]
        self._timing = timing or Timing()
        self._client = KubeClient(
            connection,
            qps=qps,
            burst=burst,
            timeout_s=timeout_s,
            attempts=attempts,
            known=self.peek,
            timing=self._timing,
        )
        self._now = self._client.server_time.now if by_server else self._timing.wall
        self._stores = {kind_named(kind).name: ObjectCache(kind) for kind in kinds}
        self._reflectors = {
            kind: Reflector(self._client, store, self._changed)
            for kind, store in self._stores.items()
        }
        self._queue = WriteQueue(
            self._execute,
            bucket=self._client.bucket,
            workers=workers,
            is_open=lambda: self._client.fence(),  # noqa: PLW0108  # it may be another one later
        )
        self._thread = LoopThread("kube-cluster", _GATHER_S if kinds else 0.0)
        self._follow_after_s = follow_after_s
        self._first_follow: asyncio.TimerHandle | None = None
        self._following: list[asyncio.Task[None]] = []
        self._sync = threading.Condition()
        self._first_load = FirstLoad()

    def __enter__(self) -> Self:
        """Connect, and begin to watch the kinds."""
        if self._stores:
            self._first_load.begin()
        self._queue.open(self._thread.start())
        self._thread.run(self._follow())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Abort everything in progress; ``flush`` first to wait for writes."""
        try:
            self._thread.run(self._stop())
        finally:
            self._thread.stop()
            self._first_load.undo()

    @property
    def fence(self) -> Callable[[], bool]:
        """Checked immediately before each write; False holds it back with a FencedError."""
        return self._client.fence

    @fence.setter
    def fence(self, fence: Callable[[], bool]) -> None:
        self._client.fence = fence

    def new_wake(self) -> threading.Event:
        """Return one more event like ``wake``, for one more loop; it is set to begin with."""
        wake = threading.Event()
        wake.set()
        self._wakes = [*self._wakes, wake]
        return wake

    def wait_synced(self, timeout_s: float) -> _Names:
        """Wait for the first complete list of all kinds; return those without one."""
        with self._sync:
            self._sync.wait_for(lambda: not self._incomplete(), timeout_s)
        return self._incomplete()

    def start_over(self) -> None:
        """List and watch every kind again, at once, and call none current before.

        A watch that is open is no proof: it may be behind, or in truth lost.
        """
        self._thread.run(self._start_over())

    def wait_current(self, timeout_s: float) -> _Names:
        """Wait until all kinds are listed since ``start_over`` and watched; return the others."""
        with self._sync:
            self._sync.wait_for(lambda: not self._outdated(), timeout_s)
        return self._outdated()

    def troubles(self) -> dict[str, str]:
        """Return by kind why it is not being watched; empty when all is well."""
        found = self._reflectors.items()
        return {kind: one.trouble for kind, one in found if one.trouble and not one.absent}

    def absent(self) -> _Names:
        """List the kinds that the server does not have; they count as empty."""
        return [kind for kind, reflector in self._reflectors.items() if reflector.absent]

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self._now()

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Return one object, as a copy."""
        store = self._complete(kind)
        if store is None:
            return self._thread.run(self._client.get(kind, namespace, name))
        found = store.get(namespace, name)
        if found is None:
            raise NotFoundError(kind, namespace, name)
        copied: Manifest = clone(found)
        return copied

    def peek(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return one object from memory; never asks the server."""
        store = self._stores.get(kind)
        return None if store is None else store.get(namespace, name)

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[_Manifests, str]:
        """Return all objects of a kind and the resourceVersion from which to watch."""
        store = self._complete(kind)
        if store is None:
            return self._thread.run(self._client.list(kind, namespace, labels))
        return store.list(namespace, labels)

    def watch(self, kind: str, namespace: str = "", since: str = "") -> Iterator[Event]:
        """Return what happened after a resourceVersion; of an unwatched kind, within a second."""
        store = self._stores.get(kind)
        if store is None:
            return self._short_watch(kind, namespace, since)
        return iter(store.since(since, namespace))

    create = _blocking(KubeClient.create)
    try_create = _blocking(KubeClient.try_create)
    update = _blocking(KubeClient.update)
    update_status = _blocking(KubeClient.update_status)
    patch = _blocking(KubeClient.patch)
    delete = _blocking(KubeClient.delete)
    bind = _blocking(KubeClient.bind)
    evict = _blocking(KubeClient.evict)
    record = _blocking(KubeClient.record)
    read = _blocking(KubeClient.read)
    read_path = _blocking(KubeClient.read_path)
    read_text = _blocking(KubeClient.read_text)

    def submit(self, write: Write, *, lane: Lane, done: Done | None = None) -> None:
        """Queue a write; ``done`` is called on the thread of the event loop and must not block."""
        self._queue.submit(write, lane, done)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything handed in is done; return whether it is."""
        return self._queue.flush(timeout_s)

    def _execute(self, write: Write) -> Coroutine[Any, Any, Any]:
        carried: Coroutine[Any, Any, Any] = getattr(self._client, write.verb)(**write.arguments)
        return carried

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        self._first_follow = loop.call_later(self._follow_after_s, self._reflect)
        loop.call_later(_FIRST_LIST_S, self._first_load.end)

    def _reflect(self) -> None:
        loop = asyncio.get_running_loop()
        self._following = [loop.create_task(r.run()) for r in self._reflectors.values()]

    async def _start_over(self) -> None:
        await self._unfollow()
        for reflector in self._reflectors.values():
            reflector.start_over()
        self._reflect()

    async def _unfollow(self) -> None:
        if self._first_follow is not None:
            self._first_follow.cancel()
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)

    async def _stop(self) -> None:
        await self._unfollow()
        await self._queue.close()
        await self._client.close()

    def _short_watch(self, kind: str, namespace: str, since: str) -> Iterator[Event]:
        """Return the events of one short watch, then raise the error that ended it, if any."""
        found: _Events = []

        async def watch() -> None:
            async for events in watch_steps(self._client, kind, namespace, since, _SHORT_WATCH_S):
                found.extend(events)

        try:
            self._thread.run(watch())
        finally:
            yield from found

    def _changed(self) -> None:
        """Notify all waiters; called on the event loop."""
        if not self._first_load.ended and not self._incomplete():
            self._first_load.end()
        with self._sync:
            self._sync.notify_all()
        for wake in self._wakes:
            wake.set()

    def _incomplete(self) -> _Names:
        return [kind for kind, store in self._stores.items() if not store.synced]

    def _outdated(self) -> _Names:
        return [kind for kind, reflector in self._reflectors.items() if not reflector.current]

    def _complete(self, kind: str) -> ObjectCache | None:
        """Return the store of a kind once it is complete; None if the kind is not watched."""
        store = self._stores.get(kind)
        if store is not None and not store.synced:
            with self._sync:
                self._sync.wait_for(lambda: store.synced, _FIRST_LIST_S)
            if not store.synced:
                trouble = self._reflectors[kind].trouble or "no complete list yet"
                raise UnavailableError(kind, problem=trouble)
        return store
