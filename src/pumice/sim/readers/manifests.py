"""Kubernetes manifests with arrival times: pods, pod groups and Volcano jobs; the rest is cluster.

``pumice.dev/arrival-seconds`` is when a job arrives, ``pumice.dev/run-seconds`` how long its pods
run: on a pod, a template, a pod group or a job, the nearest one counts.  Where
``pumice.dev/actual-seconds`` is how long they really run, the former is what the user expects.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Final

import msgspec

from pumice.api.annotations import ACTUAL_SECONDS, GROUP_NAME, RUN_SECONDS, TASK_SPEC, USER
from pumice.api.kinds import DEFAULT_QUEUE, KUBE_POD_GROUP, Manifest, kind_of
from pumice.api.manifests import Document, documents_in
from pumice.api.meta import ConfigMap
from pumice.api.objects import (
    KubeObject,
    Node,
    Pod,
    PodGroup,
    Queue,
    from_manifest,
    in_namespace,
    to_manifest,
)
from pumice.api.run_times import run_time
from pumice.api.wording import counted, verb
from pumice.cluster.embedded.defaults import fill_in
from pumice.controllers.expected import with_followed
from pumice.controllers.job.objects import Expansion, expand, provisioned
from pumice.controllers.job.state import TASK_INDEX, replicas_of
from pumice.controllers.podgroup import new_podgroup
from pumice.controllers.view import ManifestView
from pumice.errors import InputError, ManifestError, Words
from pumice.sim.options import check_nodes, within_limits
from pumice.sim.readers.table_files import read_text
from pumice.sim.workload import SCHEDULER_NAME, JobSpec, TaskSpec, Workload, expected, in_order
from pumice.webhooks.files import stored_job

ARRIVAL: Final = "pumice.dev/arrival-seconds"
_OF_THE_TRACE: Final = frozenset({ARRIVAL, RUN_SECONDS, ACTUAL_SECONDS, USER})
"""Annotations for the simulator, which no policy sees."""
DEFAULT_SECONDS = 60.0


@dataclass
class _Found:
    """The content of the files."""

    pods: list[tuple[Pod, str]] = field(default_factory=list)
    groups: dict[str, tuple[PodGroup, str]] = field(default_factory=dict)
    jobs: list[tuple[Manifest, str]] = field(default_factory=list)
    """Volcano jobs as a cluster stores them."""
    manifests: list[Manifest] = field(default_factory=list)
    """Objects that the job controller needs besides a job."""
    others: list[KubeObject] = field(default_factory=list)
    untimed: int = 0
    """Pods without a stated run time."""
    empty: int = 0
    """Tasks of jobs without a stated number of pods."""
    foreign: int = 0
    """Pods of other schedulers."""

    @cached_property
    def queue_marks(self) -> dict[str, Mapping[str, str]]:
        """The annotations of queues, by name: they are defaults for jobs."""
        queues = [each.metadata for each in self.others if isinstance(each, Queue)]
        return {each.name: each.annotations for each in queues}


def read(path: Path) -> Workload:
    """Read the manifests of a file.

    Raises:
        ManifestError: An object that cannot be used, or an invalid time.
    """
    found = _Found()
    for document in _followed(documents_in(read_text(path), str(path))):
        _sort_in(document, found)
    view = ManifestView(found.manifests)
    jobs = [_volcano_job(expand(job, view, source=at), at, found) for job, at in found.jobs]
    jobs += _gangs(found)
    jobs = [own for job in jobs if (own := _own_part(job, found)) is not None]
    check_nodes(sum(isinstance(thing, Node) for thing in found.others), str(path))
    notes = []
    if found.untimed:
        sentence = (
            f"{counted(found.untimed, 'pod')} {verb(found.untimed, 'states', 'state')} no run time"
        )
        learned = any(isinstance(each, ConfigMap) for each in found.others)
        unless = ", or what was learned" if learned else ""
        notes.append(f"{sentence}: {DEFAULT_SECONDS:g} seconds each{unless}")
    if found.empty:
        sentence = (
            f"{counted(found.empty, 'task')} {verb(found.empty, 'states', 'state')} no replicas"
        )
        notes.append(f"{sentence}: no pods, as in a cluster")
    if found.foreign:
        whose = verb(found.foreign, "names another scheduler", "name another scheduler")
        notes.append(f"{counted(found.foreign, 'pod')} {whose} than {SCHEDULER_NAME}: left out")
    return Workload(
        name=path.name,
        format="manifests",
        jobs=in_order(within_limits(jobs, str(path))),
        objects=tuple(found.others),
        notes=tuple(notes),
    )


def _followed(documents: Sequence[Document]) -> Sequence[Document]:
    """Put the pods of Kubernetes' own PodGroups into groups that follow them."""
    contents = [in_namespace(each.content) for each in documents]
    own = [isinstance(each, dict) and each.get("kind") == "PodGroup" for each in contents]
    own = [
        is_own and kind_of(each) == KUBE_POD_GROUP
        for is_own, each in zip(own, contents, strict=True)
    ]
    if not any(own):
        return documents
    for document, is_own in zip(documents, own, strict=True):
        if is_own:
            from_manifest(document.content, source=document.source)
    kept = [each for each, is_own in zip(documents, own, strict=True) if not is_own]
    made = with_followed(contents)
    places = [*kept, *repeat(documents[0], len(made) - len(kept))]
    return [each._replace(content=one) for each, one in zip(places, made, strict=True)]


