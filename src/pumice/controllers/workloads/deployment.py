"""Deployments: a ReplicaSet for each template, and pods that move from the old to the new one."""

from collections.abc import Iterable
from typing import Any, Final

from pumice.api.annotations import LAST_APPLIED
from pumice.api.kinds import POD, Manifest
from pumice.api.times import rfc3339
from pumice.controllers.base import Create, Effect, Patch, Plan, Record, View
from pumice.controllers.ownership import controlled_by, key_of
from pumice.controllers.workloads.template import (
    REPLICA_SET,
    condition,
    digest,
    new_status,
    removal,
    replicas_of,
    share,
)

_HASH: Final = "pod-template-hash"
_REVISION: Final = "deployment.kubernetes.io/revision"
_KEPT: Final = 10
_EMPTY: Final[tuple[Any, ...]] = (None, "", {}, [])
_SOURCE: Final = "deployment-controller"


def reconcile_deployment(owner: Manifest, view: View) -> Plan:
    """Make the ReplicaSet of the present template, and move replicas to it."""
    spec = owner.get("spec") or {}
    if not spec.get("selector") or not spec.get("template"):
        return Plan()  # no API server would have taken it
    sets = sorted(view.owned_by(REPLICA_SET, owner), key=_revision)
    new = next((one for one in sets if _template(one) == _bare(spec["template"])), None)
    old = [one for one in sets if one is not new]
    effects: list[Effect] = []
    if new is None and not spec.get("paused"):
        return Plan([Create(_new_set(owner, _highest(sets) + 1))])
    if new is not None:
        effects += _latest(owner, new, old)
        wanted = _wanted(owner, new, old, view)
        effects += [each for one, number in wanted for each in _scaled(owner, one, number)]
        effects += _forgotten(owner, old)
    return Plan([*effects, *new_status(owner, _status(owner, new, sets, view))])


def _revision(replica_set: Manifest) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(_REVISION) or ""
    return int(text) if text.isdecimal() else 0


def _highest(sets: Iterable[Manifest]) -> int:
    return max(map(_revision, sets), default=0)


def _bare(template: Manifest) -> Any:
    """Return what counts of a template.

    That is not the label that tells ReplicaSets apart, nor what is empty: clients add that.
    """
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != _HASH}
    kept = {"labels": labels, "annotations": metadata.get("annotations")}
    return _filled({"metadata": kept, "spec": template.get("spec")})


def _filled(value: Any) -> Any:
    """Return a value without empty parts."""
    if isinstance(value, list):
        return [_filled(item) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {key: _filled(item) for key, item in value.items()}
    return {key: item for key, item in parts.items() if item not in _EMPTY}


def _template(replica_set: Manifest) -> Any:
    return _bare((replica_set.get("spec") or {}).get("template") or {})


def _new_set(owner: Manifest, revision: int) -> Manifest:
    """Write the ReplicaSet of the present template, which has no pods yet."""
    spec, metadata = owner["spec"], owner["metadata"]
    template = spec["template"]
    mark = {_HASH: digest(_bare(template))}
    own = template.get("metadata") or {}
    labels = {**(own.get("labels") or {}), **mark}
    selector = spec["selector"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{mark[_HASH]}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {**_inherited(owner), _REVISION: str(revision)},
            "ownerReferences": [controlled_by(owner)],
        },
        "spec": {
            "replicas": 0,
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": {
                **selector,
                "matchLabels": {**(selector.get("matchLabels") or {}), **mark},
            },
            "template": {**template, "metadata": {**own, "labels": labels}},
        },
    }


def _inherited(owner: Manifest) -> Manifest:
    marks = owner["metadata"].get("annotations") or {}
    return {name: text for name, text in marks.items() if name not in (_REVISION, LAST_APPLIED)}


def _latest(owner: Manifest, new: Manifest, old: list[Manifest]) -> list[Effect]:
    """Write the highest revision on the present ReplicaSet and on the Deployment."""
    effects: list[Effect] = []
    revision = str(max(_revision(new), _highest(old) + 1))
    for one in (new, owner):
        if (one["metadata"].get("annotations") or {}).get(_REVISION) != revision:
            mark = {"metadata": {"annotations": {_REVISION: revision}}}
            effects.append(Patch(key_of(one), mark))
    return effects


def _wanted(
    owner: Manifest, new: Manifest, old: list[Manifest], view: View
) -> list[tuple[Manifest, int]]:
    """Return how many pods each ReplicaSet is to have next."""
    strategy = (owner["spec"].get("strategy") or {}).get("type")
    if owner["spec"].get("paused") or not any(map(replicas_of, old)):
        waits = strategy == "Recreate" and any(view.owned_by(POD, one) for one in old)
        return [(new, replicas_of(new) if waits else replicas_of(owner))]
    if strategy == "Recreate":
        return [(one, 0) for one in old]
    return _rolled(owner, new, old)


