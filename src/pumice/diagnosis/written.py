"""One write to a world: the object itself, and the reaction of the controllers.

The write is carried out on an embedded cluster that holds the objects connected with it:
the Volcano job, its pod group, its pods and its claims.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from pumice.api.kinds import Manifest, kind_of
from pumice.cluster.embedded.node_operations import lose
from pumice.controllers.job import JobController
from pumice.controllers.podgroup import PodGroupController
from pumice.diagnosis.arranged_objects import ArrangedObjects
from pumice.diagnosis.cluster_state import ClusterState, group_of, key_of
from pumice.diagnosis.control_plane import ControlPlane, expanded, no_keys, seed_of
from pumice.errors import InputError, NotFoundError, QuotaExceededError, RejectedError

_SMALL: Final = ("Queue", "PriorityClass", "StorageClass", "LimitRange")
"""Kinds that every write may need."""
_KEPT: Final = frozenset({"ResourceQuota", "PodDisruptionBudget"})
"""Kinds whose status depends on the pods of their namespace."""
_FRESH: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


_CONTROLLED: Final = frozenset({"Job", "PodGroup", "Pod", *_KEPT})


def is_controlled(kind: str) -> bool:
    """Return whether objects of a kind have further effects beside the object itself."""
    return kind in _CONTROLLED


def stored_alone(new: Manifest) -> Manifest:
    """Return a new object as stored; a queue is opened by its controller."""
    return {"status": {"state": "Open"}, **new} if new["kind"] == "Queue" else new


def is_draft(manifest: Manifest) -> bool:
    """Return whether no cluster has seen a job: all of it may still be changed."""
    return manifest["kind"] == "Job" and not (
        manifest["metadata"].get("uid") or manifest.get("status")
    )


class Written:
    """A world to write to."""

    def __init__(self, world: ClusterState) -> None:
        self._world = world

    def create(self, new: Manifest) -> ClusterState:
        """Add an object."""
        meta = {name: value for name, value in new["metadata"].items() if name not in _FRESH}
        made = {**new, "metadata": meta}
        if new["kind"] == "Job":
            made.pop("status", None)
        if not is_controlled(new["kind"]):
            return self._world.with_objects([stored_alone(made)])
        plane = self._plane(made)
        if made["kind"] == "Job":
            plane.add_job(made)
            return self._settled(plane, made)
        try:
            stored = plane.cluster.create(made)
            self._check_quotas(stored)
        except RejectedError as error:
            raise InputError(
                wanted="an object that the cluster accepts", found=error.problem, field=key_of(new)
            ) from None
        if made.get("status") and made["status"] != stored.get("status"):
            plane.cluster.merge_status(kind_of(made), *_place(made), made["status"])
        return self._settled(plane, made)

    def update(self, old: Manifest, new: Manifest) -> ClusterState:
        """Replace an object."""
        if not is_controlled(old["kind"]):
            return self._world.with_objects([new])
        plane = self._plane(old)
        plane.settle()
        stored = plane.cluster.get(kind_of(old), *_place(plane.stored(old)))
        linked = plane.stored(new)
        meta = {**linked["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
        written = plane.cluster.update({**linked, "metadata": meta})
        if new.get("status") != old.get("status"):
            with suppress(NotFoundError):  # the status of a pod group is written with the rest
                plane.cluster.update_status({**written, "status": new.get("status")})
        return self._settled(plane, old)

    def delete(self, old: Manifest) -> ClusterState:
        """Remove an object with what it owns; nothing waits for a grace period."""
        if not is_controlled(old["kind"]) and old["kind"] != "Node":
            return self._world.edited(lambda one: None if one is old else one)
        plane = self._plane(old)
        plane.settle()
        if old["kind"] == "Node":
            lose(plane.cluster, key_of(old))
        else:
            plane.cluster.delete(kind_of(old), *_place(plane.stored(old)), grace_s=0)
        plane.cluster.collect_garbage()
        if old["kind"] == "Job":
            for pod in plane.cluster.list("Pod")[0]:
                if pod["metadata"].get("deletionTimestamp"):
                    plane.cluster.delete("Pod", *_place(pod), grace_s=0)
        return self._settled(plane, old)

    def end(self, pods: Sequence[str]) -> ClusterState:
        """End pods."""
        gone, ended = set(pods), set[str]()
        for key in pods:
            pod = self._world.of_kind("Pod")[key]
            if self._world.job_of(group_of(pod)) is not None:
                ended.add(key)
        return self._world.edited(
            lambda one: (
                one
                if one["kind"] != "Pod" or key_of(one) not in gone
                else _ended(one)
                if key_of(one) in ended
                else None
            )
        )

    def _check_quotas(self, new: Manifest) -> None:
        """Refuse a new pod, with its defaults, that a resource quota has no room for."""
        why = self._world.why_refused(new) if new["kind"] == "Pod" else ""
        if why:
            raise QuotaExceededError("Pod", *_place(new), why)

    def _plane(self, one: Manifest) -> ControlPlane:
        controllers = (PodGroupController(), JobController(keys=no_keys))
        seed = seed_of(self._world)
        objects = ArrangedObjects(self._family(one))
        return ControlPlane(self._world, objects, controllers, seed=seed)

    def _settled(self, plane: ControlPlane, one: Manifest) -> ClusterState:
        plane.settle()
        if one["kind"] in _KEPT:
            plane.upkeep.sync()
        world = plane.world()
        jobs = {self._world.title(group) for group in self._groups(one)}
        jobs |= {key_of(one)} if one["kind"] == "Job" else set()
        return expanded(world, jobs) if jobs else world

    # Connected objects

    def _family(self, one: Manifest) -> list[Manifest]:
        """Collect the objects that a write to one may affect."""
        world = self._world
        found = {(each["kind"], key_of(each)): each for each in self._alone(one)}
        for group in self._groups(one):
            job = world.job_of(group)
            members = [world.groups.get(group), job, *world.pods_by_group.get(group, ())]
            found |= {(each["kind"], key_of(each)): each for each in members if each is not None}
        for kind in _SMALL:
            found |= {(kind, key): each for key, each in world.of_kind(kind).items()}
        return list(found.values())

    def _alone(self, one: Manifest) -> Iterable[Manifest]:
        world, space = self._world, one["metadata"].get("namespace")
        known = world.get(one["kind"], key_of(one))
        if known is not None:
            yield known
        if one["kind"] == "Node":
            yield from self._on_node(one)
        needed = {"Job": "PersistentVolumeClaim", **dict.fromkeys(_KEPT, "Pod")}.get(
            one["kind"], ""
        )
        for each in world.of_kind(needed).values():
            if each["metadata"].get("namespace") == space:
                yield each

    def _on_node(self, node: Manifest) -> list[Manifest]:
        pods = self._world.of_kind("Pod").values()
        return [pod for pod in pods if (pod.get("spec") or {}).get("nodeName") == key_of(node)]

    def _groups(self, one: Manifest) -> set[str]:
        """Return the pod groups that a write to an object affects."""
        world = self._world
        if one["kind"] == "Job":
            return {key for key in world.groups if world.title(key) == key_of(one)}
        if one["kind"] == "PodGroup":
            return {key_of(one)}
        if one["kind"] == "Pod":
            return {group_of(one)} - {""}
        if one["kind"] == "Node":
            return {group_of(pod) for pod in self._on_node(one)} - {""}
        return set()


def _place(manifest: Manifest) -> tuple[str, str]:
    meta = manifest["metadata"]
    return str(meta.get("namespace") or ""), str(meta["name"])


def _ended(pod: Manifest) -> Manifest:
    return {**pod, "status": {**(pod.get("status") or {}), "phase": "Succeeded"}}
