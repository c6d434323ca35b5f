"""Pods of a job: how a new one looks, and how one is removed."""

from collections.abc import Iterable

from pumice.api.annotations import (
    COOLDOWN_TIME,
    GROUP_NAME,
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    JOB_NAME,
    NUMA_POLICY,
    PREEMPTABLE,
    QUEUE_NAME,
    REVOCABLE_ZONE,
    TASK_SPEC,
)
from pumice.api.cloning import clone
from pumice.api.kinds import Manifest
from pumice.controllers.base import Delete, Effect, Key, Patch
from pumice.controllers.job.names import (
    DEFAULT_TASK,
    FORWARDING,
    JOB_NAMESPACE,
    JOB_VERSION,
    OUT_OF_SYNC,
    PARTITION_ID,
    RETRY_COUNT,
    TASK_INDEX,
    TEMPLATE_UID,
    pod_name,
    podgroup_name,
)
from pumice.controllers.job.plugins import JobPlugin
from pumice.controllers.job.state import JobState, out_of_sync
from pumice.controllers.job.volumes import mount
from pumice.controllers.ownership import controlled_by


def new_pod(
    state: JobState, task: Manifest, index: int, plugins: Iterable[JobPlugin], *, is_forwarded: bool
) -> Manifest:
    """Write a pod of a task, with everything the job and its plugins add to the template."""
    template = clone(task.get("template") or {})
    metadata = template.get("metadata") or {}
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(state.name, str(task.get("name") or ""), index),
            "namespace": state.namespace,
            "ownerReferences": [controlled_by(state.job)],
            "labels": {**(metadata.get("labels") or {}), **_labels(state, task, index)},
            "annotations": {
                **(metadata.get("annotations") or {}),
                **_annotations(state, task, index),
            },
        },
        "spec": template.get("spec") or {},
    }
    for name in ("schedulerName", "priorityClassName"):
        if not pod["spec"].get(name) and state.spec.get(name):
            pod["spec"][name] = state.spec[name]
    if is_forwarded:
        pod["metadata"]["labels"][FORWARDING] = "true"
        pod["metadata"]["annotations"][FORWARDING] = "true"
    mount(state, pod)
    for plugin in plugins:
        plugin.on_pod_create(pod, state.job)
    return pod


def removal(pod: Manifest) -> list[Effect]:
    """Remove a pod, first marking that it is no eviction."""
    metadata = pod["metadata"]
    key = Key("Pod", str(metadata["namespace"]), str(metadata["name"]))
    effects: list[Effect] = []
    if not out_of_sync(pod):
        effects.append(Patch(key, {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}}))
    return [*effects, plain_removal(pod)]


def plain_removal(pod: Manifest) -> Delete:
    """Remove a pod as any other client would, so that it counts as an eviction."""
    metadata = pod["metadata"]
    key = Key("Pod", str(metadata["namespace"]), str(metadata["name"]))
    return Delete(key, uid=str(metadata["uid"]))


def _labels(state: JobState, task: Manifest, index: int) -> dict[str, str]:
    """Write the labels by which Services and selectors find a pod."""
    labels = {
        TASK_INDEX: str(index),
        JOB_NAME: state.name,
        TASK_SPEC: str(task.get("name") or DEFAULT_TASK),
        JOB_NAMESPACE: state.namespace,
        QUEUE_NAME: state.queue,
        **_copied(state.job["metadata"].get("labels"), PREEMPTABLE, COOLDOWN_TIME),
    }
    policy = task.get("partitionPolicy")
    if policy is not None:
        size = int(policy.get("partitionSize") or 0)
        labels[PARTITION_ID] = str(index // size if size > 0 else 0)
    return labels


def _annotations(state: JobState, task: Manifest, index: int) -> dict[str, str]:
    """Write the annotations that the scheduler and this controller read."""
    name = str(task.get("name") or "")
    given = state.job["metadata"].get("annotations") or {}
    budget = JDB_MIN_AVAILABLE if JDB_MIN_AVAILABLE in given else JDB_MAX_UNAVAILABLE
    annotations = {
        TASK_INDEX: str(index),
        TASK_SPEC: name or DEFAULT_TASK,
        GROUP_NAME: podgroup_name(state.job),
        JOB_NAME: state.name,
        QUEUE_NAME: state.queue,
        JOB_VERSION: str(state.version),
        TEMPLATE_UID: f"{state.name}-{name}",
        RETRY_COUNT: str(state.retries),
        **_copied(given, PREEMPTABLE, COOLDOWN_TIME, REVOCABLE_ZONE, budget),
    }
    if task.get("topologyPolicy"):
        annotations[NUMA_POLICY] = str(task["topologyPolicy"])
    return annotations


def _copied(given: dict[str, str] | None, *keys: str) -> dict[str, str]:
    return {key: given[key] for key in keys if key in given} if given else {}
