"""A world on the deciding core: the decisions of the next cycle, without effect.

Pods that are still to be made and that a resource quota would refuse are not there.  Used by every
answer about one cycle; ``timeline`` adds time.
"""

from collections.abc import Container

from pumice.api.decisions import Decisions
from pumice.api.kinds import Manifest
from pumice.api.objects import from_manifest
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.questions import question_memory, question_scheduler
from pumice.scheduler import Observer


class Replay:
    """One copy of a world; turning it into another one costs only what differs."""

    def __init__(self, world: ClusterState) -> None:
        self.world = world
        self._scheduler, self._process = question_scheduler(world), question_memory(world)
        self._ingest = Ingest(Snapshot())
        objects = world.admitted_objects
        self.objects: dict[tuple[str, str], Manifest] = {
            (one["kind"], key_of(one)): one for one in objects
        }
        self._snapshot = self._ingest.load(world.typed(objects))

    def become(self, world: ClusterState) -> None:
        """Turn into another world."""
        new = {(one["kind"], key_of(one)): one for one in world.admitted_objects}
        for name, old in self.objects.items():
            if name not in new:
                self._ingest.delete(from_manifest(old))
        for name, one in new.items():
            if self.objects.get(name) is not one:
                self._ingest.upsert(world.typed_one(one))
        self.objects, self.world = new, world
        self._scheduler, self._process = question_scheduler(world), question_memory(world)
        self._snapshot = self._ingest.settle()

    def decide(self, observer: Observer | None = None, *, idle: Container[str] = ()) -> Decisions:
        """Decide one cycle, without ``idle`` actions, and leave the world as it is."""
        world = self.world
        usage = usage_at(world, world.now)
        decisions = self._scheduler.decide(
            self._snapshot,
            world.now,
            usage,
            observer=observer,
            process=self._process,
            idle=idle,
        )
        world.failures.update(dict.fromkeys(decisions.failures))
        return decisions


def usage_at(world: ClusterState, now: float) -> dict[str, dict[str, float]]:
    """Return the measured use of nodes, as if measured now."""
    return {name: {**one, "metricsTime": now} for name, one in world.node_usage.items()}
