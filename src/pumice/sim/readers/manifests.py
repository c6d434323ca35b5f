"""Kubernetes manifests with arrival times: pods, pod groups and Volcano jobs; the rest is cluster.

``pumice.dev/arrival-seconds`` says when a job comes, ``pumice.dev/run-seconds`` how long its pods
run: on a pod, a template, a pod group or a job, the nearest one counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from pumice.api.annotations import GROUP_NAME, TASK_SPEC
from pumice.api.manifests import Document, load_documents
from pumice.api.objects import (
    KubeObject,
    Pod,
    PodGroup,
    PodGroupSpec,
    from_manifest,
    in_namespace,
)
from pumice.controllers.job.min_resources import min_resources
from pumice.errors import ManifestError
from pumice.sim.workload import SCHEDULER_NAME, JobSpec, TaskSpec, Workload, in_order

ARRIVAL: Final = "pumice.dev/arrival-seconds"
RUN: Final = "pumice.dev/run-seconds"
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
DEFAULT_SECONDS = 60.0


@dataclass
class _Found:
    """What stands in the files."""

    pods: list[tuple[Pod, str]] = field(default_factory=list)
    groups: dict[str, tuple[PodGroup, str]] = field(default_factory=dict)
    jobs: list[JobSpec] = field(default_factory=list)
    others: list[KubeObject] = field(default_factory=list)
    untimed: int = 0


def read(path: Path) -> Workload:
    """Read the manifests of a file.

    Raises:
        ManifestError: An object that cannot be used, or a time that is none.
    """
    found = _Found()
    for document in load_documents(path):
        _sort_in(document, found)
    jobs = [*found.jobs, *_gangs(found)]
    notes = []
    if found.untimed:
        notes.append(f"{found.untimed} pods state no run time: {DEFAULT_SECONDS:g} seconds each")
    return Workload(
        name=path.name,
        format="manifests",
        jobs=in_order(jobs),
        objects=tuple(found.others),
        notes=tuple(notes),
    )


def _sort_in(document: Document, found: _Found) -> None:
    content, source = document.content, document.source
    if isinstance(content, Mapping) and content.get("kind") == "Job":
        found.jobs.append(_volcano_job(content, source, found))
        return
    thing = from_manifest(in_namespace(content), source=source)
    match thing:
        case Pod():
            found.pods.append((thing, source))
        case PodGroup():
            found.groups[_key(thing)] = (thing, source)
        case _:
            found.others.append(thing)


def _key(thing: KubeObject) -> str:
    return f"{thing.metadata.namespace}/{thing.metadata.name}"


def _gangs(found: _Found) -> Iterator[JobSpec]:
    """Join pods with their groups; a pod without one is a job of its own."""
    members: dict[str, list[tuple[Pod, str]]] = {}
    for pod, source in found.pods:
        group = pod.metadata.annotations.get(GROUP_NAME, "")
        key = f"{pod.metadata.namespace}/{group}"
        if key not in found.groups:
            key = _key(pod)
        members.setdefault(key, []).append((pod, source))
    for key, pods in members.items():
        stated, source = found.groups.get(key, (None, ""))
        yield _gang(key, pods, stated, source, found)


def _gang(
    key: str, pods: list[tuple[Pod, str]], group: PodGroup | None, source: str, found: _Found
) -> JobSpec:
    namespace, _, name = key.partition("/")
    marks: Mapping[str, str] = {} if group is None else group.metadata.annotations
    spec = _alone(pods[0][0]) if group is None else group.spec
    spec = msgspec.structs.replace(spec, queue=spec.queue or "default")
    arrivals = [_seconds(pod.metadata.annotations, ARRIVAL, at) for pod, at in pods]
    arrival = _seconds(marks, ARRIVAL, source)
    if arrival is None:
        arrival = max((each for each in arrivals if each is not None), default=0.0)
    return JobSpec(
        name=name,
        namespace=namespace,
        arrival=arrival,
        tasks=tuple(_task(pod, at, marks, source, found) for pod, at in pods),
        min_member=spec.min_member or 0,
        queue=spec.queue,
        priority_class=spec.priority_class_name,
        annotations={k: v for k, v in marks.items() if k not in (ARRIVAL, RUN)},
        group=None if group is None else spec,
    )


def _alone(pod: Pod) -> PodGroupSpec:
    """Say what the group of a pod without one is like."""
    return PodGroupSpec(
        min_member=1,
        queue=pod.metadata.annotations.get(QUEUE_NAME, ""),
        priority_class_name=pod.spec.priority_class_name,
    )


def _task(pod: Pod, at: str, group: Mapping[str, str], source: str, found: _Found) -> TaskSpec:
    meta = pod.metadata
    run = _seconds(meta.annotations, RUN, at)
    run = _seconds(group, RUN, source) if run is None else run
    if run is None:
        found.untimed += 1
    spec = msgspec.structs.replace(
        pod.spec, node_name="", scheduler_name=pod.spec.scheduler_name or SCHEDULER_NAME
    )
    return TaskSpec(
        spec=spec,
        count=1,
        run_seconds=DEFAULT_SECONDS if run is None else run,
        role=meta.annotations.get(TASK_SPEC) or meta.labels.get(TASK_SPEC) or "task",
        pod_name=meta.name,
        labels=meta.labels,
        annotations={
            k: v for k, v in meta.annotations.items() if k not in (ARRIVAL, RUN, GROUP_NAME)
        },
    )


def _volcano_job(content: Mapping[str, Any], source: str, found: _Found) -> JobSpec:
    """Make pods of the templates of a Volcano job."""
    meta, spec = _part(content, "metadata", source), _part(content, "spec", source)
    name, namespace = str(meta.get("name") or ""), str(meta.get("namespace") or "default")
    marks = {str(k): str(v) for k, v in _part(meta, "annotations", source).items()}
    tasks: list[TaskSpec] = []
    for number, each in enumerate(spec.get("tasks") or []):
        template = _part(each, "template", source)
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": namespace, **_part(template, "metadata", source)}
            | {"name": name or "pod"},
            "spec": _part(template, "spec", source),
        }
        pod = from_manifest(body, source=source)
        assert isinstance(pod, Pod)  # noqa: S101
        task = _task(pod, source, marks, source, found)
        role = str(each.get("name") or f"default{number}")
        replicas = _count(each, "replicas", source, 1)
        if replicas:
            tasks.append(replace(task, role=role, pod_name="", count=replicas))
    if not name or not tasks:
        raise ManifestError(wanted="a job with a name and pods", found=name, file=source)
    group = _group_of(content, spec, sum(task.count for task in tasks), source)
    return JobSpec(
        name=name,
        namespace=namespace,
        arrival=_seconds(marks, ARRIVAL, source) or 0.0,
        tasks=tuple(tasks),
        min_member=group.min_member or 0,
        queue=group.queue,
        priority_class=group.priority_class_name,
        annotations={k: v for k, v in marks.items() if k not in (ARRIVAL, RUN)},
        group=group,
        late_pods=True,
    )


class _NoObjects:
    """A cluster in which the job controller finds nothing."""

    def get(self, *_: str) -> None:
        """Find no object."""


def _group_of(
    content: Mapping[str, Any], spec: Mapping[str, Any], size: int, source: str
) -> PodGroupSpec:
    """Write the pod group that the job controller makes of a job."""
    min_available = _count(spec, "minAvailable", source, size) or size
    job = {**content, "spec": {**spec, "minAvailable": min_available}}
    group = {
        "minMember": min_available,
        "queue": str(spec.get("queue") or "default"),
        "priorityClassName": str(spec.get("priorityClassName") or ""),
        "minResources": min_resources(job, _NoObjects()),  # type: ignore[arg-type]
        "networkTopology": spec.get("networkTopology"),
        "minTaskMember": {
            str(task.get("name") or f"default{i}"): int(
                task.get("minAvailable", task.get("replicas", 1))
            )
            for i, task in enumerate(spec["tasks"])
        },
    }
    try:
        return msgspec.convert(group, PodGroupSpec)
    except msgspec.ValidationError as error:
        raise ManifestError(wanted="a Volcano job", found=str(error), file=source) from None


def _part(content: Any, name: str, source: str) -> Mapping[str, Any]:
    """Give a part of an object that is an object itself; nothing counts as empty."""
    found = content.get(name) if isinstance(content, Mapping) else content
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise ManifestError(wanted="an object", found=found, field=name, file=source)
    return found


def _count(content: Mapping[str, Any], name: str, source: str, missing: int) -> int:
    found = content.get(name)
    if found is None:
        return missing
    if not isinstance(found, int) or found < 0:
        raise ManifestError(wanted="a number from 0 up", found=found, field=name, file=source)
    return found


def _seconds(marks: Mapping[str, str], name: str, source: str) -> float | None:
    """Read a time on an object; None if it has none."""
    text = marks.get(name)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ManifestError(wanted="seconds from 0 up", found=text, field=name, file=source)
    return seconds
