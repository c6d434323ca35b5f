"""The pod groups and pods that a job stands for before a controller has made them.

Used where a user asks about a manifest that is not in any cluster yet.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pumice.api.annotations import GROUP_NAME, TASK_SPEC
from pumice.api.kinds import Manifest
from pumice.api.objects import from_manifest
from pumice.api.pods import Pod
from pumice.cache.requests import pod_request, resource_lists
from pumice.core.resources import Resources
from pumice.diagnosis.cluster_state import group_of, key_of, stamp
from pumice.errors import ManifestError

EXPECTED = "pumice.dev/expected"
"""Annotation of pods that a controller has still to make."""
_NOT_BEGUN = ("", "Pending")
"""Phases of a job whose pods may still have to be made."""
_GROUP = "scheduling.volcano.sh/v1beta1"
_OPEN_QUEUE: Manifest = {
    "apiVersion": _GROUP,
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"weight": 1},
    "status": {"state": "Open"},
}


def expand_jobs(jobs: Sequence[Manifest], objects: Iterable[Manifest]) -> list[Manifest]:
    """Make what the controllers would make for Volcano jobs that are not begun yet.

    A job without a pod group gets one and its pods; one whose pod group waits for its pods, which
    come once it is admitted, gets the pods, marked as expected.  The queue ``default`` is made if a
    job names it and there is none: every Volcano cluster has it.
    """
    known = list(objects)
    groups = [one for one in known if one["kind"] == "PodGroup"]
    begun = {group_of(one) for one in known if one["kind"] == "Pod"}
    made: list[Manifest] = []
    for job in jobs:
        if _phase(job) not in _NOT_BEGUN:
            continue
        group = next((one for one in groups if _is_of(one, job)), None)
        if group is None:
            made += _expand(job)
        elif key_of(group) not in begun:
            marks = {GROUP_NAME: group["metadata"]["name"], EXPECTED: "true"}
            made += _all_pods(job, marks)
    queues = {one["metadata"]["name"] for one in known if one["kind"] == "Queue"}
    wanted = {one["spec"].get("queue") for one in made if one["kind"] == "PodGroup"}
    if "default" in wanted - queues:
        made.insert(0, _OPEN_QUEUE)
    return made


def is_expected(pod: Manifest) -> bool:
    """Say whether a pod is not there yet and only expected of its controller."""
    return EXPECTED in (pod["metadata"].get("annotations") or {})


def _phase(job: Manifest) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def created(manifest: Manifest, now: float) -> Manifest:
    """Give an object that does not say when it was created this time."""
    meta = manifest["metadata"]
    if meta.get("creationTimestamp"):
        return manifest
    return {**manifest, "metadata": {**meta, "creationTimestamp": stamp(now)}}


def _is_of(group: Manifest, job: Manifest) -> bool:
    """Say whether a pod group was made for a job."""
    meta, mine = group["metadata"], job["metadata"]
    if meta.get("namespace", "default") != mine.get("namespace", "default"):
        return False
    owners = [one.get("name") for one in meta.get("ownerReferences") or ()]
    return mine["name"] in owners or meta["name"] == mine["name"]


def _expand(job: Manifest) -> list[Manifest]:
    meta, spec = job["metadata"], job.get("spec") or {}
    name, space = meta["name"], meta.get("namespace") or "default"
    tasks = spec.get("tasks") or []
    if not tasks:
        raise ManifestError(
            wanted="at least one task", field="spec.tasks", subject=f"Job {space}/{name}"
        )
    pods = _all_pods(job, {GROUP_NAME: name})
    least = spec.get("minAvailable")
    least = len(pods) if least is None else int(least)
    group: Manifest = {
        "apiVersion": _GROUP,
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": space,
            "labels": dict(meta.get("labels") or {}),
            "annotations": dict(meta.get("annotations") or {}),
            **_created(meta),
        },
        "spec": {
            "minMember": least,
            "queue": spec.get("queue") or "default",
            "minResources": _sum_of(pods[:least]),
            "minTaskMember": {
                str(task.get("name") or f"default{number}"): int(
                    task.get("minAvailable", task.get("replicas", 1))
                )
                for number, task in enumerate(tasks)
            },
        },
        "status": {"phase": "Pending"},
    }
    for key in ("priorityClassName", "networkTopology"):
        if spec.get(key):
            group["spec"][key] = spec[key]
    return [group, *pods]


def _all_pods(job: Manifest, marks: Mapping[str, str]) -> list[Manifest]:
    """Make the pods of all tasks, with some annotations."""
    return [
        pod
        for number, task in enumerate((job.get("spec") or {}).get("tasks") or [])
        for pod in _pods(job, task, str(task.get("name") or f"default{number}"), marks)
    ]


def _pods(
    job: Manifest, task: Mapping[str, Any], role: str, more: Mapping[str, str]
) -> list[Manifest]:
    meta, spec = job["metadata"], job["spec"]
    template = task.get("template") or {}
    given = template.get("metadata") or {}
    marks = {**(given.get("annotations") or {}), **more, TASK_SPEC: role}
    for mark in ("volcano.sh/preemptable", "pumice.dev/run-seconds"):
        if mark in (meta.get("annotations") or {}):
            marks.setdefault(mark, meta["annotations"][mark])
    pod_spec = {"schedulerName": spec.get("schedulerName") or "volcano", **template["spec"]}
    pod_spec["containers"] = [_requesting(one) for one in pod_spec.get("containers") or []]
    if spec.get("priorityClassName"):
        pod_spec.setdefault("priorityClassName", spec["priorityClassName"])
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{meta['name']}-{role}-{index}",
                "namespace": meta.get("namespace") or "default",
                "labels": dict(given.get("labels") or {}),
                "annotations": marks,
                **_created(meta),
            },
            "spec": pod_spec,
            "status": {"phase": "Pending"},
        }
        for index in range(int(task.get("replicas", 1)))
    ]


def _requesting(container: Mapping[str, Any]) -> Manifest:
    """Let limits stand for requests that are not stated, as the API server does."""
    amounts = container.get("resources") or {}
    requests = {**(amounts.get("limits") or {}), **(amounts.get("requests") or {})}
    return {**container, "resources": {**amounts, "requests": requests}}


def _created(meta: Mapping[str, Any]) -> Manifest:
    stamp = meta.get("creationTimestamp")
    return {"creationTimestamp": stamp} if stamp else {}


def _sum_of(pods: Sequence[Manifest]) -> dict[str, str]:
    """Add up requests as a pod group states them."""
    resources, total = Resources(), np.zeros(3)
    for pod in pods:
        thing = from_manifest(pod)
        if isinstance(thing, Pod):
            for amounts in resource_lists(thing.spec):
                resources.learn(amounts)
            total = np.pad(total, (0, len(resources) - len(total)))
            total = total + pod_request(thing.spec, resources)
    return {
        name: f"{round(amount)}" if name in ("memory", "pods") else f"{round(amount)}m"
        for name, amount in zip(resources.names, total.tolist(), strict=False)
        if amount and name != "pods"
    }


def adopt_pods(objects: Sequence[Manifest]) -> list[Manifest]:
    """Give pods without a pod group one each, as the pod group controller does."""
    out: list[Manifest] = []
    for one in objects:
        if one["kind"] == "Pod" and not group_of(one):
            out += _adopt(one)
        else:
            out.append(one)
    return out


def _adopt(pod: Manifest) -> list[Manifest]:
    meta = pod["metadata"]
    name = f"podgroup-{meta.get('uid') or meta['name']}"
    marks = {**(meta.get("annotations") or {}), GROUP_NAME: name}
    spec = {"schedulerName": "volcano", **pod["spec"]}
    group = {
        "apiVersion": _GROUP,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": meta["namespace"], **_created(meta)},
        "spec": {"minMember": 1, "queue": "default", "minResources": _sum_of([pod])},
        "status": {"phase": "Pending"},
    }
    return [group, {**pod, "metadata": {**meta, "annotations": marks}, "spec": spec}]
