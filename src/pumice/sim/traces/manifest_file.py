"""Workloads written as manifests that `pumice sim` and a cluster take."""

import json
import re
from typing import Any

import yaml

from pumice.api.annotations import ACTUAL_SECONDS, RUN_SECONDS, USER
from pumice.api.kinds import DEFAULT_QUEUE, Manifest
from pumice.api.objects import Node, ObjectMeta, Pod, Queue, to_manifest
from pumice.sim.inputs import make_nodes
from pumice.sim.readers.manifests import ARRIVAL
from pumice.sim.sim_cluster import open_queue
from pumice.sim.workload import JobSpec, Workload, seconds_text

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # the C one is much faster


def as_manifests(workload: Workload, *, as_json: bool = False) -> str:
    """Write nodes, queues and jobs, the latter as Volcano jobs."""
    objects = [*workload.objects]
    if workload.node_hint is not None and not any(isinstance(one, Node) for one in objects):
        objects += make_nodes(workload)
    known = {one.metadata.name for one in objects if isinstance(one, Queue)} | {DEFAULT_QUEUE}
    names, queues = _Names(), _Names()
    missing = dict.fromkeys(queues.of(job.queue) for job in workload.jobs)
    objects += [open_queue(name) for name in missing if name not in known]
    manifests = [
        *map(to_manifest, objects),
        *(_job_manifest(job, names.of(job.key), queues.of(job.queue)) for job in workload.jobs),
    ]
    if as_json:
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}) + "\n"
    return "---\n".join(
        yaml.dump(one, Dumper=_DUMPER, sort_keys=False, allow_unicode=True) for one in manifests
    )


class _Names:
    """Names as Kubernetes takes them, each for one thing only."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, name: str) -> str:
        """Return the name for something, the same each time."""
        if name not in self._known:
            plain = re.sub(r"[^a-z0-9]+", "-", name.rpartition("/")[2].lower())[:50].strip("-")
            found, n = plain or "job", 2
            while found in self._taken:
                found, n = f"{plain}-{n}", n + 1
            self._taken.add(found)
            self._known[name] = found
        return self._known[name]


def _job_manifest(job: JobSpec, name: str, queue: str) -> Manifest:
    """Write a job as a Volcano job with the times of the trace as annotations."""
    walltime = job.walltime
    marks = {**job.annotations, ARRIVAL: seconds_text(job.arrival)}
    if job.user:
        marks[USER] = job.user
    time = RUN_SECONDS if walltime is None else ACTUAL_SECONDS
    left, tasks = job.min_member, []
    for number, task in enumerate(job.tasks):
        pod = to_manifest(Pod(metadata=ObjectMeta(name="pod"), spec=task.spec))["spec"]
        for container in pod["containers"]:
            container.setdefault("image", "busybox")
        own = {**task.annotations, time: seconds_text(task.run_seconds)}
        template = {"metadata": {"annotations": own, "labels": dict(task.labels)}, "spec": pod}
        tasks.append(
            {
                "name": f"task-{number}",
                "replicas": task.count,
                "minAvailable": min(left, task.count),
                "template": template,
            }
        )
        left -= min(left, task.count)
    spec = {"queue": queue, "minAvailable": job.min_member, "tasks": tasks}
    if job.priority_class:
        spec["priorityClassName"] = job.priority_class
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": job.namespace, "annotations": marks},
        "spec": {"schedulerName": "volcano", **spec},
    }
