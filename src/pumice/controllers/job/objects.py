"""What a job is made of: its PodGroup, its claims and its pods, also before they exist."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

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
from pumice.api.kinds import CLAIM, JOB, PRIORITY_CLASS, QUEUE, Manifest
from pumice.api.pod_resources import pods_usage
from pumice.controllers.base import (
    SOURCE,
    Create,
    Delete,
    Effect,
    Key,
    Patch,
    Record,
    Update,
    View,
    controlled_by,
)
from pumice.controllers.job.plugins import JOB_PLUGINS, JobPlugin, plugins_of
from pumice.controllers.job.state import (
    DEFAULT_TASK,
    FORWARDING,
    JOB_NAMESPACE,
    JOB_VERSION,
    OUT_OF_SYNC,
    PARTITION_ID,
    RETRY_COUNT,
    TASK_INDEX,
    TEMPLATE_UID,
    JobState,
    container_statuses,
    out_of_sync,
    pod_index,
    pod_name,
    pod_phase,
    podgroup_name,
    replicas_of,
    stable_suffix,
)
from pumice.errors import ManifestError


class Claims(msgspec.Struct):
    """The state of the claims of a job."""

    effects: list[Effect] = msgspec.field(default_factory=list)
    resources: dict[str, str] = msgspec.field(default_factory=dict)
    missing: str = ""
    """A missing claim that the job names."""

    named: bool = False
    """Names were written into the job: reconcile again when that is done."""


def claims(state: JobState) -> Claims:
    """Make the claims that the job describes and find those that it names."""
    found = Claims()
    volumes = named_volumes(state)
    for given, volume in zip(state.spec.get("volumes") or [], volumes, strict=True):
        name = str(volume["volumeClaimName"])
        is_named = given is volume
        if is_named and _is_missing(state, name):
            found.missing = name
            return found
        if not is_named:
            found.named = True
            found.effects += [Create(claim) for claim in new_claims(state, [volume])]
        found.resources[f"volume-pvc-{name}"] = name
    if found.named:
        key = Key(JOB, state.namespace, state.name)
        found.effects.append(Patch(key, {"spec": {"volumes": volumes}}))
    return found


def named_volumes(state: JobState) -> list[Manifest]:
    """Return the volumes of a job; those without the name of a claim get the one to be made."""
    return [
        volume
        if volume.get("volumeClaimName")
        else {**volume, "volumeClaimName": _claim_name(state, index)}
        for index, volume in enumerate(state.spec.get("volumes") or [])
    ]


def new_claims(state: JobState, volumes: Iterable[Manifest]) -> list[Manifest]:
    """Write the claims that volumes of a job describe, if they are missing."""
    named = ((str(one["volumeClaimName"]), one.get("volumeClaim")) for one in volumes)
    return [
        _claim(state, name, spec)
        for name, spec in named
        if spec is not None and _is_missing(state, name)
    ]


def provisioned(claim: Manifest) -> list[Manifest]:
    """Return a claim and its volume as a provisioner would make them."""
    spec, name = claim["spec"], claim["metadata"]["name"]
    wanted = (spec.get("resources") or {}).get("requests") or {}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"capacity": wanted, "accessModes": spec.get("accessModes") or []},
        "status": {"phase": "Bound"},
    }
    return [{**claim, "spec": {**spec, "volumeName": name}, "status": {"phase": "Bound"}}, volume]


def _is_missing(state: JobState, claim: str) -> bool:
    return state.view.get(CLAIM, state.namespace, claim) is None


def _claim_name(state: JobState, index: int) -> str:
    return f"{state.name}-pvc-{stable_suffix(state.uid, 'claim', index)}"


def mount(state: JobState, pod: Manifest) -> None:
    """Mount the volumes of the job into the containers of a new pod."""
    spec = pod["spec"]
    seen: set[str] = set()
    for index, volume in enumerate(named_volumes(state)):
        claim = str(volume["volumeClaimName"])
        if claim in seen:
            continue
        seen.add(claim)
        marks = (state.uid, pod["metadata"]["name"], state.version, state.retries, index)
        name = f"{state.name}-{stable_suffix(*marks)}"
        source = {"claimName": claim}
        spec.setdefault("volumes", []).append({"name": name, "persistentVolumeClaim": source})
        for container in spec.get("containers") or []:
            place = {"mountPath": volume.get("mountPath"), "name": name}
            container.setdefault("volumeMounts", []).append(place)


def _claim(state: JobState, name: str, spec: Manifest) -> Manifest:
    """Write a claim that lives as long as the job."""
    return {
        "apiVersion": "v1",
        "kind": CLAIM,
        "metadata": {
            "name": name,
            "namespace": state.namespace,
            "ownerReferences": [controlled_by(state.job)],
        },
        "spec": clone(spec),
    }


def min_resources(job: Manifest, view: View) -> dict[str, str]:
    """Sum up the requests of the first ``minAvailable`` pods of a job, important tasks first."""
    tasks = _by_priority(job["spec"].get("tasks") or [], view)
    minimum = int(job["spec"].get("minAvailable") or 0)
    replicas = [replicas_of(task) for task in tasks]
    if minimum >= sum(int(task.get("minAvailable", replicas_of(task))) for task in tasks):
        needed = _first(minimum, [int(task.get("minAvailable") or 0) for task in tasks])
        more = [most - number for most, number in zip(replicas, needed, strict=True)]
        further = _first(minimum - sum(needed), more)
        counted = [a + b for a, b in zip(needed, further, strict=True)]
    else:
        counted = _first(minimum, replicas)
    return pods_usage(zip(map(_pod_spec, tasks), counted, strict=True))


def _pod_spec(task: Manifest) -> Manifest:
    return (task.get("template") or {}).get("spec") or {}


def _first(left: int, numbers: Iterable[int]) -> list[int]:
    """Take from numbers, one after the other, until the given total is reached."""
    taken: list[int] = []
    for number in numbers:
        taken.append(min(left, max(0, number)))
        left -= taken[-1]
    return taken


def _by_priority(tasks: Iterable[Manifest], view: View) -> list[Manifest]:
    """Order tasks by the value of their priority class, highest first."""

    def key(task: Manifest) -> int:
        name = _pod_spec(task).get("priorityClassName")
        found = view.get(PRIORITY_CLASS, "", str(name)) if name else None
        return -int((found or {}).get("value") or 0)

    return sorted(tasks, key=key)


def min_task_member(task: Manifest) -> int:
    """Return how many pods of a task its gang needs."""
    if task.get("minAvailable") is not None:
        return int(task["minAvailable"])
    policy = task.get("partitionPolicy") or {}
    partitions = int(policy.get("minPartitions") or 0) * int(policy.get("partitionSize") or 0)
    return partitions or replicas_of(task)


def podgroup_effects(state: JobState) -> list[Effect]:
    """Make the PodGroup, or update it to match the job."""
    group = new_podgroup(state)
    if state.podgroup is None:
        return [Create(group)]
    wanted = group["spec"]
    spec = {**(state.podgroup.get("spec") or {}), "minResources": wanted["minResources"]}
    for name in ("minMember", "priorityClassName"):
        _put(spec, name, wanted.get(name))
    spec["minTaskMember"] = {**(spec.get("minTaskMember") or {}), **wanted["minTaskMember"]}
    if wanted.get("subGroupPolicy") or spec.get("subGroupPolicy"):
        _put(spec, "subGroupPolicy", wanted.get("subGroupPolicy"))
    if spec == state.podgroup.get("spec"):
        return []
    return [Update({**state.podgroup, "spec": spec})]


def pending_event(state: JobState) -> list[Effect]:
    """Write on the job why its PodGroup is not scheduled, by the newest true condition."""
    status = (state.podgroup or {}).get("status") or {}
    true = [one for one in status.get("conditions") or [] if one.get("status") == "True"]
    newest = max(true, key=lambda one: str(one.get("lastTransitionTime") or ""), default=None)
    if not newest or newest.get("type") == "Scheduled":
        return []
    kind = str(newest.get("type") or "").lower()
    message = (
        f"PodGroup {state.namespace}:{state.name} {kind}, reason: {newest.get('message') or ''}"
    )
    return [Record(state.job, "Warning", "PodGroupPending", message, SOURCE)]


def _put(spec: Manifest, name: str, value: Any) -> None:
    """Set a field, or leave it out when it is empty."""
    if value in (None, "", 0, [], {}):
        spec.pop(name, None)
    else:
        spec[name] = value


def new_podgroup(state: JobState) -> Manifest:
    """Write the PodGroup of a job; labels and annotations are the job's own, all of them."""
    metadata: Manifest = {
        "name": podgroup_name(state.job),
        "namespace": state.namespace,
        "ownerReferences": [controlled_by(state.job)],
    }
    for name in ("labels", "annotations"):
        _put(metadata, name, dict(state.job["metadata"].get(name) or {}))
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": _spec(state),
    }


