"""Kubernetes manifests with arrival times: pods, pod groups and Volcano jobs; the rest is cluster.

``pumice.dev/arrival-seconds`` says when a job comes, ``pumice.dev/run-seconds`` how long its pods
run: on a pod, a template, a pod group or a job, the nearest one counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
from pumice.errors import ManifestError
from pumice.sim.workload import SCHEDULER_NAME, JobSpec, TaskSpec, Workload, in_order

ARRIVAL: Final = "pumice.dev/arrival-seconds"
RUN: Final = "pumice.dev/run-seconds"
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
    spec = PodGroupSpec(min_member=1, queue="default") if group is None else group.spec
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
    meta, spec = content.get("metadata") or {}, content.get("spec") or {}
    name, namespace = str(meta.get("name") or ""), str(meta.get("namespace") or "default")
    marks = {str(k): str(v) for k, v in (meta.get("annotations") or {}).items()}
    tasks = []
    for number, each in enumerate(spec.get("tasks") or []):
        template = each.get("template") or {}
        role = str(each.get("name") or f"default{number}")
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": namespace, **(template.get("metadata") or {}), "name": name},
            "spec": template.get("spec") or {},
        }
        pod = from_manifest(body, source=source)
        assert isinstance(pod, Pod)  # noqa: S101
        replicas = int(each.get("replicas", 1))
        tasks.append((_task(pod, source, marks, source, found), role, replicas))
    if not name or not tasks:
        raise ManifestError(wanted="a job with a name and tasks", found=name, file=source)
    size = sum(replicas for _, _, replicas in tasks)
    return JobSpec(
        name=name,
        namespace=namespace,
        arrival=_seconds(marks, ARRIVAL, source) or 0.0,
        tasks=tuple(
            TaskSpec(task.spec, n, task.run_seconds, role, "", task.labels, task.annotations)
            for task, role, n in tasks
            if n
        ),
        min_member=int(spec.get("minAvailable") or size),
        queue=str(spec.get("queue") or "default"),
        priority_class=str(spec.get("priorityClassName") or ""),
    )


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
