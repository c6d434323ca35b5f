"""Workloads of equal or numbered pods: ReplicaSets, Deployments, StatefulSets."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from pumice.api.annotations import LAST_APPLIED
from pumice.api.cloning import clone
from pumice.api.kinds import CLAIM, ENDED_PHASES, POD, Manifest
from pumice.api.times import epoch, rfc3339
from pumice.controllers.base import (
    Create,
    Delete,
    Effect,
    Key,
    Patch,
    Plan,
    Record,
    View,
    controlled_by,
    controller_of,
    key_of,
)

DEPLOYMENT: Final = "Deployment.apps"
REPLICA_SET: Final = "ReplicaSet.apps"
STATEFUL_SET: Final = "StatefulSet.apps"
BATCH_JOB: Final = "Job.batch"
AT_ONCE: Final = 500
"""Pods that are made at once, as Kubernetes' controllers do it."""
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def pod_of(owner: Manifest, template: Mapping[str, Any], **metadata: Any) -> Manifest:
    """Write a pod of a template that an object controls; ``metadata`` joins the template's."""
    given = clone(template)
    own = given.get("metadata") or {}
    joined = {
        "labels": {**(own.get("labels") or {}), **metadata.pop("labels", {})},
        "annotations": {**(own.get("annotations") or {}), **metadata.pop("annotations", {})},
        "finalizers": own.get("finalizers"),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            **{field: value for field, value in joined.items() if value},
            "namespace": owner["metadata"]["namespace"],
            "ownerReferences": [controlled_by(owner)],
        },
        "spec": given.get("spec") or {},
    }


def phase(pod: Manifest) -> str:
    """Return the phase of a pod."""
    return str((pod.get("status") or {}).get("phase") or "")


