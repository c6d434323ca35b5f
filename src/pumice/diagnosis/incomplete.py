"""What a dump lacks although its objects refer to it; an answer reports that first."""

from collections.abc import Container, Iterable, Iterator
from typing import Final

from pumice.api.kinds import SYSTEM_PRIORITIES, queue_of
from pumice.api.wording import counted, first_of
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.unseen_jobs import owner_of

_NAMED: Final = 3
_Naming = tuple[str, str, str]
"""A name, and kind and key of an object that uses it."""


def missing_input(world: ClusterState) -> list[str]:
    """Describe what is missing from a world, a sentence each."""
    return [
        *_configuration(world),
        *_named("PriorityClass", _priority_classes(world), world.of_kind("PriorityClass")),
        *_named("Queue", _queues(world), world.of_kind("Queue")),
        *_named("Job", _jobs(world), world.jobs, "its pods are assumed to be created again"),
        *_named("Node", _nodes(world), world.of_kind("Node")),
        *_phases(world),
    ]


def _configuration(world: ClusterState) -> Iterator[str]:
    if world.conf_source == ClusterState.conf_source:
        yield f"no configuration was given: {world.conf_source} is used"


def _named(
    kind: str, named: Iterable[_Naming], there: Container[str], what: str = ""
) -> Iterator[str]:
    missing: dict[str, list[str]] = {}
    for name, user_kind, key in named:
        if name not in there:
            missing.setdefault(name, []).append(f"{user_kind} {key}")
    for name, users in sorted(missing.items()):
        then = f"; {what}" if what else ""
        yield (
            f"{kind} {name} is missing, but {counted(len(users), 'object')} "
            f"{'names' if len(users) == 1 else 'name'} it: {first_of(users, _NAMED)}{then}"
        )


def _priority_classes(world: ClusterState) -> Iterator[_Naming]:
    for kind in ("PodGroup", "Pod", "Job"):
        for key, one in world.of_kind(kind).items():
            name = (one.get("spec") or {}).get("priorityClassName")
            if name and name not in SYSTEM_PRIORITIES:
                yield str(name), kind, key


def _queues(world: ClusterState) -> Iterator[_Naming]:
    for key, group in world.groups.items():
        yield queue_of(group), "PodGroup", key


def _jobs(world: ClusterState) -> Iterator[_Naming]:
    for kind in ("PodGroup", "Pod"):
        for key, one in world.of_kind(kind).items():
            if one["metadata"].get("ownerReferences") and (owner := owner_of(one)):
                yield owner, kind, key


def _nodes(world: ClusterState) -> Iterator[_Naming]:
    for key, pod in world.of_kind("Pod").items():
        node = (pod.get("spec") or {}).get("nodeName")
        if node and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            yield str(node), "Pod", key


def _phases(world: ClusterState) -> Iterator[str]:
    pods = [
        key
        for key, pod in world.of_kind("Pod").items()
        if not (pod.get("status") or {}).get("phase")
    ]
    if pods:
        have = "has" if len(pods) == 1 else "have"
        yield f"{counted(len(pods), 'pod')} {have} no phase: {first_of(pods, _NAMED)}"
