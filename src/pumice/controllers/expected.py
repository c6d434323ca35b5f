"""Objects that the controllers have still to make, for jobs and plain pods.

Used where a user asks about a manifest that is not in any cluster yet, and for jobs whose pods come
only once they are admitted.  The controllers' own code makes them.
"""

import copy
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress

from pumice.api.annotations import EXPECTED, GROUP_NAME, JOB_NAME
from pumice.api.groups import PodGroup
from pumice.api.kinds import (
    DEFAULT_QUEUE,
    ENDED_PHASES,
    LIMIT_RANGE,
    PRIORITY_CLASS,
    STORAGE_CLASS,
    SYSTEM_PRIORITIES,
    Manifest,
    is_bare,
    queue_of,
)
from pumice.api.times import rfc3339
from pumice.cluster.embedded.claim_changes import with_made_claims
from pumice.cluster.embedded.defaults import fill_in
from pumice.cluster.embedded.pods import give_amounts, prioritised
from pumice.controllers.base import phase_of
from pumice.controllers.job.objects import Expansion, expand, provisioned
from pumice.controllers.job.state import replicas_of
from pumice.controllers.kube_groups import gang_of, missing_tier
from pumice.controllers.podgroup import group_name, new_podgroup, owner_annotations
from pumice.controllers.view import ManifestView
from pumice.errors import ABSENT, ManifestError, RejectedError

NOT_BEGUN = ("", "Pending")
"""Phases of a job whose pods may still have to be made."""
MOST_PODS = 200_000
"""Maximum pods of jobs together: they are made in memory, about 8 KB each."""


