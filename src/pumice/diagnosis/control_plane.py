"""The embedded cluster with a world in it: the work of controllers, without a scheduler.

Used to carry out changes, on the objects that a change touches, and by forecasts, on all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from pumice.api.kinds import JOB, RESOURCE_QUOTA, Manifest, kind_of
from pumice.api.objects import KINDS
from pumice.clock import VirtualClock
from pumice.cluster.base import Event
from pumice.cluster.embedded.status_upkeep import StatusUpkeep
from pumice.cluster.embedded.store import EmbeddedCluster, Gate
from pumice.controllers import Controller
from pumice.controllers.base import phase_of
from pumice.controllers.expected import NOT_BEGUN, expand_jobs, is_expected
from pumice.controllers.job.objects import may_start, wanted_pods
from pumice.controllers.job.state import JobState, replicas_of
from pumice.controllers.loop import ControllerLoop
from pumice.diagnosis.arranged_objects import ArrangedObjects
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.creation_errors import RefusedPods
from pumice.diagnosis.replacements import Replacements
from pumice.diagnosis.unseen_jobs import UnseenJobs, owner_of

Name = tuple[str, str]
"""Plain kind and key of an object."""
_FIRST_SEED: Final = 0x10000000
_STAMPS: Final = ("resourceVersion", "uid", "creationTimestamp", "generation")
"""Metadata that a cluster writes and a file may lack."""


def no_keys() -> tuple[str, str]:
    """Return a placeholder for the key pair of a job; keys change no decision."""
    return "", ""


def seed_of(world: ClusterState) -> int:
    """Return a seed for the uids of new objects: those of a later write are higher.

    Uids decide between pods that are equal in all else.  A cluster draws them; here pods go in the
    order in which they are added, as pods of files go in the order of their names.
    """
    return _FIRST_SEED + world.writes


class ControlPlane:
    """Objects of a world in an embedded cluster, with controllers."""

    def __init__(
        self,
        world: ClusterState,
        objects: ArrangedObjects,
        controllers: Sequence[Controller],
        *,
        seed: int | None = None,
    ) -> None:
        """Make one with these objects.

        Objects are shared with other planes of the world, unless a seed gives new objects uids of
        their own.
        """
        self._world = world
        self.clock = VirtualClock(world.now)
        self._objects = objects
        linkable = (objects.stored[place] for place in objects.linkable)
        self._uids = UnseenJobs(one for one in linkable if one["kind"] == "Job")
        if seed is None:
            self.cluster = world.restored.cluster(self._linked(), self.clock)
        else:
            self.cluster = EmbeddedCluster(self.clock, seed=seed, record_events=False)
            self.cluster.restore(self._linked())
        self.limit_pods(None)
        self._touched: dict[Name, Manifest | None] = {}
        if seed is not None:  # else nobody asks for the world that it becomes
            self.cluster.listeners.append(self._on_event)
        self.controllers = ControllerLoop(
            self.cluster, controllers, self.clock, tables=self.cluster.tables
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
