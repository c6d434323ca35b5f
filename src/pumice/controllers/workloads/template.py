"""What workloads share: a pod of a template, which pods count, a status that differs."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from pumice.api.cloning import clone
from pumice.api.kinds import ENDED_PHASES, Manifest
from pumice.api.times import epoch
from pumice.controllers.base import Delete, Effect, Patch
from pumice.controllers.ownership import controlled_by, key_of

DEPLOYMENT: Final = "Deployment.apps"
REPLICA_SET: Final = "ReplicaSet.apps"
STATEFUL_SET: Final = "StatefulSet.apps"
BATCH_JOB: Final = "Job.batch"
AT_ONCE: Final = 500
"""Pods that are made at once, as Kubernetes' controllers do it."""
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def pod_of(owner: Manifest, template: Mapping[str, Any], **metadata: Any) -> Manifest:
    """Write a pod of a template that an object controls; ``metadata`` joins the template's."""
    given = clone(template)
    own = given.get("metadata") or {}
    joined = {
        "labels": {**(own.get("labels") or {}), **metadata.pop("labels", {})},
        "annotations": {**(own.get("annotations") or {}), **metadata.pop("annotations", {})},
        "finalizers": own.get("finalizers"),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            **{field: value for field, value in joined.items() if value},
            "namespace": owner["metadata"]["namespace"],
            "ownerReferences": [controlled_by(owner)],
        },
        "spec": given.get("spec") or {},
    }


def phase(pod: Manifest) -> str:
    """Return the phase of a pod."""
    return str((pod.get("status") or {}).get("phase") or "")


def is_leaving(pod: Manifest) -> bool:
    """Return whether a pod is being deleted."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_active(pod: Manifest) -> bool:
    """Return whether a pod counts among the replicas of its owner."""
    return phase(pod) not in ENDED_PHASES and not is_leaving(pod)


def ready_since(pod: Manifest) -> float | None:
    """Return since when a pod is ready, None if it is not."""
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one.get("type") == "Ready" and one.get("status") == "True":
            return epoch(one["lastTransitionTime"]) if one.get("lastTransitionTime") else 0.0
    return None


def is_ready(pod: Manifest) -> bool:
    """Return whether a pod is ready."""
    return ready_since(pod) is not None


def availability(
    pods: Iterable[Manifest], min_ready_s: float, now: float
) -> tuple[int, float | None]:
    """Count the pods that have been ready for long enough; and when the next one will have been."""
    count, next_in_s = 0, None
    for since in map(ready_since, pods):
        if since is None:
            continue
        left_s = since + min_ready_s - now
        if left_s <= 0:
            count += 1
        else:
            next_in_s = left_s if next_in_s is None else min(next_in_s, left_s)
    return count, next_in_s


def replicas_of(owner: Manifest) -> int:
    """Return how many pods an object asks for."""
    number = (owner.get("spec") or {}).get("replicas")
    return 1 if number is None else max(int(number), 0)


def share(bound: Any, total: int, *, up: bool) -> int:
    """Read a number, or a percentage of a total, rounded up or down."""
    text = str(bound)
    if text.endswith("%"):
        part = total * int(text[:-1])
        return -(-part // 100) if up else part // 100
    return max(int(text), 0)


def digest(value: Any) -> str:
    """Return ten letters that stand for a value, for names and labels."""
    text = msgspec.json.encode(value, order="deterministic")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8])
    letters = ""
    for _ in range(10):
        number, letter = divmod(number, len(_LETTERS))
        letters += _LETTERS[letter]
    return letters


def removal(manifest: Manifest) -> Delete:
    """Delete an object, and no other of its name."""
    return Delete(key_of(manifest), uid=str(manifest["metadata"]["uid"]))


def new_status(owner: Manifest, status: Mapping[str, Any]) -> list[Effect]:
    """Write the fields of a status that differ; None removes one."""
    old = owner.get("status") or {}
    changes = {field: value for field, value in status.items() if old.get(field) != value}
    return [Patch(key_of(owner), {"status": changes}, "status")] if changes else []


def condition(
    owner: Manifest, kind: str, *, holds: bool, reason: str, message: str, now: str
) -> Manifest:
    """Write a condition; its times move only with what it says."""
    for old in (owner.get("status") or {}).get("conditions") or ():
        if old.get("type") == kind and old.get("status") == str(holds):
            if (old.get("reason"), old.get("message")) == (reason, message):
                return dict(old)
            moved = old.get("lastTransitionTime") or now
            break
    else:
        moved = now
    return {
        "type": kind,
        "status": str(holds),
        "reason": reason,
        "message": message,
        "lastTransitionTime": moved,
    }
