"""The job that remedies change, whether it is a Volcano job or a pod group with pods.

Fields that a cluster does not allow to change in an existing object are changed by submitting it
again: it is removed and added.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from pumice.api.kinds import ENDED_PHASES, Manifest, queue_of
from pumice.api.pod_resources import asked_amounts
from pumice.controllers.expected import is_expected
from pumice.controllers.job.state import replicas_of
from pumice.diagnosis.changes import Add, Change, Operation, Remove, patched
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.diagnosis.written import is_draft
from pumice.errors import InputError

PodEdit = Callable[[Manifest], Manifest]
"""Turns the spec of a pod into another one."""
_FRESH: Final = ("name", "namespace", "labels", "annotations", "generateName")
_MOST_PODS: Final = 2000
_NANO: Final = 10**9


@dataclass(frozen=True)
class Target:
    """One job of a world."""

    world: ClusterState
    group: str
    """Key of its pod group."""

    @cached_property
    def job(self) -> Manifest | None:
        """The Volcano job, None for other jobs."""
        return self.world.job_of(self.group)

    @cached_property
    def pods(self) -> list[Manifest]:
        """Its pods that wait."""
        return [
            pod
            for pod in self.world.pods_by_group.get(self.group, ())
            if not (pod.get("spec") or {}).get("nodeName")
            and (pod.get("status") or {}).get("phase") not in ENDED_PHASES
        ]

    @property
    def podgroup(self) -> Manifest:
        """Its pod group; empty if it has none."""
        return self.world.groups.get(self.group, {})

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec of its pod group."""
        found: Mapping[str, Any] = self.podgroup.get("spec") or {}
        return found

    @property
    def least(self) -> int:
        """How many pods it needs to start: as its Volcano job states it, else its pod group."""
        if self.job is None:
            return int(self.spec.get("minMember") or 1)
        stated = self.job["spec"]
        return int(stated.get("minAvailable") or sum(map(replicas_of, self.tasks)))

    @property
    def tasks(self) -> list[Manifest]:
        """The tasks of its Volcano job; none for other jobs."""
        return list((self.job or {}).get("spec", {}).get("tasks") or ())

    @property
    def queue(self) -> str:
        """The queue that it names."""
        return queue_of(self.podgroup) if self.podgroup else ""

    # Changes

    def with_pod_specs(self, text: str, edit: PodEdit) -> Change | None:
        """Change the specs of its pods: the template of a Volcano job, or the pods themselves."""
        if self.job is not None:
            return self._resubmitted(text, lambda job: _with_templates(job, edit))
        ops: list[Operation] = []
        for pod in self.pods[:_MOST_PODS]:
            new = {**pod, "spec": edit(dict(pod["spec"]))}
            if new != pod:
                ops += _again(pod, new)
        return Change(text, tuple(ops)) if ops else None

    def with_pods_patched(self, text: str, edit: PodEdit) -> Change | None:
        """Change fields of pods that a cluster allows to change: gates and tolerations."""
        if any(is_expected(pod) for pod in self.pods):
            return self.with_pod_specs(text, edit)
        ops = [
            patched("Pod", key_of(pod), pod, {**pod, "spec": edit(dict(pod["spec"]))})
            for pod in self.pods[:_MOST_PODS]
        ]
        kept = tuple(op for op in ops if op.patch)
        return Change(text, kept) if kept else None

    def with_group(self, text: str, fields: Mapping[str, Any]) -> Change | None:
        """Change the spec of its pod group; in a Volcano job the field of that name there."""
        if self.job is None:
            group = self.podgroup
            new = {**group, "spec": _without_none({**self.spec, **fields})}
            return Change(text, (patched("PodGroup", self.group, group, new),))
        names = {_JOB_FIELDS[name]: value for name, value in fields.items() if name in _JOB_FIELDS}
        new_job = {**self.job, "spec": _without_none({**self.job["spec"], **names})}
        patch = Change(text, (patched("Job", key_of(self.job), self.job, new_job),))
        try:
            patch(self.world)
        except InputError:
            return self._resubmitted(
                text, lambda job: {**job, "spec": _without_none({**job["spec"], **names})}
            )
        return patch

    def resubmitted(self, text: str, edit: Callable[[Manifest], Manifest]) -> Change | None:
        """Submit a Volcano job again, changed; None for other jobs."""
        return self._resubmitted(text, edit) if self.job is not None else None

    def _resubmitted(self, text: str, edit: Callable[[Manifest], Manifest]) -> Change | None:
        if self.job is None:
            return None
        new = edit(self.job)
        if new == self.job:
            return None
        if is_draft(self.job):
            return Change(text, (patched("Job", key_of(self.job), self.job, new),))
        remove, add = _again(self.job, {k: v for k, v in new.items() if k != "status"})
        return Change(text, (*self._owned(), remove, add))

    def _owned(self) -> Iterator[Operation]:
        """Remove what belongs to a Volcano job, so that a list of objects changes in step."""
        members = [self.podgroup, *self.world.pods_by_group.get(self.group, ())]
        for one in members[: _MOST_PODS + 1]:
            if one and not is_expected(one):
                namespace, _, name = key_of(one).rpartition("/")
                yield Remove(kind=str(one["kind"]), namespace=namespace, name=name)


_JOB_FIELDS: Final = {
    "minMember": "minAvailable",
    "queue": "queue",
    "priorityClassName": "priorityClassName",
    "networkTopology": "networkTopology",
}


def _again(old: Manifest, new: Manifest) -> Iterable[Operation]:
    """Remove an object and add another of its name."""
    meta = old["metadata"]
    place = {"namespace": str(meta.get("namespace") or ""), "name": str(meta["name"])}
    fresh = {name: value for name, value in new["metadata"].items() if name in _FRESH and value}
    owners = meta.get("ownerReferences")
    if owners:
        fresh["ownerReferences"] = owners
    yield Remove(kind=str(old["kind"]), **place)
    added = {**new, "metadata": fresh}
    if old["kind"] == "Pod":
        added["status"] = {"phase": "Pending"}
    yield Add(object=added)


def _with_templates(job: Manifest, edit: PodEdit) -> Manifest:
    tasks = []
    for task in job["spec"].get("tasks") or ():
        template = task.get("template") or {}
        spec = edit(dict(template.get("spec") or {}))
        tasks.append({**task, "template": {**template, "spec": spec}})
    return {**job, "spec": {**job["spec"], "tasks": tasks}}


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def jobs_of(world: ClusterState, pods: Iterable[str]) -> dict[str, list[str]]:
    """Sort pods (keys) by the pod group they belong to."""
    known = world.of_kind("Pod")
    found: dict[str, list[str]] = {}
    for key in pods:
        if key in known:
            found.setdefault(group_of(known[key]), []).append(key)
    return found


def requests_of(spec: Manifest) -> dict[str, Fraction]:
    """Return what a pod asks for, in cores, bytes and pieces."""
    return {name: Fraction(each.nano, _NANO) for name, each in asked_amounts(spec).items()}
