"""Volumes of a job: claims made on demand, named in the job, mounted into every pod."""

from collections.abc import Iterable

import msgspec

from pumice.api.cloning import clone
from pumice.api.kinds import CLAIM, JOB, Manifest
from pumice.controllers.base import Create, Effect, Key, Patch
from pumice.controllers.job.names import stable_suffix
from pumice.controllers.job.state import JobState
from pumice.controllers.ownership import controlled_by


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
