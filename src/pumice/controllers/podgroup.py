"""PodGroup for plain pods: pods without a job are scheduled in groups, too.

Those of a Kubernetes PodGroup get one that follows it.
"""

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
from pumice.api.kinds import DEFAULT_QUEUE, HYPER_NODE, KUBE_POD_GROUP, POD, POD_GROUP, Manifest
from pumice.api.pod_resources import pods_usage
from pumice.controllers.base import (
    Create,
    Delete,
    Effect,
    Key,
    Patch,
    Plan,
    Update,
    View,
    controlled_by,
    controller_of,
    key_of,
)
from pumice.controllers.kube_groups import (
    gang_of,
    min_member,
    scheduled_status,
    tier_missing_for,
    topology_key,
)

_SCALABLE: Final = ("ReplicaSet.apps", "StatefulSet.apps")
_OWN: Final = (POD, KUBE_POD_GROUP, *_SCALABLE)
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
    watches: tuple[str, ...] = (POD, POD_GROUP, KUBE_POD_GROUP, HYPER_NODE, *_OWNERS.values())

    def __init__(
        self,
        *,
        scheduler_names: Collection[str] = ("volcano",),
        inherit_owner_annotations: bool = True,
        groups_bound: bool = True,
    ) -> None:
        """Make one; unless it ``groups_bound`` pods, too, those with a node stay as they are."""
        self._schedulers = frozenset(scheduler_names)
        self._inherits, self._groups_bound = inherit_owner_annotations, groups_bound

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Look at each pod and Kubernetes PodGroup, and at owners that may be scaled to zero."""
        metadata = manifest["metadata"]
        space = metadata.get("namespace", "")
        if kind in _OWN:
            return (Key(kind, space, metadata["name"]),)
        if kind == POD_GROUP:
            owner = controller_of(manifest)
            gang = owner is not None and owner.get("kind") == "PodGroup" and owner["name"]
            return (Key(KUBE_POD_GROUP, space, gang),) if gang else ()
        if kind == HYPER_NODE:
            label = manifest["spec"].get("tierName")
            gangs = (
                one for one in view.list(KUBE_POD_GROUP) if label and label == topology_key(one)
            )
            return [key_of(one) for one in gangs]
        return ()

    def _leaves_alone(self, pod: Manifest) -> bool:
        marks = pod["metadata"].get("annotations") or {}
        if pod["spec"].get("schedulerName") not in self._schedulers or marks.get(GROUP_NAME):
            return True
        return not self._groups_bound and bool(pod["spec"].get("nodeName"))

    def reconcile(self, key: Key, view: View) -> Plan:
        """Create the PodGroup of a pod, or remove that of an owner without pods."""
        manifest = view.get(key.kind, key.namespace, key.name)
        if manifest is None:
            return Plan()
        if key.kind in _SCALABLE:
            return _scaled(manifest, view)
        if key.kind == KUBE_POD_GROUP:
            return self._followed(key, manifest, view)
        if self._leaves_alone(manifest):
            return Plan()
        gang = view.get(KUBE_POD_GROUP, key.namespace, gang_of(manifest))
        if gang_of(manifest) and (gang is None or tier_missing_for(gang, view)):
            return Plan()  # looked at again with its group
        name = group_name(manifest, gang)
        effects: list[Effect] = []
        if view.get(POD_GROUP, key.namespace, name) is None:
            inherited = owner_annotations(manifest, view) if self._inherits else {}
            effects.append(Create(new_podgroup(manifest, inherited, gang)))
        effects.append(Patch(key, {"metadata": {"annotations": {GROUP_NAME: name}}}))
        return Plan(effects)

    def _followed(self, key: Key, gang: Manifest, view: View) -> Plan:
        """Bring the PodGroup that follows a Kubernetes one in step with it, and report back.

        Without one the pods are looked at: the first that is there makes it.
        """
        group = view.get(POD_GROUP, key.namespace, _named_after(gang["metadata"]))
        effects: list[Effect] = []
        if group is not None and group["spec"].get("minMember") != min_member(gang):
            effects.append(
                Update({**group, "spec": {**group["spec"], "minMember": min_member(gang)}})
            )
        status = scheduled_status(gang, group, view)
        if status is not None:
            effects.append(Patch(key, {"status": status}, "status"))
        if group is not None:
            return Plan(effects)
        pods = (one for one in view.list(POD, key.namespace) if gang_of(one) == key.name)
        return Plan(effects, look_at=[key_of(one) for one in pods if not self._leaves_alone(one)])


def new_podgroup(
    pod: Manifest, inherited: Mapping[str, str], gang: Manifest | None = None
) -> Manifest:
    """Write the PodGroup of a pod, with annotations of its owners and of its Kubernetes group."""
    metadata, spec = pod["metadata"], pod["spec"]
    marks: Mapping[str, str] = metadata.get("annotations") or {}
    number, more = _min_member(inherited.get(_MIN_MEMBER, "1")), dict[str, Any]()
    if gang is not None:
        own = gang["metadata"].get("annotations") or {}
        inherited, marks = {**inherited, **own}, {**marks, **own}
        number, more = min_member(gang), gang["spec"]
    wanted: Manifest = {
        "minMember": number,
        "minResources": pods_usage([(spec, number)]),
        "queue": marks.get(GROUP_QUEUE) or DEFAULT_QUEUE,
        "priorityClassName": more.get("priorityClassName") or spec.get("priorityClassName"),
        "networkTopology": _network_topology(marks),
    }
    if gang is not None and topology_key(gang):
        wanted["networkTopology"] = {"mode": "hard", "highestTierName": topology_key(gang)}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": group_name(pod, gang),
            "namespace": metadata["namespace"],
            "labels": _pick(metadata.get("labels") or {}, PREEMPTABLE, COOLDOWN_TIME),
            "annotations": _annotations(inherited, marks),
            "ownerReferences": _owners(pod) if gang is None else [controlled_by(gang)],
        },
        "spec": {field: value for field, value in wanted.items() if value is not None},
        "status": {"phase": "Pending"},
    }


def group_name(pod: Manifest, gang: Manifest | None = None) -> str:
    """Name the PodGroup of a pod: after its Kubernetes group, its controlling owner, or itself.

    One that no cluster has seen has no uid, and its name is used instead.
    """
    return _named_after(gang["metadata"] if gang else controller_of(pod) or pod["metadata"])


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
