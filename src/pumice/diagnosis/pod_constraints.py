"""What a job may ask for itself that keeps it waiting: gates, selectors, affinities, tolerations.

Part of the remedies; nothing is tried here.
"""

from collections.abc import Callable, Iterator

from pumice.api.kinds import Manifest
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.edits import Remedy, fixed, of_pods, replaced, with_spec
from pumice.diagnosis.job_outcome import JobOutcome
from pumice.framework.job_records import Stage

_BLOCKING = ("NoSchedule", "NoExecute")
_CORDONED = 4
"""Cordoned nodes that are tried."""


def gates(world: ClusterState, finding: JobOutcome) -> Iterator[Remedy]:
    """Take the scheduling gates off its pods."""
    if finding.gated:
        gates = sorted(
            {
                str(gate.get("name"))
                for pod in world.pods_by_group.get(finding.job, [])
                for gate in pod["spec"].get("schedulingGates") or ()
            }
        )
        edit = of_pods(finding.job, lambda pod: with_spec(pod, schedulingGates=None))
        yield fixed(f"remove the scheduling gate {', '.join(gates)} from its pods", edit)


def own_terms(world: ClusterState, finding: JobOutcome) -> Iterator[Remedy]:
    """Take away what keeps its pods off nodes: selectors, affinities, taints, cordons."""
    if Stage.NODES not in finding.stops:
        return
    job, pods = finding.job, world.pods_by_group.get(finding.job, [])
    yield from _selectors(job, pods)
    for kind, words in _AFFINITIES.items():
        if any((pod["spec"].get("affinity") or {}).get(kind) for pod in pods):
            yield fixed(f"remove the {words} of its pods", of_pods(job, _without_affinity(kind)))
    if any(pod["spec"].get("topologySpreadConstraints") for pod in pods):
        edit = of_pods(job, lambda pod: with_spec(pod, topologySpreadConstraints=None))
        yield fixed("remove the topology spread constraints of its pods", edit)
    yield from _taints(world, job)
    yield from _cordons(world)
    group = world.groups.get(job, {}).get("spec") or {}
    if group.get("networkTopology"):
        edit = replaced("PodGroup", job, lambda one: with_spec(one, networkTopology=None))
        yield fixed("drop its network topology limit", edit)


_AFFINITIES = {
    "nodeAffinity": "node affinity",
    "podAffinity": "pod affinity",
    "podAntiAffinity": "pod anti-affinity",
}


def _without_affinity(kind: str) -> Callable[[Manifest], Manifest]:
    def edit(pod: Manifest) -> Manifest:
        affinity = dict(pod["spec"].get("affinity") or {})
        affinity.pop(kind, None)
        return with_spec(pod, affinity=affinity or None)

    return edit


def _selectors(job: str, pods: list[Manifest]) -> Iterator[Remedy]:
    terms = sorted(
        {term for pod in pods for term in (pod["spec"].get("nodeSelector") or {}).items()}
    )
    for key, value in terms:
        edit = of_pods(job, _without_selector(key))
        yield fixed(f"remove the node selector {key}={value} from its pods", edit, "selector")
    if len(terms) > 1:
        edit = of_pods(job, lambda pod: with_spec(pod, nodeSelector=None))
        yield fixed("remove all node selectors from its pods", edit, "selector")


def _without_selector(key: str) -> Callable[[Manifest], Manifest]:
    def edit(pod: Manifest) -> Manifest:
        kept = {k: v for k, v in (pod["spec"].get("nodeSelector") or {}).items() if k != key}
        return with_spec(pod, nodeSelector=kept or None)

    return edit


def _taints(world: ClusterState, job: str) -> Iterator[Remedy]:
    found: dict[tuple[str, str, str], None] = {}
    for node in world.of_kind("Node").values():
        for taint in (node.get("spec") or {}).get("taints") or ():
            if taint.get("effect") in _BLOCKING:
                found[taint["key"], str(taint.get("value") or ""), taint["effect"]] = None
    for key, value, effect in found:
        toleration = {"key": key, "operator": "Equal", "value": value, "effect": effect}
        shown = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
        edit = of_pods(job, _tolerating(toleration))
        yield fixed(f"let its pods tolerate the taint {shown}", edit)


def _tolerating(toleration: Manifest) -> Callable[[Manifest], Manifest]:
    return lambda pod: with_spec(
        pod, tolerations=[*(pod["spec"].get("tolerations") or ()), toleration]
    )


def _cordons(world: ClusterState) -> Iterator[Remedy]:
    closed = [
        name
        for name, node in world.of_kind("Node").items()
        if (node.get("spec") or {}).get("unschedulable")
    ]
    for name in closed[:_CORDONED]:
        edit = replaced("Node", name, lambda one: with_spec(one, unschedulable=None))
        yield fixed(f"uncordon node {name}", edit, "cordon")
