"""Metrics of jobs and queues, counted from the changes that the controllers' loop sees."""

from collections import Counter

from pumice.api.kinds import JOB, JOB_FLOW, POD_GROUP, QUEUE, Manifest, queue_of
from pumice.api.times import epoch
from pumice.controllers.base import controller_of, phase_of
from pumice.controllers.view import Change, ClusterView
from pumice.errors import InputError
from pumice.metrics import Metrics


class ControllerMetrics:
    """Listens to changes and counts; initial objects count as they are."""

    def __init__(self, metrics: Metrics, view: ClusterView) -> None:
        self._metrics = metrics
        self._view = view
        self._groups: dict[str, Counter[str]] = {}

    def notice(self, change: Change) -> None:
        """Process one change."""
        kind, old, new = change
        if kind == JOB:
            self._job(old, new)
        elif kind == POD_GROUP:
            self._group(old, new)
        elif kind == QUEUE and new is None and old is not None:
            self._groups.pop(old["metadata"]["name"], None)
            self._metrics.forget_queue(old["metadata"]["name"])
        elif kind == JOB_FLOW and old is not None and new is not None:
            phase = phase_of(new)
            if phase != phase_of(old) and phase in ("Succeed", "Failed"):
                namespace = new["metadata"]["namespace"]
                self._metrics.flow_ended(namespace, succeeded=phase == "Succeed")
        elif kind == "Pod" and old is None and new is not None:
            self._pod(new)

    def _job(self, old: Manifest | None, new: Manifest | None) -> None:
        job = new or old
        if job is None:
            return
        name = f"{job['metadata']['namespace']}/{job['metadata']['name']}"
        queue = queue_of(job)
        if new is None:
            self._metrics.forget_ended_job(name, queue)
        elif old is not None and phase_of(new) != phase_of(old):
            self._ended(name, queue, phase_of(new))

    def _ended(self, job: str, queue: str, phase: str) -> None:
        if phase in ("Completed", "Failed"):
            self._metrics.job_ended(job, queue, completed=phase == "Completed")

    def _group(self, old: Manifest | None, new: Manifest | None) -> None:
        for group, sign in ((old, -1), (new, 1)):
            if group is None:
                continue
            queue = queue_of(group)
            phase = str((group.get("status") or {}).get("phase") or "Pending").lower()
            counts = self._groups.setdefault(queue, Counter())
            counts[phase] += sign
            self._metrics.queue_pod_groups(queue, counts)

    def _pod(self, pod: Manifest) -> None:
        """Count how long after its job a pod was made, if that was just now."""
        owner = controller_of(pod)
        if owner is None or owner.get("kind") != "Job":
            return
        if not str(owner.get("apiVersion")).startswith("batch.volcano.sh/"):
            return
        job = self._view.get(JOB, pod["metadata"]["namespace"], owner["name"])
        if job is None:
            return
        try:
            made, began = (epoch(one["metadata"]["creationTimestamp"]) for one in (pod, job))
        except (InputError, KeyError):
            return
        if self._view.now - made < 60.0:  # not one that was there when this process started
            self._metrics.pod_created(made - began)
