"""A world on the deciding core: cycle after cycle on a virtual clock, with nothing at stake.

Used by every answer.  Between two cycles bound pods run, evicted pods are gone and come back as
pending ones, as their controller would make them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pumice.api.annotations import ALLOCATED_HYPER_NODE
from pumice.api.decisions import Decisions, PodGroupState
from pumice.api.kinds import Manifest
from pumice.api.objects import from_manifest
from pumice.api.times import rfc3339
from pumice.cache.ingest import Ingest
from pumice.core.snapshot import Snapshot
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.questions import question_scheduler
from pumice.scheduler import Observer

CYCLE_S = 1.0
"""Seconds from one cycle to the next."""
SETTLED_AFTER = 20
"""Cycles after which a cluster that still moves is taken as it is."""


class Replay:
    """One copy of a world that time passes for."""

    def __init__(self, world: ClusterState) -> None:
        self.now = world.now
        self._failures = world.failures
        self._usage = world.node_usage
        self._scheduler = question_scheduler(world)
        self._ingest = Ingest(Snapshot())
        self.objects: dict[tuple[str, str], Manifest] = {
            (one["kind"], key_of(one)): one for one in world.objects
        }
        self._snapshot = self._ingest.load(world.typed())

    def become(self, world: ClusterState) -> None:
        """Turn into another world; costs only what differs from the one it was."""
        new = {(one["kind"], key_of(one)): one for one in world.objects}
        for name, old in self.objects.items():
            if name not in new:
                self._ingest.delete(from_manifest(old))
        for name, one in new.items():
            if self.objects.get(name) is not one:
                self._ingest.upsert(world.typed_one(one))
        self.objects, self.now, self._usage = new, world.now, world.node_usage
        self._failures = world.failures
        self._scheduler = question_scheduler(world)
        self._snapshot = self._ingest.settle()

    def pods(self) -> Iterable[Manifest]:
        """Give all pods as they are now."""
        return [one for (kind, _), one in self.objects.items() if kind == "Pod"]

    def decide(self, observer: Observer | None = None) -> Decisions:
        """Decide one cycle and leave the world as it is."""
        usage = {name: {**one, "metricsTime": self.now} for name, one in self._usage.items()}
        decisions = self._scheduler.decide(self._snapshot, self.now, usage, observer=observer)
        self._failures.update(dict.fromkeys(decisions.failures))
        return decisions

    def apply(self, decisions: Decisions) -> None:
        """Let happen what was decided, and a cycle pass."""
        self.now += CYCLE_S
        for pod, node in decisions.binds.items():
            marks = decisions.annotations.get(pod)
            self.put(_bound(self.objects["Pod", pod], node, marks, self.now))
        for pod in decisions.evictions:
            self.put(_made_again(self.objects["Pod", pod]))
        for pod, node in decisions.nominated.items():
            old = self.objects["Pod", pod]
            self.put({**old, "status": {**(old.get("status") or {}), "nominatedNodeName": node}})
        for group, state in decisions.pod_groups.items():
            new = _told(self.objects["PodGroup", group], state)
            if new != self.objects["PodGroup", group]:
                self.put(new)
        self._snapshot = self._ingest.settle()

    def put(self, manifest: Manifest) -> None:
        """Add an object or replace it; seen by the next cycle after ``settle`` or ``apply``."""
        self.objects[manifest["kind"], key_of(manifest)] = manifest
        self._ingest.upsert(from_manifest(manifest))

    def finish(self, pods: Iterable[str]) -> None:
        """Let pods end well."""
        for pod in pods:
            old = self.objects["Pod", pod]
            self.put({**old, "status": {**(old.get("status") or {}), "phase": "Succeeded"}})
        self._snapshot = self._ingest.settle()

    def run(self, cycles: int) -> list[Decisions]:
        """Play a number of cycles."""
        played = []
        for _ in range(cycles):
            played.append(self.decide())
            self.apply(played[-1])
        return played

    def settle(self) -> list[Decisions]:
        """Play cycles until nothing more is bound, evicted or admitted."""
        played: list[Decisions] = []
        while len(played) < SETTLED_AFTER:
            decisions = self.decide()
            played.append(decisions)
            before = _phases(self.objects)
            self.apply(decisions)
            moved = decisions.binds or decisions.evictions
            if not moved and _phases(self.objects) == before:
                break
        return played


def _phases(objects: Mapping[tuple[str, str], Manifest]) -> list[str]:
    return [
        str((one.get("status") or {}).get("phase"))
        for (kind, _), one in objects.items()
        if kind == "PodGroup"
    ]


def _bound(pod: Manifest, node: str, marks: Mapping[str, str] | None, now: float) -> Manifest:
    status = {**(pod.get("status") or {}), "phase": "Running", "startTime": rfc3339(now)}
    status.pop("nominatedNodeName", None)
    meta = pod["metadata"]
    if marks:
        meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **marks}}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def _made_again(pod: Manifest) -> Manifest:
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    dropped = ("deletionTimestamp", "deletionGracePeriodSeconds")
    meta = {key: value for key, value in pod["metadata"].items() if key not in dropped}
    return {**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


def _told(group: Manifest, state: PodGroupState) -> Manifest:
    """Write the status of a pod group as the scheduler would."""
    status: dict[str, Any] = {
        **(group.get("status") or {}),
        "phase": state.phase,
        "conditions": [condition.to_manifest() for condition in state.conditions],
        "running": state.running,
        "succeeded": state.succeeded,
        "failed": state.failed,
    }
    meta = group["metadata"]
    if state.hyper_node:
        marks = {**(meta.get("annotations") or {}), ALLOCATED_HYPER_NODE: state.hyper_node}
        meta = {**meta, "annotations": marks}
    return {**group, "metadata": meta, "status": status}
