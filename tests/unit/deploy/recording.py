"""Runs scheduler and controllers on an embedded cluster and notes every call they make.

A call is noted as the API server would authorise it: verb, group, resource with subresource.
"""

from dataclasses import replace
from typing import Any

from pumice.api.conf import parse_conf
from pumice.api.kinds import BUILT_IN, kind_of
from pumice.clock import VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.cluster.embedded.volumes import VolumeController
from pumice.controllers import all_controllers
from pumice.controllers.threaded_loop import ThreadedLoop
from pumice.controllers.view import LOOKED_UP
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.default_queues import make_queues
from pumice.serve.scheduler.live_scheduler import LiveScheduler

_BY_NAME = {kind.name: kind for kind in BUILT_IN}

CONF = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
  - plugins:
      - name: priority
      - name: gang
      - name: conformance
  - plugins:
      - name: drf
      - name: predicates
      - name: proportion
      - name: nodeorder
"""


class RecordingCluster:
    """A cluster that notes what it is asked for; ``followed`` kinds are answered from a cache."""

    def __init__(self, cluster: Any, followed: Any) -> None:
        self._cluster = cluster
        self._followed = frozenset(followed)
        self.calls: set[Any] = set()

    def __getattr__(self, name: Any) -> Any:
        return getattr(self._cluster, name)

    def note(self, verb: Any, kind: Any, subresource: str = "") -> None:
        known = _BY_NAME[kind]
        resource = f"{known.plural}/{subresource}" if subresource else known.plural
        self.calls.add((verb, known.group, resource))

    def get(self, kind: Any, namespace: Any, name: Any) -> Any:
        if kind not in self._followed:
            self.note("get", kind)
        return self._cluster.get(kind, namespace, name)

    def list(self, kind: Any, namespace: str = "", labels: Any = None) -> Any:
        self.note("list", kind)
        return self._cluster.list(kind, namespace, labels)

    def watch(self, kind: Any, namespace: str = "", since: str = "") -> Any:
        self.note("watch", kind)
        return self._cluster.watch(kind, namespace, since)

    def create(self, manifest: Any) -> Any:
        self.note("create", kind_of(manifest))
        return self._cluster.create(manifest)

    def update(self, manifest: Any) -> Any:
        self.note("update", kind_of(manifest))
        return self._cluster.update(manifest)

    def update_status(self, manifest: Any) -> Any:
        self.note("update", kind_of(manifest), "status")
        return self._cluster.update_status(manifest)

    def patch(
        self,
        kind: Any,
        namespace: Any,
        name: Any,
        patch: Any,
        *,
        patch_type: str = "merge",
        subresource: str = "",
    ) -> Any:
        self.note("patch", kind, subresource)
        return self._cluster.patch(
            kind, namespace, name, patch, patch_type=patch_type, subresource=subresource
        )

    def delete(self, kind: Any, namespace: Any, name: Any, **options: Any) -> Any:
        self.note("delete", kind)
        return self._cluster.delete(kind, namespace, name, **options)

    def bind(self, *arguments: Any, **options: Any) -> Any:
        self.note("create", "Pod", "binding")
        return self._cluster.bind(*arguments, **options)

    def evict(self, *arguments: Any, **options: Any) -> Any:
        """On a real cluster: a condition, then a deletion."""
        self.note("patch", "Pod", "status")
        self.note("delete", "Pod")
        return self._cluster.evict(*arguments, **options)

    def record(self, *arguments: Any, **options: Any) -> Any:
        self.note("create", "Event")
        return self._cluster.record(*arguments, **options)


class Stage:
    """An embedded cluster with scheduler, controllers and kubelet, each with calls of its own."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.cluster = EmbeddedCluster(self.clock)
        self.seen: list[Any] = []
        self.kubelet = Kubelet(self.cluster)
        self.volumes = VolumeController(self.cluster)
        controllers = all_controllers()
        watched = {kind for one in controllers for kind in one.watches} - {*LOOKED_UP}
        self.controllers = RecordingCluster(self.cluster, watched)
        self.loop = ThreadedLoop(self.controllers, controllers)
        self.scheduler = RecordingCluster(self.cluster, ())
        make_queues(self.scheduler)
        conf = replace(parse_conf(CONF), queue_gates=True)
        self.live = LiveScheduler(self.scheduler, Scheduler(conf))

    def run(self, cycles: Any = 3) -> None:
        """Run everything for a few cycles of a second."""
        for _ in range(cycles):
            self.settle()
            self.live.cycle()
            self.settle()
            self.clock.advance_to(self.clock.now() + 1.0)

    def settle(self) -> None:
        """Run controllers and kubelet until nothing changes."""
        before = -1
        while before != self.cluster.version:
            before = self.cluster.version
            self.kubelet.sync()
            self.volumes.sync()
            self.cluster.collect_garbage()
            self.loop.run_until_quiet()