def _sort_in(document: Document, found: _Found) -> None:
    content, source = document.content, document.source
    if isinstance(content, Mapping) and "kind" not in content and "objects" in content:
        raise InputError(
            wanted="manifests of a workload",
            found=Words("a scenario or snapshot"),
            file=source,
            hint="pumice run plays one; pumice sim takes the manifests of its objects",
        )
    if isinstance(content, Mapping) and content.get("kind") == "Job":
        found.jobs.append((stored_job(dict(content), source=source), source))
        return
    thing = from_manifest(in_namespace(content), source=source, beside=("Job",))
    if not isinstance(thing, Pod | PodGroup):
        found.manifests.append(content)
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
        stated = found.groups.get(key) or (_group_alone(*pods[0]), pods[0][1])
        yield _gang(key, pods, *stated, found)


def _own_part(job: JobSpec, found: _Found) -> JobSpec | None:
    """Leave out pods of other schedulers; None if no others are left."""
    own = tuple(task for task in job.tasks if task.spec.scheduler_name == SCHEDULER_NAME)
    if len(own) == len(job.tasks):
        return job
    found.foreign += sum(task.count for task in job.tasks) - sum(task.count for task in own)
    return msgspec.structs.replace(job, tasks=own) if own else None


def _group_alone(pod: Pod, source: str) -> PodGroup:
    """Return the group that the controller makes for a pod without one."""
    group = from_manifest(new_podgroup({"spec": {}, **to_manifest(pod)}, {}), source=source)
    assert isinstance(group, PodGroup)  # noqa: S101
    return group


def _gang(
    key: str, pods: list[tuple[Pod, str]], group: PodGroup, source: str, found: _Found
) -> JobSpec:
    namespace, _, name = key.partition("/")
    marks = group.metadata.annotations
    spec = msgspec.structs.replace(group.spec, queue=group.spec.queue or DEFAULT_QUEUE)
    arrivals = [_seconds(pod.metadata.annotations, ARRIVAL, at) for pod, at in pods]
    arrival = _seconds(marks, ARRIVAL, source)
    if arrival is None:
        arrival = max((each for each in arrivals if each is not None), default=0.0)
    return JobSpec(
        name=name,
        namespace=namespace,
        arrival=arrival,
        tasks=tuple(_task(pod, at, group, source, found) for pod, at in pods),
        min_member=spec.min_member or 0,
        queue=spec.queue,
        priority_class=spec.priority_class_name,
        annotations=_seen(marks, [pod.metadata.annotations for pod, _ in pods], source),
        group=spec,
        user=marks.get(USER, ""),
    )