def _limits(owner: Manifest) -> tuple[int, int]:
    """Return how many pods there may be too many and too few during a rolling update."""
    total = replicas_of(owner)
    update = (owner["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = share(update.get("maxSurge", "25%"), total, up=True)
    lacking = share(update.get("maxUnavailable", "25%"), total, up=False)
    return surge, lacking if lacking or surge else 1


def _rolled(owner: Manifest, new: Manifest, old: list[Manifest]) -> list[tuple[Manifest, int]]:
    """Take one step of a rolling update: grow the new, then shrink the old, oldest first."""
    total, (surge, lacking) = replicas_of(owner), _limits(owner)
    there = sum(map(replicas_of, (new, *old)))
    grown = min(replicas_of(new) + max(total + surge - there, 0), total)
    if grown != replicas_of(new):
        return [(new, grown)]
    least = total - lacking
    removable = there - least - max(grown - _available(new), 0)
    running = sum(map(_available, (new, *old))) - least
    steps = {}
    for one in old:  # pods that are not available go first: nobody misses them
        idle = min(max(replicas_of(one) - _available(one), 0), max(removable, 0))
        steps[one["metadata"]["name"]] = replicas_of(one) - idle
        removable -= idle
    for one in old:
        name = one["metadata"]["name"]
        taken = max(min(steps[name], running, removable), 0)
        steps[name] -= taken
        running, removable = running - taken, removable - taken
    return [(one, steps[one["metadata"]["name"]]) for one in old]


def _available(replica_set: Manifest) -> int:
    number = (replica_set.get("status") or {}).get("availableReplicas") or 0
    return min(int(number), replicas_of(replica_set))


def _scaled(owner: Manifest, replica_set: Manifest, number: int) -> list[Effect]:
    before = replicas_of(replica_set)
    if number == before:
        return []
    name = replica_set["metadata"]["name"]
    word = "up" if number > before else "down"
    text = f"Scaled {word} replica set {name} from {before} to {number}"
    return [
        Patch(key_of(replica_set), {"spec": {"replicas": number}}),
        Record(owner, "Normal", "ScalingReplicaSet", text, _SOURCE),
    ]


def _forgotten(owner: Manifest, old: list[Manifest]) -> list[Effect]:
    """Delete the oldest ReplicaSets without pods beyond those kept for a rollback."""
    limit = owner["spec"].get("revisionHistoryLimit")
    kept = _KEPT if limit is None else max(int(limit), 0)
    empty = [one for one in old if not _count(one, "replicas") and not replicas_of(one)]
    return [removal(one) for one in empty[: max(len(empty) - kept, 0)]]


def _count(replica_set: Manifest | None, field: str) -> int:
    return int(((replica_set or {}).get("status") or {}).get(field) or 0)


def _status(owner: Manifest, new: Manifest | None, sets: list[Manifest], view: View) -> Manifest:
    total = replicas_of(owner)
    counts = {
        "replicas": sum(_count(one, "replicas") for one in sets),
        "updatedReplicas": _count(new, "replicas"),
        "readyReplicas": sum(_count(one, "readyReplicas") for one in sets),
        "availableReplicas": sum(_count(one, "availableReplicas") for one in sets),
    }
    is_done = (
        counts["updatedReplicas"] == total == counts["replicas"] == counts["availableReplicas"]
    )
    status: dict[str, Any] = {field: number or None for field, number in counts.items()}
    lacking = max(total - counts["availableReplicas"], 0)
    status["unavailableReplicas"] = lacking or None
    status["observedGeneration"] = owner["metadata"].get("generation", 1)
    status["conditions"] = _conditions(owner, new, is_done=is_done, lacking=lacking, view=view)
    return status


def _conditions(
    owner: Manifest, new: Manifest | None, *, is_done: bool, lacking: int, view: View
) -> list[Manifest]:
    now = rfc3339(view.now)
    enough = lacking <= _limits(owner)[1]
    has = "has" if enough else "does not have"
    name = (new or owner)["metadata"]["name"]
    available = condition(
        owner,
        "Available",
        holds=enough,
        reason="MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        message=f"Deployment {has} minimum availability.",
        now=now,
    )
    done = f'ReplicaSet "{name}" has successfully progressed.'
    progressing = condition(
        owner,
        "Progressing",
        holds=True,
        reason="NewReplicaSetAvailable" if is_done else "ReplicaSetUpdated",
        message=done if is_done else f'ReplicaSet "{name}" is progressing.',
        now=now,
    )
    return [available, progressing]
