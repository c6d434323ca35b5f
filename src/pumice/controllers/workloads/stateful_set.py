"""StatefulSets: pods with fixed names and claims, made and removed in order."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from pumice.api.cloning import clone
from pumice.api.kinds import CLAIM, ENDED_PHASES, POD, Manifest
from pumice.controllers.base import Create, Effect, Plan, View
from pumice.controllers.workloads.template import (
    AT_ONCE,
    availability,
    digest,
    is_leaving,
    is_ready,
    new_status,
    phase,
    pod_of,
    removal,
    replicas_of,
)

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
