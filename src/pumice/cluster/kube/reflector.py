"""Keeps a store in step with one kind of object on a server: list, watch, resume, start over.

Run by KubeCluster, one for each kind.  Never gives up; ``trouble`` has the last problem.  Where
the server can, a watch begins with the existing objects (WatchList), and nothing is listed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from pumice.api.kinds import Manifest
from pumice.cluster.base import Event
from pumice.cluster.kube.client import KubeClient
from pumice.cluster.kube.object_cache import ObjectCache
from pumice.cluster.kube.rate_limit import Backoff
from pumice.cluster.kube.watch_stream import ends_initial, watch_steps
from pumice.errors import ClusterError, GoneError, NotFoundError, RejectedError, UnavailableError

log = logging.getLogger(__name__)

_FIRST_S: Final = 0.8
_LONGEST_S: Final = 30.0
_ABSENT_S: Final = 60.0
_WATCH_S: Final = (300, 600)
_SHORT_S: Final = 1.0
_PATIENCE: Final = 5
_GATHER_S: Final = 0.005
"""How long further steps of a watch are left to gather: each one alone costs twice as much."""
_INITIAL_SILENCE_S: Final = 10.0
"""How long a watch that begins with the objects may be silent before they are complete."""


class Reflector:
    """Watches one kind; ``changed`` is called after the store has changed."""

    def __init__(self, client: KubeClient, store: ObjectCache, changed: Callable[[], None]) -> None:
        self._client = client
        self._store = store
        self._changed = changed
        self._timing = client.timing
        self._backoff = Backoff(_FIRST_S, _LONGEST_S, self._timing)
        self._listed = False
        self._streams = True
        self._lists_next = False
        self._started_over = False
        self.current = False
        """Whether the store has the kind as it was since ``start_over`` and the last gap."""
        self.trouble = ""
        """Why the kind is not being watched; empty when it is."""
        self.absent = False
        """Whether the server does not have the kind, so that there is nothing to watch."""

    def start_over(self) -> None:
        """Have the next run begin from scratch and at once, whatever is known and went wrong."""
        self.current = self._listed = self._lists_next = False
        self._progress()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            try:
                if not self._listed and self._streams and not self._lists_next:
                    await self.stream_once()
                    continue
                if not self._listed:
                    await self.list_once()
                await self.watch_once()
            except GoneError as error:  # too far back: start over, the second time in a row later
                log.info("%s: %s; listing again", self._store.kind, error.problem)
                self.current = self._listed = False
                if self._started_over:
                    await self._backoff.wait()
                self._started_over = True
            except NotFoundError as error:
                await self._absent(error)
            except ClusterError as error:
                asked = error.retry_after_s if isinstance(error, UnavailableError) else 0.0
                await self._failed(error.problem, asked)
            except Exception as error:  # whatever it is, the other kinds continue
                log.exception("%s: watch failed", self._store.kind)
                self._listed = False
                await self._failed(repr(error))

    async def list_once(self) -> None:
        """Start over from a complete list."""
        items: list[Manifest] = []
        version = ""
        async for page in self._client.pages(self._store.kind):
            if page is None:
                items.clear()
                continue
            for item in page.items or ():
                item["metadata"].pop("managedFields", None)
                items.append(self._store.known(item))
            version = str(page.metadata.get("resourceVersion") or "")
        self._take_all(items, version)

    async def stream_once(self) -> None:
        """Start over from the objects that a watch begins with, and continue that watch.

        A server that cannot do so, or is silent, is not asked again; after any other failure one
        list is read, so that a stream without end blocks nothing.
        """
        self._lists_next = True
        steps = watch_steps(self._client, self._store.kind, "", "", self._watch_s(), initial=True)
        async with aclosing(steps):
            try:
                later = await self._take_initial(steps)
            except RejectedError as error:
                log.debug("%s: watch without initial objects: %s", self._store.kind, error.problem)
                self._streams = False
                return
            except TimeoutError:
                log.info("%s: watch sent no initial objects; listing", self._store.kind)
                self._streams = False
                return
            await self._follow(steps, later)

    async def _take_initial(self, steps: AsyncIterator[list[Event]]) -> list[Event]:
        """Load the initial objects; return the steps that came together with the last.

        Raises:
            TimeoutError: nothing arrived for a while, and some are missing.
            UnavailableError: the watch ended before.
        """
        found: dict[tuple[str, str], Manifest] = {}
        while True:
            async with asyncio.timeout(_INITIAL_SILENCE_S):
                events = await anext(steps, None)
            if events is None:
                raise UnavailableError(
                    self._store.kind, problem="a watch ended before its initial objects"
                )
            for place, event in enumerate(events):
                metadata = event.object["metadata"]
                if ends_initial(event):
                    self._take_all([*found.values()], str(metadata["resourceVersion"]))
                    return events[place + 1 :]
                key = str(metadata.get("namespace") or ""), str(metadata.get("name"))
                if event.type == "DELETED":
                    found.pop(key, None)
                elif event.type != "BOOKMARK":
                    found[key] = self._store.known(event.object)

    def _take_all(self, items: list[Manifest], version: str) -> None:
        """Replace the store by a complete list."""
        differs = self._store.replace(items, version)
        self._listed, self._lists_next = True, False
        self._is_watched(differs=differs)

    def _is_watched(self, *, differs: bool = False) -> None:
        """Note that the store is current, and whether something in it has changed."""
        is_news = differs or not self.current
        self.current, self.trouble, self.absent = True, "", False
        if is_news:
            self._changed()

    async def watch_once(self) -> None:
        """Apply one watch from the store's version on, until the server ends it."""
        since = str(self._store.version)
        steps = watch_steps(self._client, self._store.kind, "", since, self._watch_s())
        async with aclosing(steps):
            await self._follow(steps, [])

    def _watch_s(self) -> int:
        low, high = _WATCH_S
        return low + int(self._timing.jitter() * (high - low))

    async def _follow(self, watch: AsyncIterator[list[Event]], first: list[Event]) -> None:
        """Apply the steps of a watch, ``first`` those that came already, until it ends."""
        begun, steps = self._timing.clock(), len(first)
        if self._store.apply(first):
            self._changed()
        async for events in watch:
            self._is_watched()
            steps += len(events)
            if steps:
                self._progress()
            if self._store.apply(events):
                self._changed()
            if events:
                await asyncio.sleep(_GATHER_S)
        if steps or self._timing.clock() - begun >= _SHORT_S:
            self._progress()
        else:
            await self._backoff.wait()  # a server that ends each watch at once

    def _progress(self) -> None:
        self._backoff.reset()
        self._started_over = False

    async def _absent(self, error: NotFoundError) -> None:
        """Treat a kind that the server has in no version as empty, and ask again later."""
        if self._client.use_next_version(self._store.kind):
            self._listed = self._lists_next = False
            return
        if not self.trouble:
            log.info("%s: the server does not have it", self._store.kind)
        self._listed = False
        self._is_watched(differs=self._store.replace((), "0"))
        self.trouble, self.absent = str(error), True
        await self._timing.sleep(_ABSENT_S * (0.9 + 0.2 * self._timing.jitter()))

    async def _failed(self, problem: str, at_least_s: float = 0.0) -> None:
        """Wait, then resume; after many failures in a row the version itself may be at fault."""
        if problem != self.trouble:
            log.warning("%s: %s; retrying", self._store.kind, problem)
        self.current, self.trouble, self.absent = False, problem, False
        await self._backoff.wait(min(at_least_s, _LONGEST_S))
        if self._backoff.failures >= _PATIENCE:
            self._listed = False
