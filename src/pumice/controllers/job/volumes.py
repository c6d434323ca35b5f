"""Volumes of a job: claims made on demand, named in the job, mounted into every pod."""

from copy import deepcopy
from dataclasses import dataclass, field

from pumice.api.kinds import Manifest
from pumice.controllers.base import Create, Effect, Key, Patch
from pumice.controllers.job.names import CLAIM, JOB, scrambled
from pumice.controllers.job.state import JobState
from pumice.controllers.ownership import controlled_by


@dataclass(slots=True)
class Claims:
    """What became of the claims of a job."""

    effects: list[Effect] = field(default_factory=list)
    resources: dict[str, str] = field(default_factory=dict)
    missing: str = ""
    """A claim the job names and nobody has made."""

    named: bool = False
    """Names were written into the job: look again when that is done."""


def claims(state: JobState) -> Claims:
    """Make the claims that the job describes and find those that it names."""
    found = Claims()
    volumes = deepcopy(state.spec.get("volumes") or [])
    for index, volume in enumerate(volumes):
        name = str(volume.get("volumeClaimName") or "")
        if name and state.view.get(CLAIM, state.namespace, name) is None:
            found.missing = name
            return found
        if not name:
            name = f"{state.name}-pvc-{scrambled(state.uid, 'claim', index)}"
            volume["volumeClaimName"] = name
            found.named = True
            if (
                volume.get("volumeClaim") is not None
                and state.view.get(CLAIM, state.namespace, name) is None
            ):
                found.effects.append(Create(_claim(state, name, volume["volumeClaim"])))
        found.resources[f"volume-pvc-{name}"] = name
    if found.named:
        key = Key(JOB, state.namespace, state.name)
        found.effects.append(Patch(key, {"spec": {"volumes": volumes}}))
    return found


def mount(state: JobState, pod: Manifest) -> None:
    """Mount the volumes of the job into the containers of a new pod."""
    spec = pod["spec"]
    seen: set[str] = set()
    for index, volume in enumerate(state.spec.get("volumes") or []):
        claim = str(volume.get("volumeClaimName") or "")
        if claim in seen:
            continue
        seen.add(claim)
        marks = (state.uid, pod["metadata"]["name"], state.version, state.retries, index)
        name = f"{state.name}-{scrambled(*marks)}"
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
        "spec": deepcopy(spec),
    }
