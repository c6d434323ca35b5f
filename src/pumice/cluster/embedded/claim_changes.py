"""The work of a control plane on resource claims: makes them from templates, frees and guards them.

Pure functions on manifests; used by the store, by the upkeep of claims and between the cycles of
scenarios.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from pumice.api.devices import MOST_RESERVATIONS, POD_CLAIM_NAME
from pumice.api.kinds import RESOURCE_CLAIM, Manifest
from pumice.errors import RejectedError

_OVER: Final = frozenset({"Succeeded", "Failed"})


def unmade_claims(pod: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and template of the claims of a pod that are yet to be made."""
    status = pod.get("status") or {}
    made = {each["name"] for each in status.get("resourceClaimStatuses") or ()}
    for entry in (pod.get("spec") or {}).get("resourceClaims") or ():
        template = entry.get("resourceClaimTemplateName")
        if template and entry["name"] not in made and status.get("phase") not in _OVER:
            yield entry["name"], template


def claim_from(template: Manifest, pod: Manifest, entry: str, name: Manifest) -> Manifest:
    """Make the claim of a pod from a template; ``name`` is its name.

    A pod that no cluster has seen yet has no uid by which a claim could be its own.
    """
    given, owner = template["spec"], pod["metadata"]
    marks = given.get("metadata") or {}
    reference = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": owner["name"],
        "uid": owner.get("uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": template["apiVersion"],
        "kind": "ResourceClaim",
        "metadata": {
            **name,
            "namespace": owner.get("namespace") or "default",
            "labels": dict(marks.get("labels") or {}),
            "annotations": {**(marks.get("annotations") or {}), POD_CLAIM_NAME: entry},
            "ownerReferences": [reference] if reference["uid"] else [],
        },
        "spec": given.get("spec") or {},
    }


def with_made_claim(pod: Manifest, entry: str, claim: str) -> list[Manifest]:
    """Return the claim statuses of a pod with one more."""
    known = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return [*known, {"name": entry, "resourceClaimName": claim}]


def with_made_claims(
    objects: Sequence[Manifest], others: Sequence[Manifest] = ()
) -> list[Manifest]:
    """Return objects with the claims that a control plane makes from templates, `<pod>-<name>`.

    Templates and claims may be among ``others``, which are not returned.
    """
    known = (*others, *objects)
    templates = {_key(each): each for each in known if each["kind"] == "ResourceClaimTemplate"}
    if not templates:
        return list(objects)
    named = {_key(each) for each in known if each["kind"] == "ResourceClaim"}
    made: list[Manifest] = []
    for manifest in objects:
        pod = manifest
        for entry, name in unmade_claims(manifest) if manifest["kind"] == "Pod" else ():
            claim = f"{pod['metadata']['name']}-{entry}"
            template = templates.get(f"{_key(pod).partition('/')[0]}/{name}")
            if template is None:
                continue
            if f"{_key(pod)}-{entry}" not in named:
                made.append(claim_from(template, pod, entry, {"name": claim}))
            statuses = {"resourceClaimStatuses": with_made_claim(pod, entry, claim)}
            pod = {**pod, "status": {**(pod.get("status") or {}), **statuses}}
        made.append(pod)
    return made


def _key(manifest: Mapping[str, Any]) -> str:
    meta = manifest["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta['name']}"


def without_users(claim: Manifest, gone: Callable[[Mapping[str, Any]], bool]) -> Manifest | None:
    """Return the status of a claim without users that are gone, None if all exist.

    With its last user it loses its devices.
    """
    status = claim.get("status") or {}
    users = status.get("reservedFor") or ()
    left = [each for each in users if not gone(each)]
    if len(left) == len(users):
        return None
    if left:
        return {**status, "reservedFor": left}
    return {key: part for key, part in status.items() if key not in ("reservedFor", "allocation")}


def pods_there(pods: Collection[Manifest]) -> set[str]:
    """Return the uids of pods that have not ended."""
    return {
        pod["metadata"]["uid"]
        for pod in pods
        if (pod.get("status") or {}).get("phase") not in _OVER
    }


def check_claim_status(kind: str, claim: Manifest, status: Mapping[str, Any]) -> None:
    """Refuse a status of a claim that an API server refuses; other kinds pass.

    Raises:
        RejectedError: it is invalid.
    """
    if kind != RESOURCE_CLAIM:
        return
    before, after = (claim.get("status") or {}).get("allocation"), status.get("allocation")
    users, problem = status.get("reservedFor") or (), ""
    if before and after and before != after:
        problem = "status.allocation: Invalid value: field is immutable"
    elif users and not after:
        problem = "status.reservedFor: Forbidden: may only be set if status.allocation is set"
    elif len(users) > MOST_RESERVATIONS:
        most = f"must have at most {MOST_RESERVATIONS} items"
        problem = f"status.reservedFor: Too many: {len(users)}: {most}"
    if problem:
        raise RejectedError(
            kind, claim["metadata"]["namespace"], claim["metadata"]["name"], problem
        )
