"""Pods of schedulers that an embedded cluster does not have: an event says that nobody places them.

A client may be such a scheduler; the event comes only if it has done nothing for a while.
"""

from collections.abc import Iterable
from typing import Final

from pumice.api.kinds import POD, SCHEDULER_NAME, Manifest
from pumice.api.times import epoch, rfc3339
from pumice.controllers.base import Key, Patch, Plan, Record, View, key_of

REASON: Final = "NoScheduler"
_PATIENCE_S: Final = 5.0
_SOURCE: Final = "pumice"


class ForeignPodController:
    """Marks pods that wait for a scheduler which does not run here."""

    name = "foreign-pod"
    watches: tuple[str, ...] = (POD,)

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:  # noqa: ARG002
        """Look at pods of other schedulers that have no node and no condition yet."""
        return () if _is_up_to_date(manifest) else (key_of(manifest),)

    def reconcile(self, key: Key, view: View) -> Plan:
        """Write a condition and an event on a pod that has waited for long enough."""
        pod = view.get(key.kind, key.namespace, key.name)
        if pod is None or pod["metadata"].get("deletionTimestamp") or _is_up_to_date(pod):
            return Plan()
        created = pod["metadata"].get("creationTimestamp")
        left_s = (epoch(created) if created else view.now) + _PATIENCE_S - view.now
        if left_s > 0:
            return Plan(again_in_s=left_s)
        name = pod["spec"].get("schedulerName")
        text = (
            f"no scheduler named {name} runs in this cluster: set schedulerName: {SCHEDULER_NAME}, "
            "or start it with --default-scheduler"
        )
        waits = {
            "type": "PodScheduled",
            "status": "False",
            "reason": REASON,
            "message": text,
            "lastTransitionTime": rfc3339(view.now),
        }
        known = (pod.get("status") or {}).get("conditions") or []
        marked = Patch(key, {"status": {"conditions": [*known, waits]}}, "status")
        return Plan([marked, Record(pod, "Warning", "FailedScheduling", text, _SOURCE)])


def _is_up_to_date(pod: Manifest) -> bool:
    """Return whether a pod is placed, ours, or known to wait."""
    spec = pod.get("spec") or {}
    if spec.get("schedulerName") == SCHEDULER_NAME or spec.get("nodeName"):
        return True
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "PodScheduled" for one in conditions)
