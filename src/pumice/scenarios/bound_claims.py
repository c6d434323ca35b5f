"""Claims of a scenario between two cycles: bound as decided."""

from collections.abc import Mapping, Sequence

from pumice.api.cloning import clone
from pumice.api.decisions import ClaimChoice
from pumice.api.kinds import CLAIM, VOLUME, Manifest
from pumice.api.objects import from_manifest
from pumice.api.storage import StorageClass
from pumice.cluster.embedded.patches import apply_patch
from pumice.cluster.embedded.volumes import bound, bound_status, kept, provisioned_volume
from pumice.scenarios.identity import key_of


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