def _task(
    pod: Pod, at: str, group: PodGroup, source: str, found: _Found, *, count: int = 1
) -> TaskSpec:
    meta = pod.metadata
    own = [(meta.annotations, at), (group.metadata.annotations, source)]
    run = _first_of(_seconds(marks, ACTUAL_SECONDS, where) for marks, where in own)
    if run is None:
        for marks, where in own:
            _seconds(marks, RUN_SECONDS, where)  # one that cannot be read is an error
        queue = found.queue_marks.get(group.spec.queue or DEFAULT_QUEUE)
        places = [*(marks for marks, _ in own), queue]
        run = run_time(places, pod.spec.active_deadline_seconds).expected
    if run is None:
        found.untimed += count
    spec = msgspec.structs.replace(
        pod.spec, node_name="", scheduler_name=pod.spec.scheduler_name or SCHEDULER_NAME
    )
    return TaskSpec(
        spec=spec,
        count=count,
        run_seconds=DEFAULT_SECONDS if run is None else run,
        is_timed=run is not None,
        role=meta.annotations.get(TASK_SPEC) or meta.labels.get(TASK_SPEC) or "task",
        pod_name=meta.name,
        labels=meta.labels,
        annotations={
            k: v for k, v in meta.annotations.items() if k not in _OF_THE_TRACE and k != GROUP_NAME
        },
    )


def _volcano_job(expansion: Expansion, source: str, found: _Found) -> JobSpec:
    """Turn the objects of a Volcano job into a job to simulate."""
    group = from_manifest(expansion.podgroup(), source=source)
    assert isinstance(group, PodGroup)  # noqa: S101
    marks = group.metadata.annotations
    tasks = [
        spec
        for task in expansion.tasks
        for spec in _equal_pods(expansion, task, group, source, found)
    ]
    if not tasks:
        raise ManifestError(
            wanted="a job with pods", found=0, field="spec.tasks", file=source,
            subject=f"Job {expansion.state.namespace}/{expansion.state.name}",
        )  # fmt: skip
    for claim in expansion.new_claims():
        found.others += [from_manifest(one, source=source) for one in provisioned(claim)]
    return JobSpec(
        name=expansion.state.name,
        namespace=expansion.state.namespace,
        arrival=_seconds(marks, ARRIVAL, source) or 0.0,
        tasks=tuple(tasks),
        min_member=group.spec.min_member or 0,
        queue=group.spec.queue,
        priority_class=group.spec.priority_class_name,
        annotations=_seen(marks, [_template_marks(task) for task in expansion.tasks], source),
        group=group.spec,
        late_pods=True,
        user=marks.get(USER, ""),
    )


def _equal_pods(
    expansion: Expansion, task: Manifest, group: PodGroup, source: str, found: _Found
) -> Iterator[TaskSpec]:
    """Return the pods of a task, grouped if they are equal except for their index."""
    replicas = replicas_of(task)
    policy = task.get("partitionPolicy") or {}
    found.empty += "replicas" not in task
    size = int(policy.get("partitionSize") or 0) or max(replicas, 1)
    for first in range(0, replicas, size):
        manifest = expansion.pod(task, first)
        fill_in("Pod", manifest, has_status=True)
        pod = from_manifest(manifest, source=source)
        assert isinstance(pod, Pod)  # noqa: S101
        spec = _task(pod, source, group, source, found, count=min(size, replicas - first))
        yield msgspec.structs.replace(
            spec,
            role=str(task["name"]),
            pod_name="",
            labels={k: v for k, v in spec.labels.items() if k != TASK_INDEX},
            annotations={k: v for k, v in spec.annotations.items() if k != TASK_INDEX},
        )


def _seen(
    marks: Mapping[str, str], pods: Sequence[Mapping[str, str]], source: str
) -> dict[str, str]:
    """Return the annotations of a group that policies see: what its user expects is one of them.

    Where its pods state it instead, the longest of them counts.
    """
    seen = {k: v for k, v in marks.items() if k not in _OF_THE_TRACE}
    stated = _seconds(marks, RUN_SECONDS, source)
    if stated is None:
        times = [_seconds(each, RUN_SECONDS, source) for each in pods]
        known = [each for each in times if each is not None]
        stated = max(known) if known and len(known) == len(times) else None
    return seen | expected(stated)


def _template_marks(task: Manifest) -> Mapping[str, str]:
    metadata = (task.get("template") or {}).get("metadata") or {}
    return metadata.get("annotations") or {}


def _first_of(values: Iterable[float | None]) -> float | None:
    return next((value for value in values if value is not None), None)


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