def _spec(state: JobState) -> Manifest:
    """Write the part that the scheduler needs about the gang."""
    spec: Manifest = {
        "minTaskMember": {
            str(task.get("name") or ""): min_task_member(task) for task in state.tasks
        },
        "queue": state.queue,
        "minResources": min_resources(state.job, state.view),
    }
    _put(spec, "minMember", state.min_available)
    _put(spec, "priorityClassName", state.spec.get("priorityClassName"))
    _put(spec, "networkTopology", _topology(state.spec.get("networkTopology")))
    parts = [_sub_group(task) for task in state.tasks if task.get("partitionPolicy") is not None]
    _put(spec, "subGroupPolicy", parts)
    return spec


def _topology(topology: Manifest | None) -> Manifest | None:
    """Copy a network topology; an allowed tier outranks a named one."""
    if topology is None:
        return None
    copied = {"mode": topology.get("mode") or "hard"}
    if topology.get("highestTierAllowed") is not None:
        copied["highestTierAllowed"] = topology["highestTierAllowed"]
    elif topology.get("highestTierName"):
        copied["highestTierName"] = topology["highestTierName"]
    return copied


def _sub_group(task: Manifest) -> Manifest:
    """Write the partitions of a task as sub groups of the gang."""
    policy = task["partitionPolicy"]
    part: Manifest = {
        "name": str(task.get("name") or ""),
        "subGroupSize": int(policy.get("partitionSize") or 0),
        "minSubGroups": int(policy.get("minPartitions") or 0),
        "labelSelector": {"matchLabels": {TASK_SPEC: str(task.get("name") or "")}},
        "matchLabelKeys": [PARTITION_ID],
    }
    _put(part, "networkTopology", _topology(policy.get("networkTopology")))
    return part


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


