"""Variants of Pumice that are wrong on purpose: the simulation must notice each of them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

from pumice.api.decisions import Decisions
from pumice.binder import WriteResults
from pumice.cache.informer import Informer
from pumice.cluster.base import Event
from pumice.cluster.kube.client import KubeClient
from pumice.cluster.kube.cluster import KubeCluster
from pumice.cluster.kube.object_cache import ObjectCache, _version
from pumice.cluster.kube.reflector import Reflector
from pumice.cluster.kube.write_queue import WriteQueue
from pumice.cluster.lease import LeaseElector
from pumice.plugins.capacity import Capacity
from pumice.plugins.gang import Gang
from pumice.plugins.nodeshard import NodeShards
from pumice.plugins.proportion import Proportion
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from pumice.serve.scheduler.recovery import Recovery

_Patch = Callable[[], AbstractContextManager[Any]]


def _no_fence() -> AbstractContextManager[Any]:
    """Send writes whether this process leads or not."""
    always_open = property(lambda _: lambda: True, lambda *_: None)
    return patch.object(KubeCluster, "fence", always_open)


def _everybody_leads() -> AbstractContextManager[Any]:
    """Take a lease to be free although another holds it."""
    return patch.object(LeaseElector, "_free", lambda _: True)


def _old_caches() -> AbstractContextManager[Any]:
    """Take a lease over with what was known before, whether watches are open or not."""
    return _both(
        patch.object(KubeCluster, "start_over", lambda _: None),
        patch.object(KubeCluster, "wait_current", KubeCluster.wait_synced),
    )


def _nothing_assumed() -> AbstractContextManager[Any]:
    """Count a bind only once the cluster confirms it."""
    return patch.object(Informer, "assume", lambda *_: None)


def _no_looking() -> AbstractContextManager[Any]:
    """Take a bind in doubt not to have been done, without looking at the pod."""
    return _both(
        patch.object(Recovery, "_find", lambda *_: dict[str, Any]()),
        patch.object(KubeClient, "_is_bound", _never),
    )


async def _never(*_: object) -> bool:
    return False


def _lost_is_undone() -> AbstractContextManager[Any]:
    """Take a bind without an answer not to have been sent."""
    learn = Recovery._learn_bind

    def learn_bind(self: Recovery, result: Any, now: float) -> None:
        if getattr(result.error, "sent", False):
            result.error.sent = False
        learn(self, result, now)

    return _both(
        patch.object(Recovery, "_learn_bind", learn_bind),
        patch.object(KubeClient, "_is_bound", _raise),
    )


async def _raise(self: object, key: object, uid: str, node: str, error: Exception) -> bool:
    raise error


def _old_events_count() -> AbstractContextManager[Any]:
    """Apply every step of a watch, also repeated ones."""

    def apply(self: ObjectCache, events: Iterable[Event]) -> int:
        for event in events:
            version = _version(event.object["metadata"])
            self.version = version
            if event.type != "BOOKMARK":
                self._take(event, version)
        return 1

    return patch.object(ObjectCache, "apply", apply)


def _gaps_stay() -> AbstractContextManager[Any]:
    """Continue after a gap in a watch without listing what was missed."""
    list_once = Reflector.list_once

    async def list_seldom(self: Reflector) -> None:
        if not self._store.synced:
            await list_once(self)
            return
        _, version = await self._client.list(self._store.kind)
        self._store.version = int(version)
        self._listed = True

    return patch.object(Reflector, "list_once", list_seldom)


def _writes_vanish() -> AbstractContextManager[Any]:
    """Lose one write in twenty on its way through the lanes."""
    submit = WriteQueue.submit
    count = [0]

    def submit_most(self: WriteQueue, *arguments: Any) -> None:
        count[0] += 1
        if count[0] % 20:
            submit(self, *arguments)

    return patch.object(WriteQueue, "submit", submit_most)


def _torn_gangs() -> AbstractContextManager[Any]:
    """Start gangs with whatever fits."""
    return patch.object(Gang, "job_ready", lambda *_: True)


def _no_limits() -> AbstractContextManager[Any]:
    """Lift the limits of queues."""
    return _both(
        patch.object(Capacity, "allocatable", lambda *_: True),
        patch.object(Proportion, "allocatable", lambda *_: True),
    )


def _evictions_for_nobody() -> AbstractContextManager[Any]:
    """Evict a pod now and then, for no reason."""
    write = LiveScheduler._write

    def write_more(self: LiveScheduler, decisions: Decisions, *words: Any) -> WriteResults:
        tasks = self.informer.snapshot.tasks
        running = [key for key, row in sorted(tasks.row_of.items()) if tasks.node[row] >= 0]
        if running and int(self._cluster.now()) % 15 == 0:
            decisions.evictions.append(running[0])
        return write(self, decisions, *words)

    return patch.object(LiveScheduler, "_write", write_more)


def _shards_overlap() -> AbstractContextManager[Any]:
    """Use the nodes of other schedulers as well."""
    return patch.object(NodeShards, "filter_shape", lambda *_: None)


@contextmanager
def _both(
    first: AbstractContextManager[Any], second: AbstractContextManager[Any]
) -> Iterator[None]:
    with first, second:
        yield


BROKEN: Final[dict[str, _Patch]] = {
    "no fence": _no_fence,
    "everybody leads": _everybody_leads,
    "old caches": _old_caches,
    "nothing assumed": _nothing_assumed,
    "no looking": _no_looking,
    "lost is undone": _lost_is_undone,
    "old events count": _old_events_count,
    "gaps stay": _gaps_stay,
    "writes vanish": _writes_vanish,
    "torn gangs": _torn_gangs,
    "no limits": _no_limits,
    "evictions for nobody": _evictions_for_nobody,
    "shards overlap": _shards_overlap,
}
"""What is wrong, by name."""
RATES: Final[dict[str, dict[str, float]]] = {
    "no looking": {"unheard": 0.4},
    "lost is undone": {"unheard": 0.4, "long lags": 1.0},
}
"""Faults that a variant needs more often than most seeds have them, so that few seeds notice it."""