def open_queue(name: str) -> Manifest:
    """Return a queue as its controller leaves a new one."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1},
        "status": {"state": "Open"},
    }


def with_expected(
    objects: Sequence[Manifest], jobs: Sequence[Manifest], now: float, *, is_live: bool = False
) -> list[Manifest]:
    """Return objects with what is still to be made for pods and Volcano jobs among them.

    A live cluster makes the PodGroups and claims of the pods that it has; those of files have none
    yet.
    """
    found = with_followed(objects)
    found = found if is_live else with_made_claims(with_grouped(found))
    return found + [created(one, now) for one in expand_jobs(jobs, found)]


def with_grouped(objects: Sequence[Manifest]) -> list[Manifest]:
    """Return objects in which plain pods without a node are in the PodGroups that they get."""
    bare = {id(one) for one in objects if _gets_group(one)}
    if not bare:
        return [*objects]
    view = ManifestView(objects)
    there = {_place(one) for one in objects if one["kind"] == "PodGroup"}
    made: dict[tuple[str, str], Manifest] = {}
    found: list[Manifest] = []
    for one in objects:
        if id(one) not in bare:
            found.append(one)
            continue
        pod = _stored(copy.deepcopy(_in_namespace(one)), view)
        place = pod["metadata"]["namespace"], group_name(pod)
        if place not in there and place not in made:
            group = new_podgroup(pod, owner_annotations(pod, view))
            made[place] = _as_old_as(pod["metadata"], group)
        found.append(_marked(pod, {GROUP_NAME: place[1]}))
    return [*found, *_with_default_queue([*made.values()], objects)]


def _gets_group(one: Manifest) -> bool:
    """Return whether the controller would make a PodGroup for a pod."""
    if not is_bare(one):
        return False
    return (one.get("status") or {}).get("phase") not in ENDED_PHASES and not gang_of(one)


def with_followed(objects: Sequence[Manifest]) -> list[Manifest]:
    """Return objects with the PodGroups of Volcano in place of Kubernetes' own, their pods in them.

    Pods that a controller has put in a group stay there; their Kubernetes PodGroup is left out.

    Raises:
        ManifestError: pods must share the value of a label that no HyperNode stands for.
    """
    gangs = {_place(one): one for one in objects if _is_gang(one)}
    if not gangs:
        return [*objects]
    hyper_nodes = [one for one in objects if one["kind"] == "HyperNode"]
    made: dict[tuple[str, str], Manifest] = {}
    found: list[Manifest] = []
    for one in objects:
        if one["kind"] == "Pod" and GROUP_NAME not in (one["metadata"].get("annotations") or ()):
            space = one["metadata"].get("namespace") or "default"
            place = space, gang_of(one)
            if place in gangs:
                if place not in made:
                    _check_tier(gangs[place], hyper_nodes)
                    made[place] = _follower(gangs[place], one)
                found.append(_marked(one, {GROUP_NAME: made[place]["metadata"]["name"]}))
                continue
        if not _is_gang(one):
            found.append(one)
    return [*found, *made.values()]


def _is_gang(one: Manifest) -> bool:
    return one["kind"] == "PodGroup" and one["apiVersion"] != PodGroup.API_VERSION


def _follower(gang: Manifest, pod: Manifest) -> Manifest:
    made = new_podgroup(_in_namespace(pod), {}, _in_namespace(gang))
    return _as_old_as(gang["metadata"], made)


def _in_namespace(one: Manifest) -> Manifest:
    return {**one, "metadata": {**one["metadata"], "namespace": _place(one)[0]}}


def _check_tier(gang: Manifest, hyper_nodes: Sequence[Manifest]) -> None:
    if tier := missing_tier(gang, hyper_nodes):
        raise ManifestError(
            wanted=f"a HyperNode with the tierName {tier}",
            found=ABSENT,
            field="spec.schedulingConstraints.topology",
            subject="PodGroup {}/{}".format(*_place(gang)),
        )


def expand_jobs(jobs: Sequence[Manifest], objects: Sequence[Manifest]) -> list[Manifest]:
    """Make what the controllers would make for Volcano jobs that have not begun yet, or lack pods.

    ``jobs`` are as a cluster stores them.  A job without a pod group gets one, its pods and their
    claims; one whose pod group waits for its pods, which come once it is admitted, gets the pods,
    marked as expected.  So does one that runs with only some of its pods.  The queue ``default`` is
    made if a job names it and there is none: every Volcano cluster has it.

    Raises:
        ManifestError: the controller cannot use a job, or jobs ask for more pods than
            an answer can handle.
    """
    new = [job for job in jobs if phase_of(job) in NOT_BEGUN]
    lacking = _lacking_pods(jobs, objects)
    _check_pods(sum(map(_replicas, new)) + sum(number for _, number in lacking))
    new += [job for job, _ in lacking]
    if not new:
        return []
    view = ManifestView(objects)
    groups = _groups_of_jobs(objects)
    made: list[Manifest] = []
    for job in new:
        made += _missing(expand(job, view), groups, view)
    made = _with_default_queue(made, objects)
    marks = {EXPECTED: "true"}
    return [
        _marked(one, marks) if one["kind"] == "ResourceClaim" else one
        for one in with_made_claims(made, objects)
    ]


def _with_default_queue(made: list[Manifest], objects: Sequence[Manifest]) -> list[Manifest]:
    """Return new objects with the queue ``default`` if one names it and there is none."""
    wanted = {queue_of(one) for one in made if one["kind"] == "PodGroup"}
    if DEFAULT_QUEUE not in wanted or any(map(_is_default_queue, objects)):
        return made
    return [open_queue(DEFAULT_QUEUE), *made]


def _lacking_pods(
    jobs: Iterable[Manifest], objects: Iterable[Manifest]
) -> list[tuple[Manifest, int]]:
    """List jobs that run with only some of their pods, and how many are missing.

    Input that has none of them says nothing.
    """
    running = [job for job in jobs if phase_of(job) == "Running"]
    if not running:
        return []
    marks = (
        (one["metadata"].get("namespace") or "default", one["metadata"].get("annotations") or {})
        for one in objects
        if one["kind"] == "Pod"
    )
    known = Counter((space, each.get(JOB_NAME)) for space, each in marks)
    missing = ((job, _replicas(job) - known[_place(job)]) for job in running if known[_place(job)])
    return [(job, number) for job, number in missing if number > 0]


def _replicas(job: Manifest) -> int:
    return sum(replicas_of(task) for task in job["spec"].get("tasks") or ())


def _check_pods(pods: int) -> None:
    """Refuse to make too many pods together, before the first is made."""
    if pods > MOST_PODS:
        raise ManifestError(
            wanted=f"at most {MOST_PODS:,} pods of all jobs whose pods are still to be made",
            found=pods,
            field="spec.tasks.replicas",
        )


def _place(job: Manifest) -> tuple[str, str]:
    meta = job["metadata"]
    return meta.get("namespace") or "default", str(meta["name"])


def is_expected(manifest: Manifest) -> bool:
    """Return whether an object does not exist yet and is only expected of its controller."""
    return EXPECTED in (manifest["metadata"].get("annotations") or ())


def missing_class(pod: Manifest, known: Container[str]) -> str:
    """Return the priority class without which a pod cannot be created; empty if there is none.

    A cluster gives pods of a class its priority: one without was not created yet.
    """
    spec = pod.get("spec") or {}
    name = str(spec.get("priorityClassName") or "")
    is_new = spec.get("priority") is None and not spec.get("nodeName")
    return "" if name in known or name in SYSTEM_PRIORITIES or not is_new else name


def created(manifest: Manifest, now: float) -> Manifest:
    """Return an object with this time if it does not say when it was created."""
    meta = manifest["metadata"]
    if meta.get("creationTimestamp"):
        return manifest
    return {**manifest, "metadata": {**meta, "creationTimestamp": rfc3339(now)}}


def _groups_of_jobs(objects: Iterable[Manifest]) -> dict[tuple[str, str], Manifest]:
    """Find pod groups by namespace and name of the job that owns them, or that they are named as.

    A manifest written by hand has no uid by which the controller would find it.
    """
    found: dict[tuple[str, str], Manifest] = {}
    for one in objects:
        if one["kind"] == "PodGroup":
            meta = one["metadata"]
            owners = [owner.get("name") for owner in meta.get("ownerReferences") or ()]
            for name in (meta["name"], *owners):
                found[meta.get("namespace") or "default", str(name)] = one
    return found


def _missing(
    expansion: Expansion, groups: dict[tuple[str, str], Manifest], view: ManifestView
) -> Iterator[Manifest]:
    """Make what is missing of a job, as a cluster would store it."""
    state = expansion.state
    owner = state.job["metadata"]
    group = groups.get((state.namespace, state.name))
    marks = {EXPECTED: "true"}
    if group is None:
        made = {**expansion.podgroup(), "status": {"phase": "Pending"}}
        yield _as_old_as(owner, _marked(made, marks))
    else:
        marks[GROUP_NAME] = group["metadata"]["name"]
    for claim in expansion.new_claims():
        known = view.get(STORAGE_CLASS, "", class_of(claim))
        yield from (_marked(one, {EXPECTED: "true"}) for one in served(claim, known))
    for task in expansion.tasks:
        for pod in expansion.new_pods(task):
            pod["metadata"]["annotations"] |= marks
            yield _as_old_as(owner, _stored(pod, view))


def _marked(manifest: Manifest, marks: dict[str, str]) -> Manifest:
    meta = manifest["metadata"]
    annotations = {**(meta.get("annotations") or {}), **marks}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}


def _stored(pod: Manifest, view: ManifestView) -> Manifest:
    """Fill in a new pod as an API server does; an unknown priority class stays a name."""
    fill_in("Pod", pod, has_status=True)
    with suppress(RejectedError):
        prioritised(pod, view.list(PRIORITY_CLASS))
    give_amounts(pod, view.list(LIMIT_RANGE, pod["metadata"]["namespace"]))
    return pod


def class_of(claim: Manifest) -> str:
    """Name the storage class of a claim."""
    return str(claim["spec"].get("storageClassName") or "")


def served(claim: Manifest, storage_class: Manifest | None) -> list[Manifest]:
    """Return a claim as pods find it: bound to a volume, unless its class waits for them."""
    waits = (storage_class or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    return [claim] if waits else provisioned(claim)


def _as_old_as(owner: Manifest, manifest: Manifest) -> Manifest:
    if not owner.get("creationTimestamp"):
        return manifest
    stamped = {"creationTimestamp": owner["creationTimestamp"]}
    return {**manifest, "metadata": {**manifest["metadata"], **stamped}}


def _is_default_queue(manifest: Manifest) -> bool:
    return manifest["kind"] == "Queue" and manifest["metadata"]["name"] == DEFAULT_QUEUE