def may_start(state: JobState, task: Manifest) -> bool:
    """Return whether the tasks that a task depends on have come far enough."""
    depends = task.get("dependsOn")
    if not depends:
        return True
    names = [str(name) for name in depends.get("name") or []]
    if len(names) > 1 and depends.get("iteration") == "any":
        return any(_ready(state, name) for name in names)
    return all(_ready(state, name) for name in names)


def _ready(state: JobState, name: str) -> bool:
    """Return whether enough pods of a task run and are ready, or have succeeded."""
    task = state.task(name)
    if task is None or task.get("minAvailable") is None:
        return True
    ready = sum(_pod_ready(pod) for pod in wanted_pods(state, task).values())
    return ready >= int(task["minAvailable"])


def wanted_pods(state: JobState, task: Manifest) -> dict[str, Manifest]:
    """Return the pods of a task by name that its replicas ask for.

    Counts existing pods, not requested ones, whose number may be anything.
    """
    task_name, replicas = str(task.get("name") or ""), replicas_of(task)
    return {
        name: pod
        for name, pod in state.pods.get(task_name, {}).items()
        if (index := pod_index(state.name, task_name, name)) is not None and index < replicas
    }


def _pod_ready(pod: Manifest) -> bool:
    phase = pod_phase(pod)
    if phase == "Running":
        return all(status.get("ready") for status in container_statuses(pod))
    return phase == "Succeeded"


class Expansion(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that the job controller makes for one job, as the job and the cluster are now."""

    state: JobState
    plugins: Sequence[JobPlugin]
    is_forwarded: bool
    """Whether its queue belongs to several clusters, so that its pods are marked."""

    @property
    def tasks(self) -> list[Manifest]:
        """The tasks of the job."""
        return self.state.tasks

    def podgroup(self) -> Manifest:
        """Write the PodGroup."""
        return new_podgroup(self.state)

    def pod(self, task: Manifest, index: int) -> Manifest:
        """Write one pod of a task."""
        return new_pod(self.state, task, index, self.plugins, is_forwarded=self.is_forwarded)

    def new_pods(self, task: Manifest) -> Iterator[Manifest]:
        """Write the pods of a task that are missing, unless it waits for another task.

        A name that the pod of an earlier job holds is not free yet.
        """
        if not may_start(self.state, task):
            return
        for index in range(replicas_of(task)):
            name = pod_name(self.state.name, str(task.get("name") or ""), index)
            if self.state.view.get("Pod", self.state.namespace, name) is None:
                yield self.pod(task, index)

    def new_claims(self) -> list[Manifest]:
        """Write the claims that the job describes and that are missing."""
        return new_claims(self.state, named_volumes(self.state))


def expand(job: Manifest, view: View, *, source: str = "") -> Expansion:
    """Compute the objects of a job; ``job`` is as a cluster stores it, defaults filled in.

    Raises:
        ManifestError: the controller cannot use it; ``source`` is the file to name.
    """
    state = JobState.read(job, view)
    subject = f"Job {state.namespace}/{state.name}"
    if not state.tasks:
        wanted, field = "at least one task", "spec.tasks"
        raise ManifestError(wanted=wanted, found=[], field=field, subject=subject, file=source)
    plugins, unknown = plugins_of(job, _no_keys)
    if unknown:
        wanted, field = f"one of {', '.join(sorted(JOB_PLUGINS))}", "spec.plugins"
        raise ManifestError(wanted=wanted, found=unknown, field=field, subject=subject, file=source)
    if is_forwarded(state):
        state = JobState.read(_marked(job), view)
    return Expansion(state=state, plugins=plugins, is_forwarded=is_forwarded(state))


def is_forwarded(state: JobState) -> bool:
    """Return whether the queue of a job belongs to several clusters."""
    queue = state.view.get(QUEUE, "", state.queue) or {}
    return bool((queue.get("spec") or {}).get("extendClusters"))


def _marked(job: Manifest) -> Manifest:
    """Return a job with the mark that the controller writes on forwarded ones first of all."""
    metadata = job["metadata"]
    annotations = {**(metadata.get("annotations") or {}), FORWARDING: "true"}
    return {**job, "metadata": {**metadata, "annotations": annotations}}


def _no_keys() -> tuple[str, str]:
    """Return a placeholder for a key pair; keys change no pod."""
    return "", ""
