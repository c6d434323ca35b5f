"""The embedded cluster with a cluster state in it: the work of controllers, without a scheduler.

Used to carry out changes, on the objects that a change touches, and by forecasts, on all.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from pumice.api.annotations import GROUP_NAME
from pumice.api.cloning import clone
from pumice.api.kinds import CLAIM, JOB, RESOURCE_QUOTA, STORAGE_CLASS, Manifest, kind_of
from pumice.api.objects import KINDS
from pumice.clock import VirtualClock
from pumice.cluster.base import Event
from pumice.cluster.embedded.status_upkeep import StatusUpkeep
from pumice.cluster.embedded.store import EmbeddedCluster, Gate
from pumice.controllers import Controller
from pumice.controllers.base import controlled_by, controller_of, phase_of
from pumice.controllers.expected import NOT_BEGUN, class_of, expand_jobs, is_expected, served
from pumice.controllers.job.objects import may_start, wanted_pods
from pumice.controllers.job.state import JobState, podgroup_name, replicas_of
from pumice.controllers.loop import ControllerLoop
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.fixtures import Fixtures
from pumice.errors import QuotaExceededError

AT_ONCE: Final = frozenset({"ReplicaSet", "ReplicationController"})
"""Owners that replace a pod as soon as it is deleted, under another name."""
_IN_PLACE: Final = frozenset({"StatefulSet", "Job"})
"""Owners that wait until a pod is gone; an unknown Volcano job counts as one."""
_DROPPED: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)
Name = tuple[str, str]
"""Plain kind and key of an object."""
_FIRST_SEED: Final = 0x10000000
_STAMPS: Final = ("resourceVersion", "uid", "creationTimestamp", "generation")
"""Metadata that a cluster writes and a file may lack."""


# Volcano jobs that no cluster has seen have no uid, and their pod groups no name


def owner_of(manifest: Manifest) -> str:
    """Name the Volcano job that controls an object, empty if none does."""
    if not manifest["metadata"].get("ownerReferences"):
        return ""
    owner = controller_of(manifest)
    if owner is None or owner.get("kind") != "Job" or "volcano" not in str(owner.get("apiVersion")):
        return ""
    return f"{manifest['metadata'].get('namespace') or 'default'}/{owner.get('name')}"


class UnseenJobs:
    """The jobs of a world that have no uid of their own."""

    def __init__(self, jobs: Iterable[Manifest]) -> None:
        self._jobs: dict[str, Manifest] = {}
        """Key to the job with the uid it is given."""
        self._names: dict[str, tuple[str, str]] = {}
        """Key of a pod group to its name in the world and in the cluster."""
        for job in jobs:
            if not job["metadata"].get("uid"):
                self.add(job)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._jobs)

    def add(self, job: Manifest) -> None:
        """Assign a job a uid, the same one each time."""
        key, meta = key_of(job), job["metadata"]
        uid = f"job-{zlib.crc32(key.encode()):08x}"
        self._jobs[key] = {**job, "metadata": {**meta, "uid": uid}}
        self._names[key] = str(meta["name"]), podgroup_name(self._jobs[key])

    def linked(self, one: Manifest) -> Manifest:
        """Return an object as the cluster has it."""
        if not self._jobs:
            return one
        if one["kind"] == "Job":
            known = self._jobs.get(key_of(one))
            uid = {} if known is None else {"uid": known["metadata"]["uid"]}
            return {**one, "metadata": {**one["metadata"], **uid}}
        if one["kind"] == "PodGroup" and key_of(one) in self._jobs:
            return self._with(one, key_of(one), self._names[key_of(one)][1])
        owner = owner_of(one)
        return self._with(one, owner, "") if owner and owner in self._jobs else one

    def unlinked(self, one: Manifest) -> Manifest:
        """Return an object as the world has it."""
        key = key_of(one) if one["kind"] == "Job" else owner_of(one)
        if key not in self._jobs:
            return one
        meta = {**one["metadata"]}
        if one["kind"] == "Job":
            meta.pop("uid", None)
            return {**one, "metadata": meta}
        references = meta.get("ownerReferences") or ()
        meta["ownerReferences"] = [{**each, "uid": ""} for each in references]
        name, stored = self._names[key]
        if one["kind"] == "PodGroup" and meta["name"] == stored:
            meta["name"] = name
        return _in_group({**one, "metadata": meta}, stored, name)

    def _with(self, one: Manifest, job: str, new_name: str) -> Manifest:
        name, stored = self._names[job]
        meta = {**one["metadata"], "ownerReferences": [controlled_by(self._jobs[job])]}
        if new_name:
            meta["name"] = new_name
        return _in_group({**one, "metadata": meta}, name, stored)


def _in_group(one: Manifest, old: str, new: str) -> Manifest:
    """Return an object that names another pod group instead of one."""
    meta = one["metadata"]
    marks = meta.get("annotations") or {}
    if marks.get(GROUP_NAME) != old:
        return one
    return {**one, "metadata": {**meta, "annotations": {**marks, GROUP_NAME: new}}}


# Pods that controllers outside Volcano create again


class Replacements:
    """Makes pods again on one embedded cluster."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._due: list[Manifest] = []
        self._let_go: set[str] = set()
        """Uids of leaving pods that are not to be made again: they are, or their job is deleted."""
        self.requeued: set[str] = set()
        """Pods that are made again once they are gone, although no controller does it."""
        cluster.listeners.append(self._on_event)

    def make(self) -> None:
        """Create the pods that are due."""
        due, self._due = self._due, []
        self._cluster.restore(due)  # their owners may be missing

    def _on_event(self, kind: str, event: Event) -> None:
        if kind == JOB and event.type == "DELETED":
            pods = self._cluster.owned_by(event.object["metadata"]["uid"], "Pod")
            self._let_go.update(pod["metadata"]["uid"] for pod in pods)
        elif kind == "Pod":
            self._on_pod(event.object, is_gone=event.type == "DELETED")

    def _on_pod(self, pod: Manifest, *, is_gone: bool) -> None:
        uid, owner = pod["metadata"]["uid"], controller_of(pod)
        is_let_go = uid in self._let_go
        if is_gone:
            self._let_go.discard(uid)
        if owner is None and is_gone and key_of(pod) in self.requeued:
            self.requeued.discard(key_of(pod))
            self._replace(pod)
        if owner is None or is_let_go or self._is_managed(pod):
            return
        leaves = is_gone or bool(pod["metadata"].get("deletionTimestamp"))
        if owner.get("kind") in AT_ONCE and leaves:
            if not is_gone:
                self._let_go.add(uid)
            self._replace(pod, new_name=f"{owner.get('name')}-")
        elif owner.get("kind") in _IN_PLACE and is_gone and _phase(pod) != "Succeeded":
            self._replace(pod)

    def _is_managed(self, pod: Manifest) -> bool:
        """Return whether the controllers at hand create the pod again themselves."""
        job = owner_of(pod)
        space, _, name = job.partition("/")
        return bool(job) and self._cluster.peek(JOB, space, name) is not None

    def _replace(self, pod: Manifest, new_name: str = "") -> None:
        meta = {key: value for key, value in pod["metadata"].items() if key not in _DROPPED}
        if new_name:
            meta.pop("name", None)
            meta["generateName"] = new_name
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        self._due.append(
            clone({**pod, "metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        )


def _phase(pod: Manifest) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


class NewClaims:
    """Binds new claims of an embedded cluster; those that were there before stay as they are."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._new: list[Manifest] = []
        cluster.listeners.append(self._on_event)

    def sync(self) -> None:
        """Serve the claims that came since the last call."""
        new, self._new = self._new, []
        for given in new:
            known = self._cluster.peek(STORAGE_CLASS, "", class_of(given))
            claim, *volumes = served(given, known)
            for volume in volumes:
                self._cluster.restore([volume])
                place = claim["metadata"]["namespace"], claim["metadata"]["name"]
                changes = {"spec": {"volumeName": claim["spec"]["volumeName"]}}
                self._cluster.patch(CLAIM, *place, changes)
                self._cluster.merge_status(CLAIM, *place, claim["status"])

    def _on_event(self, kind: str, event: Event) -> None:
        if kind == CLAIM and event.type == "ADDED":
            self._new.append(event.object)


# The control plane


def no_keys() -> tuple[str, str]:
    """Return a placeholder for the key pair of a job; keys change no decision."""
    return "", ""


def seed_of(world: ClusterState) -> int:
    """Return a seed for the uids of new objects: those of a later write are higher.

    Uids decide between pods that are equal in all else.  A cluster draws them; here pods go in the
    order in which they are added, as pods of files go in the order of their names.
    """
    return _FIRST_SEED + world.writes


class RefusedPods:
    """A gate in front of an embedded cluster: it refuses what the API server refused."""

    def __init__(self, errors: Mapping[str, str], quotas: Gate | None) -> None:
        self._errors = errors
        self._quotas = quotas

    def admit(self, pod: Manifest) -> Callable[[], None]:
        """Check a new pod; return what counts it.

        Raises:
            QuotaExceededError: it is refused; controllers do not try again.
        """
        error = self._errors.get(f"Job {owner_of(pod)}")
        if error is not None:
            meta = pod["metadata"]
            raise QuotaExceededError("Pod", meta["namespace"], meta["name"], error)
        return (lambda: None) if self._quotas is None else self._quotas.admit(pod)


class ControlPlane:
    """Objects of a world in an embedded cluster, with controllers."""

    def __init__(
        self,
        world: ClusterState,
        objects: Fixtures,
        controllers: Sequence[Controller],
        *,
        seed: int | None = None,
    ) -> None:
        """Make one with these objects; with a seed it may be asked for the world it becomes."""
        self._world = world
        self.clock = VirtualClock(world.now)
        self._objects = objects
        linkable = (objects.stored[place] for place in objects.linkable)
        self._uids = UnseenJobs(one for one in linkable if one["kind"] == "Job")
        self.cluster = EmbeddedCluster(self.clock, seed=seed or 0, record_events=False)
        self.cluster.restore(self._linked())
        self.limit_pods(None)
        self._touched: dict[Name, Manifest | None] = {}
        if seed is not None:  # else nobody asks for the world that it becomes
            self.cluster.listeners.append(self._on_event)
        self.controllers = ControllerLoop(
            self.cluster, controllers, self.clock, versions=self.cluster.tables.latest
        )
        self.upkeep = StatusUpkeep(self.cluster, world.counted_elsewhere)
        self.replacements = Replacements(self.cluster)

    def limit_pods(self, quotas: Gate | None) -> None:
        """Refuse new pods that quotas have no room for, and those that the API server refused."""
        errors = self._world.creation_errors
        self.cluster.quotas = RefusedPods(errors, quotas) if errors else quotas

    def _linked(self) -> list[Manifest]:
        """Return all objects in their order, with the uids of jobs that no cluster has seen."""
        stored = self._objects.stored
        if not self._uids:
            return stored
        linked = stored.copy()
        for place in self._objects.linkable:
            linked[place] = self._uids.linked(stored[place])
        return linked

    @cached_property
    def _given(self) -> dict[Name, Manifest]:
        return {(one["kind"], key_of(one)): one for one in self._objects.stored}

    def add_job(self, job: Manifest) -> None:
        """Add a Volcano job."""
        self._uids.add(job)
        self.cluster.restore([self._uids.linked(job)])

    def stored(self, one: Manifest) -> Manifest:
        """Return an object of the world as the cluster has it."""
        return self._uids.linked(one)

    def settle(self) -> None:
        """Run controllers until nothing changes."""
        while True:
            before = self.cluster.version
            self.controllers.run_until_quiet()
            self.cluster.collect_garbage()
            self.replacements.make()
            if self.cluster.version == before:
                return

    def refusal(self, job: str) -> str:
        """Return how a resource quota refuses pods of a Volcano job now; empty if none does."""
        waits = self.controllers.quota_backoff
        for (_, key), error in waits.errors.items() if waits else ():
            if f"{key.namespace}/{key.name}" == job:
                return error.plain
        return ""

    def refused(self, job: str) -> int:
        """Count the pods of a Volcano job that resource quotas refuse now.

        Those of tasks that wait for other tasks were never asked for.
        """
        stored = self.cluster.peek(JOB, *job.split("/", 1)) if self.refusal(job) else None
        if stored is None:
            return 0
        state = JobState.read(stored, self.controllers.view)
        begun = (task for task in state.tasks if may_start(state, task))
        return sum(replicas_of(task) - len(wanted_pods(state, task)) for task in begun)

    def _on_event(self, kind: str, event: Event) -> None:
        if kind in _READ:
            one = self._uids.unlinked(event.object)
            self._touched[one["kind"], key_of(one)] = None if event.type == "DELETED" else one

    def world(self) -> ClusterState:
        """Return the world of a plane with a seed as changed; unchanged objects are kept."""
        gone = {name for name, one in self._touched.items() if one is None}
        changed = {
            name: self._cleaned(name, one) for name, one in self._touched.items() if one is not None
        }
        jobs = {key: one for key, one in self._world.jobs.items() if ("Job", key) not in gone}
        jobs |= {key: one for (kind, key), one in changed.items() if kind == "Job"}
        if self._world.of_kind(RESOURCE_QUOTA):
            changed = {name: one for name, one in changed.items() if not self._is_new(one, jobs)}
        touched = {key.rpartition("/")[2] for _, key in self._touched}
        kept = []
        for one in self._world.objects:
            if one["metadata"]["name"] in touched:
                name = one["kind"], key_of(one)
                if name not in gone:
                    kept.append(changed.pop(name, one))
            else:
                kept.append(one)
        new = [one for (kind, _), one in changed.items() if kind != "Job"]
        writes = self._world.writes + 1
        return replace(self._world, objects=(*kept, *new), jobs=jobs, writes=writes)

    def _is_new(self, one: Manifest, jobs: Mapping[str, Manifest]) -> bool:
        """Return whether a controller has just made a pod, of a job that has not begun.

        It stays expected: quotas, of which a plane has none, may refuse it.
        """
        if one["kind"] != "Pod" or ("Pod", key_of(one)) in self._given:
            return False
        job = jobs.get(owner_of(one))
        return job is not None and phase_of(job) in NOT_BEGUN

    def _cleaned(self, name: Name, stored: Manifest) -> Manifest:
        """Return an object without stamps that its file lacks."""
        given = self._given.get(name)
        lacking = ["resourceVersion"]
        if given is not None:
            lacking = [field for field in _STAMPS if field not in given["metadata"]]
        return {**stored, "metadata": _without(stored["metadata"], lacking)}


_READ: Final = frozenset(
    {JOB, *(kind_of({"apiVersion": version, "kind": kind}) for version, kind in KINDS)}
) - {"Namespace"}
"""Kinds of a world's objects."""


def expanded(world: ClusterState, jobs: Iterable[str]) -> ClusterState:
    """Return a world with the objects that jobs are still to get, as made now."""
    names = set(jobs)
    kept = [one for one in world.objects if not (is_expected(one) and owner_of(one) in names)]
    bare = replace(world, objects=tuple(kept))
    known = [world.jobs[name] for name in sorted(names) if name in world.jobs]
    return bare.with_objects(expand_jobs(known, bare.objects))


def _without(metadata: Mapping[str, Any], fields: Iterable[str]) -> Manifest:
    left_out = set(fields)
    return {name: value for name, value in metadata.items() if name not in left_out}
