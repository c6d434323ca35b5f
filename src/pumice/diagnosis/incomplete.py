"""What a dump lacks although its objects refer to it; an answer reports that first."""

from collections.abc import Container, Iterator, Sequence
from itertools import chain
from typing import Final

from pumice.api.kinds import ENDED_PHASES, SYSTEM_PRIORITIES, Manifest, queue_of
from pumice.api.wording import counted, first_of
from pumice.controllers.expected import is_expected
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.unseen_jobs import owner_of

_NAMED: Final = 3


class _Missing:
    """Names of one kind that are used, but not there, and the objects that use them."""

    def __init__(self, kind: str, there: Container[str], what: str = "") -> None:
        self._kind, self._there, self._what = kind, there, what
        self._users: dict[str, list[str]] = {}

    def note(self, name: str, user: Manifest) -> None:
        """Note that an object uses a name."""
        if name not in self._there:
            self._users.setdefault(name, []).append(f"{user['kind']} {key_of(user)}")

    def sentences(self) -> Iterator[str]:
        """Describe each name that is missing."""
        for name, users in sorted(self._users.items()):
            then = f"; {self._what}" if self._what else ""
            yield (
                f"{self._kind} {name} is missing, but {counted(len(users), 'object')} "
                f"{'names' if len(users) == 1 else 'name'} it: {first_of(users, _NAMED)}{then}"
            )


def missing_input(world: ClusterState) -> list[str]:
    """Describe what is missing from a world, a sentence each; one look at each object."""
    classes = _Missing("PriorityClass", world.of_kind("PriorityClass"))
    queues = _Missing("Queue", world.of_kind("Queue"))
    jobs = _Missing("Job", world.jobs, "its pods are assumed to be created again")
    nodes = _Missing("Node", world.of_kind("Node"))
    unphased: list[str] = []
    lacking: list[str] = []
    for key, group in world.groups.items():
        if _lacks_pods(world, key, group):
            lacking.append(world.title(key))
        _note_class(group, classes)
        queues.note(queue_of(group), group)
        _note_job(group, jobs)
    for pod in world.pods:
        spec, status = pod.get("spec") or {}, pod.get("status") or {}
        if spec.get("priorityClassName"):
            _note_class(pod, classes)
        _note_job(pod, jobs)
        phase, node = status.get("phase"), spec.get("nodeName")
        if not phase:
            unphased.append(key_of(pod))
        if node and phase not in ENDED_PHASES:
            nodes.note(str(node), pod)
    for job in world.jobs.values():
        _note_class(job, classes)
    found = [each.sentences() for each in (classes, queues, jobs, nodes)]
    odd = (*_phases(unphased), *_quotas(lacking))
    return [*_configuration(world), *chain.from_iterable(found), *odd]


def _configuration(world: ClusterState) -> Iterator[str]:
    if world.conf_source == ClusterState.conf_source:
        yield f"no configuration was given: {world.conf_source} is used"


def _note_class(one: Manifest, classes: _Missing) -> None:
    name = (one.get("spec") or {}).get("priorityClassName")
    if name and name not in SYSTEM_PRIORITIES:
        classes.note(str(name), one)


def _note_job(one: Manifest, jobs: _Missing) -> None:
    if one["metadata"].get("ownerReferences") and (owner := owner_of(one)):
        jobs.note(owner, one)


def _phases(pods: Sequence[str]) -> Iterator[str]:
    if pods:
        have = "has" if len(pods) == 1 else "have"
        yield f"{counted(len(pods), 'pod')} {have} no phase: {first_of(pods, _NAMED)}"


def _lacks_pods(world: ClusterState, key: str, group: Manifest) -> bool:
    """Return whether a job that a cluster has admitted has too few pods, for an unknown reason."""
    if (group.get("status") or {}).get("phase") != "Inqueue" or not owner_of(group):
        return False
    made = sum(not is_expected(pod) for pod in world.pods_by_group.get(key, ()))
    least = int((group.get("spec") or {}).get("minMember") or 1)
    return made < least and not world.has_quotas(key.partition("/")[0])


def _quotas(jobs: Sequence[str]) -> Iterator[str]:
    if jobs:
        are = "is admitted and lacks" if len(jobs) == 1 else "are admitted and lack"
        yield (
            f"{counted(len(jobs), 'job')} {are} pods: {first_of(jobs, _NAMED)}; controllers have "
            "still to make them, or a ResourceQuota that is not known here refuses them"
        )
