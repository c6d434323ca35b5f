"""Where a record comes from: a cluster that a scheduler reads, or one that is only watched."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pumice.api.kinds import CONFIG_MAP, JOB, LIMIT_RANGE, RESOURCE_CLAIM_TEMPLATE, Manifest
from pumice.api.objects import FOLLOWED
from pumice.cluster.base import Cluster, Event
from pumice.errors import ClusterError, GoneError, NotFoundError
from pumice.records.recorder import Recorder

BESIDE: Final = (JOB, LIMIT_RANGE, RESOURCE_CLAIM_TEMPLATE)
"""Kinds that answers use and the scheduler does not."""
RECORDED: Final = (*FOLLOWED, *BESIDE)
_CONF_S: Final = 30.0
"""How often the stored configuration is read."""
_NEEDED: Final = ("Node", "Pod")
_LOOK_S: Final = 0.5
_FIRST_S: Final = 30.0
"""How long the first lists may take."""
_Objects = list[Manifest]


class ObservedCluster:
    """A cluster as a scheduler sees it: all that it is shown is recorded, in that order."""

    def __init__(self, cluster: Any, recorder: Recorder) -> None:
        self._cluster = cluster
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def list(
        self, kind: str, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[_Objects, str]:
        """Return all objects of a kind, and record them."""
        items, version = self._cluster.list(kind, namespace, labels)
        if kind in FOLLOWED and not namespace and not labels:
            self._recorder.listed(kind, items)
        return items, version

    def watch(self, kind: str, namespace: str = "", since: str = "") -> Iterator[Event]:
        """Return what happened, and record it."""
        events = [*self._cluster.watch(kind, namespace, since)]
        if events and not namespace:
            self._recorder.changed(events)
        return iter(events)

    def get(self, kind: str, namespace: str, name: str) -> Manifest:
        """Return one object; a ConfigMap is recorded, since plugins read it."""
        return self._seen(kind, self._cluster.get(kind, namespace, name))

    def read(self, kind: str, namespace: str, name: str, *, timeout_s: float) -> Manifest:
        """Do as ``get``."""
        return self._seen(kind, self._cluster.read(kind, namespace, name, timeout_s=timeout_s))

    def _seen(self, kind: str, found: Manifest) -> Manifest:
        if kind == CONFIG_MAP:
            self._recorder.put(found)
        return found


def unread(cluster: Any) -> dict[str, str]:
    """Return the kinds that a real cluster has not shown yet, with the reasons."""
    known = cluster.troubles()
    return {kind: known.get(kind, "no complete list yet") for kind in cluster.wait_synced(0)}


def wait_synced(cluster: Any, is_stopped: Callable[[], bool]) -> None:
    """Wait for the kinds without which nothing can be told; others may stay hidden.

    Raises:
        ClusterError: they cannot be read.
    """
    waited = 0.0
    while not is_stopped() and waited < _FIRST_S:
        missing = cluster.wait_synced(_LOOK_S)
        waited += _LOOK_S
        if not missing or (waited > _LOOK_S and not set(_NEEDED) & set(missing)):
            return
    for kind in _NEEDED:
        cluster.list(kind)


class Follower:
    """Records a cluster step by step, with read rights only."""

    def __init__(
        self,
        cluster: Cluster,
        recorder: Recorder,
        kinds: Sequence[str] = RECORDED,
        *,
        conf: Callable[[Cluster], tuple[str, str] | None] | None = None,
        hidden: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Make one.

        ``conf`` reads text and place of the stored scheduler configuration; ``hidden`` returns the
        kinds that cannot be read at present, with the reasons.
        """
        self._cluster = cluster
        self._recorder = recorder
        self._conf = conf
        self._conf_at = 0.0
        self._since: dict[str, str] = dict.fromkeys(kinds, "")
        self._hidden = hidden

    def step(self) -> None:
        """Record what changed since the last time."""
        hidden = dict(self._hidden())
        for kind in [kind for kind in self._since if kind not in hidden]:
            try:
                self._follow(kind)
            except NotFoundError:  # a cluster without this kind
                continue
            except ClusterError as error:
                hidden[kind] = error.problem
        self._recorder.hidden(hidden)
        now = self._cluster.now()
        if self._conf is not None and now >= self._conf_at:
            self._conf_at = now + _CONF_S
            found = self._conf(self._cluster)
            if found is not None:
                self._recorder.configured(*found)

    def _follow(self, kind: str) -> None:
        since = self._since[kind]
        if since:
            try:
                self._take([*self._cluster.watch(kind, since=since)], kind)
            except GoneError:
                self._since[kind] = since = ""
        if not since:
            items, self._since[kind] = self._cluster.list(kind)
            self._recorder.listed(kind, items)

    def _take(self, events: Sequence[Event], kind: str) -> None:
        if events:
            self._recorder.changed(events)
            self._since[kind] = events[-1].object["metadata"]["resourceVersion"]
