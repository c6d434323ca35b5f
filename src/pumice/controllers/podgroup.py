"""PodGroup for plain pods: pods without a job are scheduled in groups, too."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from pumice.api.annotations import (
    COOLDOWN_TIME,
    GROUP_NAME,
    GROUP_QUEUE,
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    PREEMPTABLE,
    REVOCABLE_ZONE,
)
from pumice.api.kinds import DEFAULT_QUEUE, POD, POD_GROUP, Manifest
from pumice.api.pod_resources import pods_usage
from pumice.controllers.base import (
    Create,
    Delete,
    Effect,
    Key,
    Patch,
    Plan,
    View,
    controlled_by,
    controller_of,
)

_SCALABLE: Final = ("ReplicaSet.apps", "StatefulSet.apps")
_OWNERS: Final = {
    "ReplicaSet": "ReplicaSet.apps",
    "StatefulSet": "StatefulSet.apps",
    "DaemonSet": "DaemonSet.apps",
    "Job": "Job.batch",
}
"""Kinds of owners whose annotations count."""

_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
_TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"
_INHERITED: Final = "volcano.sh/"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")


class PodGroupController:
    """Makes PodGroups for plain pods; those of one ReplicaSet, Job or the like share one."""

    name = "podgroup"
    watches: tuple[str, ...] = (POD, POD_GROUP, *_OWNERS.values())

    def __init__(
        self,
        *,
        scheduler_names: Collection[str] = ("volcano",),
        inherit_owner_annotations: bool = True,
    ) -> None:
        self._schedulers = frozenset(scheduler_names)
        self._inherits = inherit_owner_annotations

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:  # noqa: ARG002
        """Look at each pod, and at each owner that may have been scaled to zero."""
        if kind != POD and kind not in _SCALABLE:
            return ()
        metadata = manifest["metadata"]
        return (Key(kind, metadata.get("namespace", ""), metadata["name"]),)

    def is_up_to_date(self, kind: str, manifest: Manifest) -> bool:
        """Return whether a well-formed pod has a group, or needs none."""
        if kind != POD or not isinstance(manifest.get("spec"), dict):
            return False
        marks = manifest["metadata"].get("annotations")
        if isinstance(marks, dict) and marks.get(GROUP_NAME):
            return True
        return (marks is None or isinstance(marks, dict)) and self._leaves_alone(manifest)

    def _leaves_alone(self, pod: Manifest) -> bool:
        marks = pod["metadata"].get("annotations") or {}
        return pod["spec"].get("schedulerName") not in self._schedulers or bool(
            marks.get(GROUP_NAME)
        )

    def reconcile(self, key: Key, view: View) -> Plan:
        """Create the PodGroup of a pod, or remove that of an owner without pods."""
        manifest = view.get(key.kind, key.namespace, key.name)
        if manifest is None:
            return Plan()
        if key.kind in _SCALABLE:
            return _scaled(manifest, view)
        if self._leaves_alone(manifest):
            return Plan()
        name = group_name(manifest)
        effects: list[Effect] = []
        if view.get(POD_GROUP, key.namespace, name) is None:
            inherited = owner_annotations(manifest, view) if self._inherits else {}
            effects.append(Create(new_podgroup(manifest, inherited)))
        effects.append(Patch(key, {"metadata": {"annotations": {GROUP_NAME: name}}}))
        return Plan(effects)


def new_podgroup(pod: Manifest, inherited: Mapping[str, str]) -> Manifest:
    """Write the PodGroup of a pod, with annotations of its owners."""
    metadata, spec = pod["metadata"], pod["spec"]
    marks: Mapping[str, str] = metadata.get("annotations") or {}
    min_member = _min_member(inherited.get(_MIN_MEMBER, "1"))
    wanted: Manifest = {
        "minMember": min_member,
        "minResources": pods_usage([(spec, min_member)]),
        "queue": marks.get(GROUP_QUEUE) or DEFAULT_QUEUE,
        "priorityClassName": spec.get("priorityClassName"),
        "networkTopology": _network_topology(marks),
    }
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": group_name(pod),
            "namespace": metadata["namespace"],
            "labels": _pick(metadata.get("labels") or {}, PREEMPTABLE, COOLDOWN_TIME),
            "annotations": _annotations(inherited, marks),
            "ownerReferences": _owners(pod),
        },
        "spec": {field: value for field, value in wanted.items() if value is not None},
        "status": {"phase": "Pending"},
    }


def group_name(pod: Manifest) -> str:
    """Name the PodGroup of a pod: after its controlling owner, else after itself.

    One that no cluster has seen has no uid, and its name is used instead.
    """
    return _named_after(controller_of(pod) or pod["metadata"])


def _named_after(owner: Mapping[str, Any]) -> str:
    return f"podgroup-{owner.get('uid') or owner['name']}"


def _scaled(owner: Manifest, view: View) -> Plan:
    """Delete the PodGroup of an owner that asks for no pods, such as a replaced ReplicaSet."""
    if owner["spec"].get("replicas", 1) != 0:
        return Plan()
    namespace, name = owner["metadata"]["namespace"], _named_after(owner["metadata"])
    if view.get(POD_GROUP, namespace, name) is None:
        return Plan()
    return Plan([Delete(Key(POD_GROUP, namespace, name))])


def _owners(pod: Manifest) -> list[dict[str, Any]]:
    """Return the owners of a pod's group: the pod's own if one controls it, else the pod."""
    if controller_of(pod) is not None:
        return [dict(reference) for reference in pod["metadata"]["ownerReferences"]]
    return [controlled_by({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]})]


def owner_annotations(pod: Manifest, view: View) -> dict[str, str]:
    """Gather the annotations of all owners of a pod; the first to name one wins."""
    gathered: dict[str, str] = {}
    for reference in pod["metadata"].get("ownerReferences") or ():
        kind = _OWNERS.get(reference.get("kind", ""))
        owner = view.get(kind, pod["metadata"]["namespace"], reference["name"]) if kind else None
        if owner is not None:
            gathered = (owner["metadata"].get("annotations") or {}) | gathered
    return gathered


def _annotations(inherited: Mapping[str, str], marks: Mapping[str, str]) -> dict[str, str]:
    """Copy annotations of owners and of the pod itself that Volcano copies."""
    kept = {name: text for name, text in inherited.items() if name.startswith(_INHERITED)}
    kept |= _pick(marks, PREEMPTABLE, COOLDOWN_TIME, REVOCABLE_ZONE)
    budget = JDB_MIN_AVAILABLE if JDB_MIN_AVAILABLE in marks else JDB_MAX_UNAVAILABLE
    return kept | _pick(marks, budget)


def _pick(marks: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: marks[name] for name in names if name in marks}


def _min_member(text: str) -> int:
    """Read a smallest number of members; anything but a positive number counts as 1."""
    number = int(text) if _INTEGER.fullmatch(text) else 1
    return number if 0 <= number < 2**31 else 1


def _network_topology(marks: Mapping[str, str]) -> Manifest | None:
    """Read how close pods must be; an unknown mode is hard, an unreadable tier is ignored."""
    if _TOPOLOGY_MODE not in marks and _TOPOLOGY_TIER not in marks:
        return None
    mode = marks.get(_TOPOLOGY_MODE, "hard").lower()
    topology: Manifest = {"mode": mode if mode in {"hard", "soft"} else "hard"}
    tier = marks.get(_TOPOLOGY_TIER, "")
    if _INTEGER.fullmatch(tier):
        topology["highestTierAllowed"] = int(tier)
    return topology
