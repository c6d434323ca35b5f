"""Decisions out: binds, evictions, nominations, conditions and statuses written to a cluster.

Used by the scheduler's loop.  One write that fails is reported and leaves the others alone.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pumice.api.annotations import ALLOCATED_HYPER_NODE
from pumice.api.decisions import Condition, Decisions, PodGroupState
from pumice.cluster.base import Cluster, Manifest
from pumice.errors import ClusterError, NotFoundError

_GROUP: Final = "PodGroup.scheduling.volcano.sh"
_QUEUE: Final = "Queue.scheduling.volcano.sh"


@dataclass(slots=True)
class Applied:
    """What came of the decisions of one cycle; pods are named "namespace/name"."""

    bound: list[str] = field(default_factory=list)
    failed: dict[str, ClusterError] = field(default_factory=dict)
    """Pods whose bind failed."""
    evicted: list[str] = field(default_factory=list)
    errors: list[ClusterError] = field(default_factory=list)
    """All other writes that failed."""


class Binder:
    """Writes what a scheduler decided."""

    def __init__(
        self, cluster: Cluster, *, source: str = "volcano", write_conditions: bool = True
    ) -> None:
        """Make one; without ``write_conditions`` pods are not told why they wait."""
        self._cluster = cluster
        self._source = source
        self._write_conditions = write_conditions
        self._allocated: dict[str, Mapping[str, str]] = {}
        self._cycles = 0

    def apply(
        self, decisions: Decisions, waiting: Mapping[str, Iterable[str]] | None = None
    ) -> Applied:
        """Write all decisions; ``waiting`` names the pods that wait by their pod group."""
        self._cycles += 1
        applied = Applied()
        for pod in decisions.evictions:
            if self._attempt(applied, self._evict, pod):
                applied.evicted.append(pod)
        for pod, node in decisions.binds.items():
            self._bind(applied, pod, node, decisions.annotations.get(pod, {}))
        for pod, node in decisions.nominated.items():
            self._attempt(applied, self._nominate, pod, node)
        for group, state in decisions.pod_groups.items():
            self._attempt(applied, self._write_group, group, state)
        for queue, amounts in decisions.queues.items():
            if self._allocated.get(queue) != amounts:
                self._attempt(applied, self._write_queue, queue, amounts)
        if self._write_conditions and waiting:
            self._tell_waiting(applied, decisions.unschedulable, waiting)
        return applied

    def _tell_waiting(
        self, applied: Applied, why: Mapping[str, str], waiting: Mapping[str, Iterable[str]]
    ) -> None:
        """Tell pods why they wait."""
        for group, message in why.items():
            for pod in waiting.get(group, ()):
                self._attempt(applied, self._write_waiting, pod, message)

    def _attempt(self, applied: Applied, write: Callable[..., None], *arguments: Any) -> bool:
        try:
            write(*arguments)
        except NotFoundError:  # gone meanwhile: nothing is left to tell
            return False
        except ClusterError as error:
            applied.errors.append(error)
            return False
        return True

    def _bind(self, applied: Applied, pod: str, node: str, annotations: Mapping[str, str]) -> None:
        namespace, _, name = pod.partition("/")
        try:
            self._cluster.bind(namespace, name, node, annotations)
        except ClusterError as error:
            applied.failed[pod] = error
            message = f"cannot assign {pod} to {node}: {error}"
            self._tell("Pod", pod, "Warning", "FailedScheduling", message)
            return
        applied.bound.append(pod)
        self._tell("Pod", pod, "Normal", "Scheduled", f"Successfully assigned {pod} to {node}")

    def _tell(self, kind: str, key: str, event_type: str, reason: str, message: str) -> None:
        namespace, _, name = key.rpartition("/")
        metadata = {"name": name, "namespace": namespace}
        version = "v1" if kind == "Pod" else "scheduling.volcano.sh/v1beta1"
        about = {"apiVersion": version, "kind": kind, "metadata": metadata}
        self._cluster.record(about, event_type, reason, message, self._source)

    def _evict(self, pod: str) -> None:
        namespace, _, name = pod.partition("/")
        self._cluster.evict(namespace, name, "its room is wanted by others")
        self._tell("Pod", pod, "Normal", "Evict", "Evicted: its room is wanted by others")

    def _nominate(self, pod: str, node: str) -> None:
        namespace, _, name = pod.partition("/")
        status = {"status": {"nominatedNodeName": node}}
        self._cluster.patch("Pod", namespace, name, status, subresource="status")

    def _write_group(self, group: str, state: PodGroupState) -> None:
        namespace, _, name = group.partition("/")
        known = self._cluster.get(_GROUP, namespace, name)
        status = {
            "phase": state.phase,
            "conditions": self._conditions(known, state.conditions),
            "running": state.running,
            "succeeded": state.succeeded,
            "failed": state.failed,
        }
        patch: Manifest = {"status": status}
        if state.hyper_node:
            patch["metadata"] = {"annotations": {ALLOCATED_HYPER_NODE: state.hyper_node}}
        self._cluster.patch(_GROUP, namespace, name, patch)

    def _conditions(self, known: Manifest, conditions: Iterable[Condition]) -> list[Manifest]:
        """Write conditions; one that says the same as before keeps its time."""
        before = {
            Condition.from_manifest(said): said
            for said in (known.get("status") or {}).get("conditions") or ()
        }
        new = {"transitionID": str(self._cycles), "lastTransitionTime": self._time()}
        return [before.get(c) or {**c.to_manifest(), **new} for c in conditions]

    def _write_queue(self, queue: str, amounts: Mapping[str, str]) -> None:
        known = self._cluster.get(_QUEUE, "", queue)
        old = (known.get("status") or {}).get("allocated") or {}
        gone = dict.fromkeys(name for name in old if name not in amounts)
        patch = {"status": {"allocated": {**gone, **amounts}}}
        self._cluster.patch(_QUEUE, "", queue, patch, subresource="status")
        self._allocated[queue] = dict(amounts)

    def _write_waiting(self, pod: str, message: str) -> None:
        namespace, _, name = pod.partition("/")
        known = self._cluster.get("Pod", namespace, name)
        if known["spec"].get("nodeName"):
            return
        new = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        conditions = (known.get("status") or {}).get("conditions") or []
        others = [said for said in conditions if said["type"] != new["type"]]
        before: Manifest = next((c for c in conditions if c["type"] == new["type"]), {})
        if all(before.get(key) == value for key, value in new.items()):
            return
        same = before.get("status") == new["status"] and before.get("lastTransitionTime")
        new["lastTransitionTime"] = str(same or self._time())
        patch = {"status": {"conditions": [*others, new]}}
        self._cluster.patch("Pod", namespace, name, patch, subresource="status")
        self._tell("Pod", pod, "Warning", "FailedScheduling", message)

    def _time(self) -> str:
        return datetime.fromtimestamp(int(self._cluster.now()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
