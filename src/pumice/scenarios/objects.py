"""The objects that each cycle of a scenario starts with."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pumice.api.annotations import ALLOCATED_HYPER_NODE, GROUP_NAME, QUEUE_GATE, RESERVATION
from pumice.api.cloning import clone
from pumice.api.decisions import ClaimChoice, Decisions
from pumice.api.kinds import CLAIM, JOB, VOLUME, Manifest, kind_of
from pumice.api.objects import from_manifest
from pumice.api.patterns import occurs_in
from pumice.api.storage import StorageClass
from pumice.cluster.embedded.claim_changes import without_users
from pumice.cluster.embedded.patches import apply_patch
from pumice.cluster.embedded.volumes import bound, bound_status, kept, provisioned_volume

_JOB_KIND: Final = JOB.partition(".")[0]


def key_of(manifest: Mapping[str, Any]) -> str:
    """Return "namespace/name"; an absent namespace is `default`."""
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def is_job(manifest: Mapping[str, Any]) -> bool:
    """Return whether an object is a job of Volcano."""
    return manifest["kind"] == _JOB_KIND and kind_of(manifest) == JOB


def with_volumes(objects: Sequence[Manifest], choices: Mapping[str, ClaimChoice]) -> list[Manifest]:
    """Return the objects with claims and volumes bound to each other, and those that were made."""
    found = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    changed: dict[int, Manifest] = {}
    made: list[Manifest] = []
    for claim in objects:
        choice = choices.get(key_of(claim)) if claim["kind"] == CLAIM else None
        if choice is None:
            continue
        volume = found.get((VOLUME, choice.volume)) or _provisioned(claim, choice, found)
        patch = {**bound(claim, volume), "status": bound_status(volume)}
        changed[id(claim)] = apply_patch(clone(claim), patch, "merge")
        patch = {**kept(volume, claim), "status": {"phase": "Bound"}}
        changed[id(volume)] = apply_patch(clone(volume), patch, "merge")
        if not choice.volume:
            made.append(changed.pop(id(volume)))
    return [changed.get(id(each), each) for each in objects] + made


def _provisioned(
    claim: Manifest, choice: ClaimChoice, found: Mapping[tuple[str, str], Manifest]
) -> Manifest:
    spec = claim.get("spec") or {}
    made_by = from_manifest(found["StorageClass", str(spec.get("storageClassName"))])
    if not isinstance(made_by, StorageClass):
        raise TypeError(type(made_by))
    return provisioned_volume(claim, made_by, found["Node", choice.node])


def group_of(pod: Mapping[str, Any]) -> str | None:
    """Return "namespace/name" of the pod group a pod belongs to."""
    annotations = pod["metadata"].get("annotations") or {}
    name = annotations.get(GROUP_NAME)
    return f"{pod['metadata'].get('namespace') or 'default'}/{name}" if name else None


def groups_by_job(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Map Volcano jobs to their pod groups, whose names nobody chooses."""
    return {
        f"{group['metadata'].get('namespace') or 'default'}/{owner.get('name')}": key_of(group)
        for group in objects
        if group["kind"] == "PodGroup"
        for owner in group["metadata"].get("ownerReferences") or ()
        if owner.get("kind") == "Job"
    }


