"""Garbage collector: deletes finished jobs after their time to live."""

from collections.abc import Iterable

from pumice.api.kinds import JOB, Manifest
from pumice.api.times import epoch
from pumice.controllers.base import Delete, Key, Plan, View, key_of, phase_of
from pumice.controllers.job.status import FINISHED


class GarbageController:
    """Deletes finished jobs ``ttlSecondsAfterFinished`` after their last transition."""

    name = "garbage"
    watches: tuple[str, ...] = (JOB,)

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:  # noqa: ARG002
        """Look at each job that changed."""
        return (key_of(manifest),)

    def reconcile(self, key: Key, view: View) -> Plan:
        """Delete the job, or return when its time will be over."""
        job = view.get(key.kind, key.namespace, key.name)
        left_s = None if job is None else _left_s(job, view.now)
        if job is None or left_s is None:
            return Plan()
        if left_s > 0:
            return Plan(again_in_s=left_s)
        uid = str(job["metadata"]["uid"])
        return Plan([Delete(key, propagation="Foreground", uid=uid)])


def _left_s(job: Manifest, now: float) -> float | None:
    """Return how long a job still has, None when nothing limits it yet."""
    ttl_s = job["spec"].get("ttlSecondsAfterFinished")
    if ttl_s is None or job["metadata"].get("deletionTimestamp") or phase_of(job) not in FINISHED:
        return None
    finished = job["status"]["state"].get("lastTransitionTime")
    return epoch(finished) + float(ttl_s) - now if finished else None
