"""Pods that need no PodGroup: each is a job of its own.

Used by the informer.  Their groups exist in the scheduler alone: nothing has to be created before
a pod can be placed, and nothing is written about a group afterwards.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from pumice.api.annotations import GROUP_NAME, GROUP_QUEUE
from pumice.api.decisions import PodGroupState
from pumice.api.groups import PodGroup, PodGroupSpec, PodGroupStatus
from pumice.api.meta import Condition, KubeObject, ObjectMeta, key_of
from pumice.api.pods import Pod

_ADMITTED = PodGroupStatus(phase="Inqueue")


class AgentPods:
    """Makes the groups of pods by the schedulers that these name."""

    def __init__(self, scheduler_names: Iterable[str]) -> None:
        self._names = frozenset(scheduler_names)
        self._groups: dict[str, PodGroup] = {}

    def read(self, things: Iterable[KubeObject]) -> list[KubeObject]:
        """Return objects; pods of agents without a group name one."""
        return [self._named(one) if isinstance(one, Pod) else one for one in things]

    def _named(self, pod: Pod) -> Pod:
        meta = pod.metadata
        if pod.spec.scheduler_name not in self._names or meta.annotations.get(GROUP_NAME):
            return pod
        marks = {**meta.annotations, GROUP_NAME: _name(pod)}
        return replace(pod, metadata=replace(meta, annotations=marks))

    def new_group(self, pod: Pod) -> PodGroup | None:
        """Return the group of a pod, None if it has another one or it was returned before."""
        meta = pod.metadata
        if pod.spec.scheduler_name not in self._names:
            return None
        if meta.annotations.get(GROUP_NAME) != _name(pod):
            return None
        group = PodGroup(
            metadata=ObjectMeta(
                name=_name(pod),
                namespace=meta.namespace,
                uid=meta.uid,
                creation_timestamp=meta.creation_timestamp,
                labels=meta.labels,
                annotations=meta.annotations,
                owner_references=meta.owner_references,
            ),
            spec=PodGroupSpec(
                min_member=1,
                queue=meta.annotations.get(GROUP_QUEUE, ""),
                priority_class_name=pod.spec.priority_class_name,
            ),
            status=_ADMITTED,
        )
        return group if self._groups.setdefault(key_of(group), group) is group else None

    def forget(self, pod: KubeObject) -> PodGroup | None:
        """Return the group of a pod that is gone, if it has one here."""
        if not self._groups:
            return None
        return self._groups.pop(f"{pod.metadata.namespace}/{_name(pod)}", None)

    def groups(self) -> Iterable[PodGroup]:
        """Return all groups."""
        return self._groups.values()

    def changed(self, states: Mapping[str, PodGroupState]) -> Iterator[PodGroup]:
        """Set the states that a session left groups in; yield these groups."""
        for key in [key for key in states if key in self._groups]:
            state = states[key]
            status = PodGroupStatus(
                phase=state.phase,
                conditions=tuple(
                    Condition(
                        type=one.type, status=one.status, reason=one.reason, message=one.message
                    )
                    for one in state.conditions
                ),
                running=state.running,
                succeeded=state.succeeded,
                failed=state.failed,
            )
            self._groups[key] = replace(self._groups[key], status=status)
            yield self._groups[key]


def _name(pod: KubeObject) -> str:
    """Name the group of a pod as the controllers would."""
    return f"podgroup-{pod.metadata.uid or pod.metadata.name}"