def groups_by_pod(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Map every pod that has a group to that group."""
    pods = (manifest for manifest in objects if manifest["kind"] == "Pod")
    return {key_of(pod): group for pod in pods if (group := group_of(pod))}


def advance(
    objects: Sequence[Manifest], decisions: Decisions, *, requeues: bool = False
) -> list[Manifest]:
    """Return the cluster as the next cycle finds it.

    Bound pods run, their claims have volumes, evicted pods are gone, or come back and wait if the
    cluster ``requeues`` them; opened gates, nominations and pod group statuses are written.
    """
    if decisions.volumes:
        objects = with_volumes(objects, decisions.claims)
    gone = set(decisions.evictions)
    after: list[Manifest] = []
    users = _claim_users(objects, decisions)
    for manifest in objects:
        if manifest["kind"] == "Pod":
            if key_of(manifest) not in gone:
                after.append(_next_pod(manifest, decisions))
            elif requeues:
                after.append(_made_again(manifest))
        elif manifest["kind"] == "ResourceClaim":
            after.append(_next_claim(manifest, decisions, users))
        elif manifest["kind"] == "PodGroup":
            after.append(_next_group(manifest, decisions))
        else:
            after.append(manifest)
    return after


def _claim_users(objects: Sequence[Manifest], decisions: Decisions) -> dict[str, list[Manifest]]:
    """Map claims to the pods that get them, as claim references."""
    users: dict[str, list[Manifest]] = {}
    for pod in objects if decisions.reservations else ():
        if pod["kind"] == "Pod":
            meta = pod["metadata"]
            user = {"resource": "pods", "name": meta["name"], "uid": meta.get("uid", "")}
            for each in decisions.reservations.get(key_of(pod), ()):
                users.setdefault(each.claim, []).append(user)
    return users


def _next_claim(
    claim: Manifest, decisions: Decisions, users: Mapping[str, list[Manifest]]
) -> Manifest:
    key = key_of(claim)
    if key in decisions.released_claims:
        return {**claim, "status": {}}
    space = key.partition("/")[0]
    left = without_users(claim, lambda user: f"{space}/{user['name']}" in decisions.evictions)
    status = dict((claim.get("status") or {}) if left is None else left)
    for each in (one for some in decisions.reservations.values() for one in some):
        if each.claim == key and each.allocation is not None:
            status["allocation"] = msgspec.json.decode(msgspec.json.encode(each.allocation))
    if key in users:
        known = {user.get("name") for user in users[key]}
        kept = [one for one in status.get("reservedFor") or () if one.get("name") not in known]
        status["reservedFor"] = [*kept, *users[key]]
    return {**claim, "status": status}


def _next_pod(pod: Manifest, decisions: Decisions) -> Manifest:
    key = key_of(pod)
    status = dict(pod.get("status") or {})
    if key in decisions.binds:
        status.pop("nominatedNodeName", None)
        status["phase"] = "Running"
        spec = {**(pod.get("spec") or {}), "nodeName": decisions.binds[key]}
        metadata = _annotated(pod["metadata"], decisions.annotations.get(key))
        return {**pod, "metadata": metadata, "spec": spec, "status": status}
    if key in decisions.opened_gates:
        gates = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != QUEUE_GATE]
        return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}
    if key in decisions.nominated:
        return {**pod, "status": {**status, "nominatedNodeName": decisions.nominated[key]}}
    return pod


def _made_again(pod: Manifest) -> Manifest:
    """Return the pod that a controller makes for an evicted one, under the same name."""
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    return {**pod, "spec": spec, "status": {"phase": "Pending"}}


def _annotated(metadata: Manifest, annotations: Mapping[str, str] | None) -> Manifest:
    if not annotations:
        return metadata
    return {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}


def _next_group(group: Manifest, decisions: Decisions) -> Manifest:
    key, metadata = key_of(group), group["metadata"]
    change, state = decisions.promises.get(key), decisions.pod_groups.get(key)
    if change is not None:
        metadata = _annotated(metadata, {RESERVATION: change.text})
    if state is None:
        return {**group, "metadata": metadata}
    status = {
        **(group.get("status") or {}),
        "phase": state.phase,
        "conditions": [condition.to_manifest() for condition in state.conditions],
        "running": state.running,
        "succeeded": state.succeeded,
        "failed": state.failed,
    }
    if state.hyper_node:
        metadata = _annotated(metadata, {ALLOCATED_HYPER_NODE: state.hyper_node})
    return {**group, "metadata": metadata, "status": status}


def bind_counts_of_hyper_nodes(
    objects: Sequence[Mapping[str, Any]], binds: Mapping[str, str]
) -> list[int]:
    """Count binds for each HyperNode of the lowest tier, sorted; those without any are left out."""
    domains = [manifest for manifest in objects if manifest["kind"] == "HyperNode"]
    lowest = min((int(domain["spec"].get("tier", 1)) for domain in domains), default=0)
    nodes = {m["metadata"]["name"]: m for m in objects if m["kind"] == "Node"}
    home: dict[str, str] = {}
    for domain in domains:
        if int(domain["spec"].get("tier", 1)) == lowest:
            for name, node in nodes.items():
                if _has_member(domain, node):
                    home.setdefault(name, domain["metadata"]["name"])
    return sorted(Counter(home.get(node, "") for node in binds.values()).values())


def _has_member(domain: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    return any(
        member.get("type") == "Node" and _selects(member.get("selector") or {}, node)
        for member in domain["spec"].get("members") or []
    )


def _selects(selector: Mapping[str, Any], node: Mapping[str, Any]) -> bool:
    name = node["metadata"]["name"]
    if "exactMatch" in selector:
        return bool(selector["exactMatch"].get("name") == name)
    if "regexMatch" in selector:
        return occurs_in(name, selector["regexMatch"].get("pattern", ""))
    wanted = (selector.get("labelMatch") or {}).get("matchLabels") or {}
    labels = node["metadata"].get("labels") or {}
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())