def is_leaving(pod: Manifest) -> bool:
    """Return whether a pod is being deleted."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_active(pod: Manifest) -> bool:
    """Return whether a pod counts among the replicas of its owner."""
    return phase(pod) not in ENDED_PHASES and not is_leaving(pod)


def ready_since(pod: Manifest) -> float | None:
    """Return since when a pod is ready, None if it is not."""
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one.get("type") == "Ready" and one.get("status") == "True":
            return epoch(one["lastTransitionTime"]) if one.get("lastTransitionTime") else 0.0
    return None


def is_ready(pod: Manifest) -> bool:
    """Return whether a pod is ready."""
    return ready_since(pod) is not None


def availability(
    pods: Iterable[Manifest], min_ready_s: float, now: float
) -> tuple[int, float | None]:
    """Count the pods that have been ready for long enough; and when the next one will have been."""
    count, next_in_s = 0, None
    for since in map(ready_since, pods):
        if since is None:
            continue
        left_s = since + min_ready_s - now
        if left_s <= 0:
            count += 1
        else:
            next_in_s = left_s if next_in_s is None else min(next_in_s, left_s)
    return count, next_in_s


def replicas_of(owner: Manifest) -> int:
    """Return how many pods an object asks for."""
    number = (owner.get("spec") or {}).get("replicas")
    return 1 if number is None else max(int(number), 0)


def share(bound: Any, total: int, *, up: bool) -> int:
    """Read a number, or a percentage of a total, rounded up or down."""
    text = str(bound)
    if text.endswith("%"):
        part = total * int(text[:-1])
        return -(-part // 100) if up else part // 100
    return max(int(text), 0)


def digest(value: Any) -> str:
    """Return ten letters that stand for a value, for names and labels."""
    text = msgspec.json.encode(value, order="deterministic")
    number = int.from_bytes(hashlib.sha256(text).digest()[:8])
    letters = ""
    for _ in range(10):
        number, letter = divmod(number, len(_LETTERS))
        letters += _LETTERS[letter]
    return letters


def removal(manifest: Manifest) -> Delete:
    """Delete an object, and no other of its name."""
    return Delete(key_of(manifest), uid=str(manifest["metadata"]["uid"]))


def new_status(owner: Manifest, status: Mapping[str, Any]) -> list[Effect]:
    """Write the fields of a status that differ; None removes one."""
    old = owner.get("status") or {}
    changes = {field: value for field, value in status.items() if old.get(field) != value}
    return [Patch(key_of(owner), {"status": changes}, "status")] if changes else []


def condition(
    owner: Manifest, kind: str, *, holds: bool, reason: str, message: str, now: str
) -> Manifest:
    """Write a condition; its times move only with what it says."""
    for old in (owner.get("status") or {}).get("conditions") or ():
        if old.get("type") == kind and old.get("status") == str(holds):
            if (old.get("reason"), old.get("message")) == (reason, message):
                return dict(old)
            moved = old.get("lastTransitionTime") or now
            break
    else:
        moved = now
    return {
        "type": kind,
        "status": str(holds),
        "reason": reason,
        "message": message,
        "lastTransitionTime": moved,
    }


def reconcile_replica_set(owner: Manifest, view: View) -> Plan:
    """Make missing pods, delete those beyond the number asked for, count the others."""
    spec = owner.get("spec") or {}
    owned = view.owned_by(POD, owner)
    pods = [pod for pod in owned if is_active(pod)]
    missing = replicas_of(owner) - len(pods)
    effects: list[Effect] = []
    if missing > 0 and spec.get("template"):
        name = f"{owner['metadata']['name']}-"
        made = min(missing, AT_ONCE)
        effects += [Create(pod_of(owner, spec["template"], generateName=name)) for _ in range(made)]
    elif missing < 0:
        effects += [removal(pod) for pod in sorted(pods, key=_keep_last)[:-missing]]
    available, next_in_s = availability(pods, spec.get("minReadySeconds") or 0, view.now)
    status = {
        "replicas": len(pods),
        "fullyLabeledReplicas": len(pods) or None,
        "readyReplicas": sum(map(is_ready, pods)) or None,
        "availableReplicas": available or None,
        "observedGeneration": owner["metadata"].get("generation", 1),
    }
    above = [] if owned else _deployments(owner)
    return Plan([*new_status(owner, status), *effects], again_in_s=next_in_s, look_at=above)


def _deployments(owner: Manifest) -> list[Key]:
    """Name the Deployment that may wait until the last pod of a ReplicaSet is gone."""
    above = controller_of(owner)
    if above is None or above.get("kind") != "Deployment" or replicas_of(owner):
        return []
    return [Key(DEPLOYMENT, owner["metadata"]["namespace"], str(above["name"]))]


def _keep_last(pod: Manifest) -> tuple[Any, ...]:
    """Return by what to delete pods in turn: those that have come least far, then the youngest."""
    placed = bool(pod["spec"].get("nodeName"))
    metadata = pod["metadata"]
    age = tuple(-ord(letter) for letter in str(metadata.get("creationTimestamp") or ""))
    return placed, phase(pod) == "Running", is_ready(pod), age, metadata["name"]


_REVISION: Final = "controller-revision-hash"


def reconcile_stateful_set(owner: Manifest, view: View) -> Plan:
    """Take the next steps towards the pods asked for, then towards their present template."""
    spec = owner.get("spec") or {}
    if not spec.get("template"):
        return Plan()  # no API server would have taken it
    revision = f"{owner['metadata']['name']}-{digest(spec['template'])}"
    pods = {str(pod["metadata"]["name"]): pod for pod in view.owned_by(POD, owner)}
    wanted = _names(owner)
    steps = _steps(owner, wanted, pods, view, revision)
    if spec.get("podManagementPolicy") != "Parallel":
        steps = islice(steps, 1)
    effects = [each for step in steps for each in step if each is not None][:AT_ONCE]
    mine = [pods[name] for name in wanted if name in pods]
    available, next_in_s = availability(mine, spec.get("minReadySeconds") or 0, view.now)
    status = _status(owner, [*pods.values()], revision, available)
    return Plan([*new_status(owner, status), *effects], again_in_s=next_in_s)


def _names(owner: Manifest) -> dict[str, int]:
    """Return the number of each pod asked for by its name."""
    start = int(((owner["spec"].get("ordinals") or {}).get("start")) or 0)
    name = owner["metadata"]["name"]
    return {f"{name}-{number}": number for number in range(start, start + replicas_of(owner))}


def _steps(
    owner: Manifest, wanted: dict[str, int], pods: dict[str, Manifest], view: View, revision: str
) -> Iterator[list[Effect | None]]:
    """Yield what each pod needs, in order; None where there is only something to wait for."""
    for name, number in wanted.items():
        pod = pods.get(name)
        if pod is None:
            yield [*_new_pod(owner, name, number, revision, view)]
        elif is_leaving(pod) or not is_ready(pod):
            ended = phase(pod) in ENDED_PHASES and not is_leaving(pod)
            yield [removal(pod) if ended else None]
    beyond = [name for name in pods if name not in wanted]
    for name in sorted(beyond, key=_number_in, reverse=True):
        yield [None if is_leaving(pods[name]) else removal(pods[name])]
    update = owner["spec"].get("updateStrategy") or {}
    if update.get("type") == "OnDelete":
        return
    first = int((update.get("rollingUpdate") or {}).get("partition") or 0)
    for name, number in sorted(wanted.items(), key=lambda one: -one[1]):
        pod = pods.get(name)
        if number < first or pod is None or is_leaving(pod):
            return  # one at a time, whatever the policy
        if (pod["metadata"].get("labels") or {}).get(_REVISION) != revision:
            yield [removal(pod)]
            return
        if not is_ready(pod):
            return


def _number_in(name: str) -> int:
    text = name.rpartition("-")[2]
    return int(text) if text.isdecimal() else -1


def _new_pod(
    owner: Manifest, name: str, number: int, revision: str, view: View
) -> Iterator[Effect]:
    """Make the claims of a pod that are missing, and the pod."""
    spec, space = owner["spec"], owner["metadata"]["namespace"]
    labels = {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(number),
        _REVISION: revision,
    }
    pod = pod_of(owner, spec["template"], name=name, labels=labels)
    volumes = {one["name"]: one for one in pod["spec"].get("volumes") or ()}
    for template in spec.get("volumeClaimTemplates") or ():
        metadata = clone(template.get("metadata") or {})
        claim = f"{metadata['name']}-{name}"
        volumes[metadata["name"]] = {
            "name": metadata["name"],
            "persistentVolumeClaim": {"claimName": claim},
        }
        if view.get(CLAIM, space, claim) is None:
            labels = {
                **(metadata.get("labels") or {}),
                **((spec.get("selector") or {}).get("matchLabels") or {}),
            }
            metadata |= {"name": claim, "namespace": space, "labels": labels}
            head = {"apiVersion": "v1", "kind": CLAIM, "metadata": metadata}
            yield Create({**head, "spec": clone(template.get("spec") or {})})
    pod["spec"] |= {"hostname": name}
    if volumes:
        pod["spec"]["volumes"] = [*volumes.values()]
    if spec.get("serviceName"):
        pod["spec"]["subdomain"] = spec["serviceName"]
    yield Create(pod)


def _status(owner: Manifest, pods: list[Manifest], revision: str, available: int) -> Manifest:
    updated = sum((pod["metadata"].get("labels") or {}).get(_REVISION) == revision for pod in pods)
    old = (owner.get("status") or {}).get("currentRevision") or revision
    is_done = updated == len(pods)
    ready = sum(map(is_ready, pods))
    return {
        "replicas": len(pods),
        "readyReplicas": ready or None,
        "availableReplicas": available,
        "currentReplicas": (updated if is_done else len(pods) - updated) or None,
        "updatedReplicas": updated or None,
        "currentRevision": revision if is_done else old,
        "updateRevision": revision,
        "observedGeneration": owner["metadata"].get("generation", 1),
        "collisionCount": 0,
    }


_HASH: Final = "pod-template-hash"
_NUMBER: Final = "deployment.kubernetes.io/revision"
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
    return Plan([*effects, *new_status(owner, _counts(owner, new, sets, view))])


def _revision(replica_set: Manifest) -> int:
    text = (replica_set["metadata"].get("annotations") or {}).get(_NUMBER) or ""
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
            "annotations": {**_inherited(owner), _NUMBER: str(revision)},
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
    return {name: text for name, text in marks.items() if name not in (_NUMBER, LAST_APPLIED)}


def _latest(owner: Manifest, new: Manifest, old: list[Manifest]) -> list[Effect]:
    """Write the highest revision on the present ReplicaSet and on the Deployment."""
    effects: list[Effect] = []
    revision = str(max(_revision(new), _highest(old) + 1))
    for one in (new, owner):
        if (one["metadata"].get("annotations") or {}).get(_NUMBER) != revision:
            mark = {"metadata": {"annotations": {_NUMBER: revision}}}
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


def _counts(owner: Manifest, new: Manifest | None, sets: list[Manifest], view: View) -> Manifest:
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
